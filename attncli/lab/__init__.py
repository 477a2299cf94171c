"""Small seeded experiments: one a file, found by listing this folder.

An experiment calculates and says what it saw: it gives back a `Report` of numbers and messages. How they look (a
chart, a table, JSON) is the renderers' business.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attncli.core.matrix import Matrix
from attncli.core.message import InputError, Language, Message, placed
from attncli.core.record import Record
from attncli.core.report import Report
from attncli.models.vocabulary import printable
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem
from attncli.problems.request import problem_named
from attncli.problems.settings import whole_number
from attncli.problems.source import Stdin, read_matrix


class Option(Record):
    """Something that can be set: the option `--name`, what it is, and what it may be.

    Parameters
    ----------
    kind : "count" (a whole number), "counts" (several, sorted), "number", "numbers" (several), "positives" (several, sorted),
        "matrix", "text", "problem" (a problem file or an example's id) or "flag"
    default : where nothing is given; None: the experiment chooses
    least, most : of a count, or of each number; `longest`: how many numbers there may be
    replaces : settings that mean nothing where this one is given; they are None then
    """

    name: str
    text: str
    kind: str
    metavar: str = ""
    default: Any = None
    least: float = 1
    most: float = 1_000_000
    longest: int = 16
    replaces: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """--d-k for d_k; an argument has a name of its own."""
        return self.metavar if self.kind == "problem" else f"--{self.name.replace('_', '-')}"


#: Every setting's value, by name.
Settings = Mapping[str, Any]


class Experiment(Record):
    """An experiment: a line on it, what can be set, and `run(seed, settings) -> Report`."""

    name: str
    text: str
    settings: tuple[Option, ...]
    run: Callable[[int, Settings], Report]


def names() -> list[str]:
    """The names of all experiments: the files in this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def get(name: str) -> Experiment:
    """The experiment of this name."""
    experiment: Experiment = importlib.import_module(f"{__name__}.{name}").EXPERIMENT
    return experiment


def values_of(experiment: Experiment, words: Mapping[str, Any], language: Language) -> Settings:
    """Every setting's value: what was written, or its default; None for those that another one replaces.

    Raises
    ------
    InputError
        Something that was written does not work; names the option.
    """
    settings = {setting.name: _value(setting, words[setting.name], language) for setting in experiment.settings}
    options = {setting.name: setting.option for setting in experiment.settings}
    for setting in experiment.settings:
        for name in setting.replaces if words[setting.name] is not None else ():
            if words[name] not in (None, False):
                raise InputError(
                    "{other} already settles what {option} would set. Leave one of them out.",
                    option=options[name],
                    other=setting.option.strip("[]"),
                )
            settings[name] = None
    return settings


def _value(setting: Option, word: Any, language: Language) -> Any:
    if setting.kind == "flag":
        return bool(word)
    if word is None:
        return setting.default.text(language) if isinstance(setting.default, Message) else setting.default
    if setting.kind == "count":
        return whole_number(setting.option, word, int(setting.least), int(setting.most))
    if setting.kind == "problem":
        return _trained(word) if word.lower().endswith(".npz") else problem_named(word)
    with placed(setting.option):
        if setting.kind == "text":
            return printable(word)
        return _matrix(word) if setting.kind == "matrix" else _numbers(setting, word)


def _trained(path: str) -> Problem:
    """A saved training's model, looking at the beginning of its text."""
    from attncli.training.saved import load  # which brings pydantic with it
    from attncli.training.trainer import Trainer

    return Trainer(load(path)).problem(0, learning=False).changed(id=path)


def _matrix(word: str) -> Matrix:
    matrix = read_matrix(word, Stdin())
    if not matrix.values.size:
        raise InputError("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")
    return matrix


def _numbers(setting: Option, word: str) -> float | tuple[float, ...]:
    """One number, or several; where they are places on an axis, sorted and each once."""
    numbers = [float(value) for value in parse_matrix(word).values.ravel()]
    if setting.kind == "number" and len(numbers) != 1:
        raise InputError("one number is expected, but {count} were given.", count=len(numbers))
    if len(numbers) > setting.longest:
        raise InputError(
            "{count} numbers are too many. Write at most {most}.", count=len(numbers), most=setting.longest
        )
    whole = setting.kind == "counts"
    for number in numbers:
        if not math.isfinite(number) or not setting.least <= number <= setting.most or (whole and number % 1):
            raise InputError(
                "“{given}” is not allowed here. Write whole numbers from {least} to {most}."
                if whole
                else "“{given}” is not allowed here. Write numbers from {least} to {most}.",
                given=f"{number:g}",
                least=f"{setting.least:g}",
                most=f"{setting.most:g}",
            )
    if setting.kind == "number":
        return numbers[0]
    if setting.kind == "numbers":
        return tuple(numbers)
    return tuple(sorted({int(number) if whole else number for number in numbers}))
