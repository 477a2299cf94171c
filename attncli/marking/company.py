"""What an evaluation of many sheets side by side has found about each of them."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.matrix import BoolArray


class Company:
    """Sheets side by side, as far as they were evaluated.

    Attributes
    ----------
    sure : of which sheets what was found is to be relied on
    right : which sheets are right in every line so far
    carried : what is carried on from each step that any sheet's numbers reach, all sheets along a leading axis
    """

    def __init__(self, count: int) -> None:
        self.sure: BoolArray = np.ones(count, dtype=np.bool_)
        self.right: BoolArray = np.ones(count, dtype=np.bool_)
        self.carried: dict[str, Interval] = {}
        self.lines: dict[str, tuple[BoolArray, BoolArray, Interval | None]] = {}

    def add(self, id: str, raw: Interval, fine: BoolArray, blank: BoolArray, is_stack: bool) -> None:
        """A step that some of the sheets have written down: what it comes out as, and where it is right."""
        self.lines[id] = self.sure.copy(), fine, raw if is_stack else None
        self.right &= fine | blank


class Seen:
    """What company has found about one of its sheets."""

    __slots__ = ("_company", "_place")

    def __init__(self, company: Company, place: int) -> None:
        self._company, self._place = company, place

    @property
    def right(self) -> bool:
        """The sheet is right in every line."""
        return bool(self._company.right[self._place] and self._company.sure[self._place])

    def is_known(self, id: str) -> bool:
        """Whether this line was judged, and by bounds that need not be cut down."""
        line = self._company.lines.get(id)
        return line is not None and bool(line[0][self._place])

    def is_right(self, id: str) -> bool:
        return bool(self._company.lines[id][1][self._place])

    def raw(self, id: str) -> Interval | None:
        """What a step comes out as; None where that is what everybody comes to."""
        return self._of(self._company.lines[id][2])

    def carried(self, id: str) -> Interval | None:
        """What the next steps work with; None where that is what everybody comes to."""
        return self._of(self._company.carried.get(id))

    def _of(self, stack: Interval | None) -> Interval | None:
        return None if stack is None else Interval(stack.lo[self._place], stack.hi[self._place])
