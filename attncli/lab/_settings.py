"""What is written for the settings of an experiment, read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attncli.core.message import N_, AttnError, InputError, Language, Message
from attncli.lab import Experiment, Option
from attncli.problems.problem import Problem
from attncli.problems.request import Stdin, problem_named
from attncli.problems.settings import whole_number
from attncli.problems.source import read_matrix


def values_of(experiment: Experiment, words: Mapping[str, str | bool | None], language: Language) -> dict[str, Any]:
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
    """The value of a setting: what was written, checked, or its default."""
    if setting.kind == "flag":
        return bool(word)
    if word is None:
        return setting.default.text(language) if isinstance(setting.default, Message) else setting.default
    if setting.kind == "count":
        return whole_number(setting.option, word, int(setting.least), int(setting.most))
    if setting.kind == "problem":
        return _trained(word) if word.lower().endswith(".npz") else problem_named(word)
    if setting.kind == "text":
        return _text(setting, word)
    if setting.kind == "matrix":
        try:
            matrix = read_matrix(word, Stdin())
            if not matrix.values.size:
                raise InputError("The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.")
            return matrix
        except AttnError as error:
            raise error.at(setting.option) from None
    return _numbers(setting, word)


def _trained(path: str) -> Problem:
    """A saved training's model, looking at the beginning of its text."""
    from attncli.training.saved import load
    from attncli.training.trainer import Trainer

    return Trainer(load(path)).problem(0, learning=False).changed(id=path)


def _text(setting: Option, word: str) -> str:
    from attncli.models.vocabulary import printable

    try:
        return printable(word)
    except AttnError as error:
        raise error.at(setting.option) from None


def _numbers(setting: Option, word: str) -> Any:
    """One number, or several as a tuple; where they are places on an axis, sorted and each once."""
    from attncli.problems.matrix_text import parse_matrix

    try:
        values = parse_matrix(word).values
    except AttnError as error:
        raise error.at(setting.option) from None
    whole = setting.kind == "counts"
    numbers = [float(value) for value in values.ravel()]
    if setting.kind == "number" and len(numbers) != 1:
        raise InputError(
            "{option}: one number is expected, but {count} were given.", option=setting.option, count=len(numbers)
        )
    if len(numbers) > setting.longest:
        raise InputError(
            "{option}: {count} numbers are too many. Write at most {most}.",
            option=setting.option,
            count=len(numbers),
            most=setting.longest,
        )
    for number in numbers:
        if not math.isfinite(number) or not setting.least <= number <= setting.most or (whole and number % 1):
            template = _WHOLE if whole else _FROM_TO
            raise InputError(
                template,
                option=setting.option,
                given=f"{number:g}",
                least=f"{setting.least:g}",
                most=f"{setting.most:g}",
            )
    if setting.kind == "number":
        return numbers[0]
    if setting.kind == "numbers":
        return tuple(numbers)
    return tuple(sorted({int(number) if whole else number for number in numbers}))


_WHOLE = N_("{option}: “{given}” is not allowed here. Write whole numbers from {least} to {most}.")
_FROM_TO = N_("{option}: “{given}” is not allowed here. Write numbers from {least} to {most}.")
