"""What was found about one line of one sheet, before anything is said about it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from attncli.core.record import Record
from attncli.marking.explain import Found
from attncli.marking.judge import RIGHT
from attncli.mistakes.routes import Route


class Verdict(Record):
    """What was found about one line of one sheet.

    Parameters
    ----------
    cells : (…) WRONG, IMPRECISE, CUT or RIGHT
    follows : right from the learner's own earlier values
    refused : follows from a line that makes the rest trivial
    route : the other right way by which it is right
    how : which calculation shows it, where it is right
    off : units of the last place asked between the farthest cell and the nearest right number
    expected : what follows from the learner's lines above
    found : the mistakes that explain it
    """

    cells: Any
    follows: bool = False
    refused: bool = False
    route: Route | None = None
    how: str | None = None
    off: float | None = None
    expected: Any = None
    found: tuple[Found, ...] = ()
    chain: Any = None

    @cached_property
    def worst(self) -> int:
        return int(self.cells.min(initial=RIGHT))


Verdicts = dict[str, Verdict]
