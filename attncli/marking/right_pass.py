"""The first of two passes over sheets of one kind, side by side: what is right.

It goes on with right numbers whatever was written. A sheet that went another right way is gone over once more with that
way in the place of the usual one. The second pass goes on with what was written (`own_pass`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Swap
from attncli.core.matrix import BoolArray
from attncli.marking.chain import MISFITS, Chain, Family
from attncli.marking.distance import is_near
from attncli.marking.judge import CUT, IMPRECISE, RIGHT, WRONG, Judged, Line, Rules, judge
from attncli.marking.papers import Paper, stacked, trivial_rows
from attncli.marking.seeds import reconsidered
from attncli.marking.verdict import Verdict, Verdicts
from attncli.mistakes.routes import Route

if TYPE_CHECKING:
    from attncli.marking.prepared import Prepared

#: Other right ways that one sheet may go, one after the other.
_MOST_ROUTES = 3
#: The chains by which a way is first looked at: in full, and rounded.
_BOTH = 2
#: Share of its numbers that such a way may be off by: e^x of large scores moves far.
_SHARE = 0.03


class RightPass:
    """The first pass over sheets that go the same right way: every line, going on with right numbers.

    Parameters
    ----------
    papers : the sheets; all of them written by people, or a single one
    swap : the other right way, in the place of the usual steps
    """

    def __init__(self, marker: Prepared, papers: Sequence[Paper], routes: Sequence[tuple[str, Route]] = ()) -> None:
        self.marker = marker
        self.papers = papers
        self.routes = routes
        self.swap: dict[str, Swap] = {step_id: one for _, route in routes for step_id, one in route.swap.items()}
        self.lines = stacked(papers, marker.ids, marker.shapes)
        self.judged: dict[str, Judged] = {}
        self._known: dict[tuple[str, str], Verdict] = {}
        self._right: dict[float | None, Family] = {}
        self._head: dict[float | None, Family] = {}
        self._begin()

    def _begin(self) -> None:
        # Those of an odd shape are in no line, and are judged all the same.
        for eps in {entry.eps for paper in self.papers for entry in paper.entries.values()} | {None}:
            head = self.marker.head(eps)
            self._head[eps] = head.fork(self.swap) if self.swap else head
            self._right[eps] = self.marker.from_page(eps, self._head[eps])

    def right(self, eps: float | None) -> Family:
        return self._right[eps]

    def head(self, eps: float | None) -> Family:
        return self._head[eps]

    def rules(self, step_id: str) -> Rules:
        return self.marker.rules[step_id]

    def witnesses(self, step_id: str, eps: float | None) -> list[Value]:
        return self.head(eps).raws(step_id) + self.right(eps).raws(step_id)

    def run(self) -> None:
        """Judge every line, going on with right numbers."""
        cutters = np.zeros(len(self.papers), dtype=np.bool_)
        for step_id, line in self.lines.items():
            if step_id in self.marker.graph.inputs:
                given = self.head(line.eps).raws(step_id)[:1]
                self.judged[step_id] = judge(line, given, self.rules(step_id).changed(widened=False))
                continue
            line = self.lines[step_id] = line.changed(cutter=cutters)
            judged = judge(line, self.witnesses(step_id, line.eps), self.rules(step_id))
            judged = self._reconsidered(step_id, line, judged, self.right(line.eps).chains[0], {})
            self.judged[step_id] = judged
            fine = line.has & (judged.worst >= CUT)
            cutters = cutters | line.has & (judged.worst == CUT)
            if fine.any():
                where = np.broadcast_to(fine.reshape(-1, *(1,) * (line.values.ndim - 1)), line.values.shape)
                self._go_on(step_id, line.values, line.shown(where))

    def _go_on(self, step_id: str, values: Value, where: Any) -> None:
        if not self.marker.reads_page:
            return
        for family in self._right.values():
            family.give(step_id, values, None if where.all() else where)

    def _reconsidered(
        self,
        step_id: str,
        line: Line,
        judged: Judged,
        full: Chain,
        kept: Mapping[str, BoolArray],
        rules: Rules | None = None,
    ) -> Judged:
        """The same after asking learners who mix their habits, where a cell is near enough and not right."""
        return reconsidered(step_id, line, judged, full, kept, rules or self.rules(step_id))

    def lines_right(self, row: int) -> int:
        """How many lines of a sheet are right."""
        return sum(
            bool(line.has[row]) and self.judged[step_id].worst[row] >= CUT for step_id, line in self.lines.items()
        )

    def first_not_right(self) -> list[str | None]:
        """By sheet, the first step that is not right."""
        found: list[str | None] = [None] * len(self.papers)
        for step_id, judged in self.judged.items():
            for row in np.flatnonzero(self.lines[step_id].has & (judged.worst < CUT)).tolist():
                if found[row] is None:
                    found[row] = step_id
        return found

    def taken(self) -> Iterator[tuple[str, Route, list[int]]]:
        """Other right ways that sheets turn out to have gone at the first line that is not right: the step, the way, the sheets."""
        if len(self.routes) >= _MOST_ROUTES:
            return
        at: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for row, step_id in enumerate(self.first_not_right()):
            if step_id is not None and step_id in self.marker.graph.steps and not self.papers[row].entries[step_id].odd:
                written = tuple(other for other in self.papers[row].entries if other != step_id)
                at.setdefault((step_id, written), []).append(row)
        for (step_id, written), rows in at.items():
            yield from self._taken_at(step_id, written, rows)

    def _taken_at(
        self, step_id: str, written: Sequence[str], rows: list[int]
    ) -> Iterator[tuple[str, Route, list[int]]]:
        left = list(rows)
        nearly: dict[int, tuple[str, Route]] = {}
        for route in self.marker.ways_to(step_id, written, [route for _, route in self.routes]):
            if not left:
                return
            index = np.array(left)
            if not self._may_lead_to(step_id, route, index).any():
                continue
            found = self._along(step_id, route, index)
            if (found >= CUT).any():
                yield step_id, route, index[found >= CUT].tolist()
                left = index[found < CUT].tolist()
            for row in index[found == IMPRECISE].tolist():
                nearly.setdefault(row, (step_id, route))
        for row in left:
            one = np.array([row])
            constants = self.marker.own_constants(
                step_id, row, self.lines[step_id].of(one), self.papers[row].entries, self.right
            )
            for route in constants:
                found = self._along(step_id, route, one)
                if found >= CUT:
                    yield step_id, route, [row]
                    break
                if found == IMPRECISE:
                    nearly.setdefault(row, (step_id, route))
            else:
                if row in nearly and self.judged[step_id].worst[row] == WRONG:
                    yield *nearly[row], [row]

    def _along(self, step_id: str, route: Route, rows: Any) -> Any:
        """What the least cell of some sheets' lines is by another way."""
        line, strictly = self.lines[step_id].of(rows), self.rules(step_id).changed(widened=False, short=False)
        right, head = self.right(line.eps), self.head(line.eps)
        judged = judge(line, right.fork(route.swap, rows).raws(step_id) + head.fork(route.swap).raws(step_id), strictly)
        full = right.chains[0].fork(rows=rows).fork(route.swap)
        judged = self._reconsidered(step_id, line, judged, full, {}, strictly)
        # Nothing taken away is a way to e^x, and no maximum: zeros show nothing. A maximum that is 0 is one.
        true = full.raw(step_id)[0] if route.id == "maximum-before-mask" else self.marker.rounded(step_id)
        nothing = trivial_rows(true, np.where(np.isneginf(line.values), true, line.values))[1]
        return np.where(nothing, WRONG, judged.worst)

    def _may_lead_to(self, step_id: str, route: Route, rows: Any) -> BoolArray:
        """Which of some sheets wrote about what a way leads to, in full and rounded line by line."""
        line = self.lines[step_id]
        unit = 10.0 ** -self.marker.lineage.places[step_id]
        try:
            reached = [
                chain.fork(rows=rows).fork(route.swap).raw(step_id) for chain in self.right(line.eps).chains[:_BOTH]
            ]
        except MISFITS:
            return np.zeros(len(rows), dtype=np.bool_)
        apart = np.abs(reached[0] - reached[-1])
        apart = np.where(np.isfinite(apart), apart, 0.0).reshape(len(apart), -1).max(1, initial=0.0)
        spread = np.maximum(self.judged[step_id].spread[rows] * unit, apart)
        return is_near(line.of(rows), reached[0], spread, self.rules(step_id), _SHARE)

    def verdict(self, step_id: str, row: int) -> Verdict:
        """What this pass has found about one line of one sheet; one object for all that are plainly right alike."""
        judged = self.judged[step_id]
        worst = int(judged.worst[row])
        at = next((route for step, route in self.routes if step == step_id), None)
        if worst == RIGHT and at is None:
            return self._plainly_right(step_id, "full" if judged.witness[row] == 0 else "carried")
        how = None if worst < CUT else at.id if at is not None else "cut off" if worst == CUT else "carried"
        off = float(judged.near[row])
        return Verdict(judged.cells[row], route=at, how=how, off=off if np.isfinite(off) else None)

    def tell(self, sheets: Sequence[tuple[int, Verdicts]]) -> None:
        """Add the verdict of every line to those of some sheets, each with its place among the papers."""
        taken = {step for step, _ in self.routes}
        for step_id, line in self.lines.items():
            judged = self.judged[step_id]
            has, worst, witness = line.has.tolist(), judged.worst.tolist(), judged.witness.tolist()
            full, carried = self._plainly_right(step_id, "full"), self._plainly_right(step_id, "carried")
            for row, verdicts in sheets:
                if not has[row]:
                    continue
                if worst[row] == RIGHT and step_id not in taken:
                    verdicts[step_id] = full if witness[row] == 0 else carried
                else:
                    verdicts[step_id] = self.verdict(step_id, row)

    def _plainly_right(self, step_id: str, how: str) -> Verdict:
        found = self._known.get((step_id, how))
        if found is None:
            cells = np.full(self.marker.shapes[step_id], RIGHT, dtype=np.int8)
            found = self._known[step_id, how] = Verdict(cells, how=how, off=0.0)
        return found
