"""Small seeded experiments: one a file, found by listing this folder.

An experiment calculates and says what it saw: it gives back a `Report` of numbers and messages. How they look (a
chart, a table, JSON) is the renderers' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attncli.core.message import N_, Message, unknown
from attncli.core.record import Record
from attncli.core.report import Report


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
        if self.kind == "problem":
            return self.metavar
        return f"--{self.name.replace('_', '-')}"


class Experiment(Record):
    """An experiment: a line on it, what can be set, and `run(seed, settings) -> Report`."""

    name: str
    text: str
    settings: tuple[Option, ...]
    run: Callable[[int, Mapping[str, Any]], Report]


def names() -> list[str]:
    """The names of all experiments: the files in this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def get(name: str) -> Experiment:
    """The experiment of this name.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    import importlib

    known = names()
    if name not in known:
        raise unknown(Message(N_("The experiment")), name, known)
    experiment: Experiment = importlib.import_module(f"{__name__}.{name}").EXPERIMENT
    return experiment
