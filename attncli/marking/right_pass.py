"""The first of two passes over sheets of one kind, side by side: what is right.

It goes on with right numbers whatever was written. A sheet that went another right way is gone over once more with that
way in the place of the usual one. The second pass goes on with what was written (`own_pass`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import Chain, Family, fitting
from attncli.marking.explain import Found
from attncli.marking.judge import (
    CUT,
    IMPRECISE,
    RIGHT,
    WRONG,
    Cells,
    Judged,
    Line,
    Rows,
    beside,
    in_all,
    in_some,
    judge,
    largest,
    off,
    reach,
)
from attncli.marking.papers import Paper, stacked
from attncli.marking.prepared import Prepared
from attncli.marking.seeds import carried_hull, reconsidered
from attncli.mistakes.mistake import instead
from attncli.mistakes.routes import OTHER_CONSTANT, Route, other_constants

#: Other right ways that one sheet may go, one after the other.
_MOST_ROUTES = 3
#: Steps worked out for other right ways to one line, those that are gone alone first.
_MOST_STEPS = 1600
#: The chains by which a way is first looked at: in full, and rounded.
_BOTH = 2
#: Share of its numbers that such a way may be off by: e^x of large scores moves far.
_SHARE = 0.03


class Verdict(Record):
    """What was found about one line of one sheet, before anything is said about it.

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
    chain : the learner's own numbers, where it is wrong
    """

    cells: Cells
    follows: bool = False
    refused: bool = False
    route: Route | None = None
    how: str | None = None
    off: float | None = None
    expected: FloatArray | None = None
    found: tuple[Found, ...] = ()
    chain: Chain | None = None

    @cached_property
    def worst(self) -> int:
        return int(self.cells.min(initial=RIGHT))


#: By step, what was found about a sheet.
Verdicts = dict[str, Verdict]


class RightPass:
    """The first pass over sheets that go the same right way: every line, going on with right numbers.

    Parameters
    ----------
    papers : the sheets; all of them written by people, or a single one
    routes : the other right ways, and the steps at which they were seen
    """

    def __init__(self, marker: Prepared, papers: Sequence[Paper], routes: Sequence[tuple[str, Route]] = ()) -> None:
        self.marker = marker
        self.papers = papers
        self.routes = routes
        self.lines = stacked(papers, marker.ids, marker.lineage.shapes)
        self.judged: dict[str, Judged] = {}
        self.swap: dict[str, Swap] = {step_id: one for _, route in routes for step_id, one in route.swap.items()}
        # By precision, whatever stands on the page, and going on from it. Lines of an odd shape are judged, too.
        precisions = {entry.eps for paper in papers for entry in paper.entries.values()} | {None}
        self.head = {eps: marker.head(eps).fork(self.swap) if self.swap else marker.head(eps) for eps in precisions}
        self.right = {eps: head.from_page() for eps, head in self.head.items()}
        self._judge()

    def _judge(self) -> None:
        cutters = np.zeros(len(self.papers), dtype=np.bool_)
        for step_id, line in self.lines.items():
            head, right, rules = self.head[line.eps], self.right[line.eps], self.marker.rules[step_id]
            if step_id in self.marker.graph.inputs:
                self.judged[step_id] = judge(line, head.raws(step_id)[:1], rules.changed(widened=False))
                continue
            line = self.lines[step_id] = line.changed(cutter=cutters)
            judged = judge(line, head.raws(step_id) + right.raws(step_id), rules)
            judged = self.judged[step_id] = reconsidered(step_id, line, judged, right.full, {}, rules)
            fine = line.has & (judged.worst >= CUT)
            cutters = cutters | line.has & (judged.worst == CUT)
            if fine.any() and self.marker.reads_page:
                for family in self.right.values():
                    family.give(step_id, line.values, beside(fine, line.values) & ~line.blank)

    def lines_right(self, row: int) -> int:
        """How many lines of a sheet are right."""
        return sum(
            bool(line.has[row]) and self.judged[step_id].worst[row] >= CUT for step_id, line in self.lines.items()
        )

    @cached_property
    def first_not_right(self) -> list[str | None]:
        """By sheet, the first step that is not right."""
        found: list[str | None] = [None] * len(self.papers)
        for step_id, judged in self.judged.items():
            for row in np.flatnonzero(self.lines[step_id].has & (judged.worst < CUT)).tolist():
                found[row] = found[row] or step_id
        return found

    def taken(self) -> Iterator[tuple[str, Route, list[int]]]:
        """Other right ways that sheets turn out to have gone at the first line that is not right: the step, the way, the sheets."""
        if len(self.routes) >= _MOST_ROUTES:
            return
        at: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for row, step_id in enumerate(self.first_not_right):
            if step_id is not None and step_id in self.marker.graph.steps and not self.papers[row].entries[step_id].odd:
                written = tuple(other for other in self.papers[row].entries if other != step_id)
                at.setdefault((step_id, written), []).append(row)
        for (step_id, written), rows in at.items():
            for route, members in self._taken_at(step_id, written, rows):
                yield step_id, route, members

    def _taken_at(self, step_id: str, written: Sequence[str], rows: list[int]) -> Iterator[tuple[Route, list[int]]]:
        left = np.array(rows)
        nearly: dict[int, Route] = {}
        for route in self._ways_to(step_id, written):
            if not left.size:
                return
            if not self._may_lead_to(step_id, route, left).any():
                continue
            found = self._along(step_id, route, left)
            if (found >= CUT).any():
                yield route, left[found >= CUT].tolist()
            for row in left[found == IMPRECISE].tolist():
                nearly.setdefault(row, route)
            left = left[found < CUT]
        for row in left.tolist():
            line = self.lines[step_id].of([row])
            for route in self._by_own_constants(step_id, line, written, self.right[line.eps].of([row])):
                found = self._along(step_id, route, [row])
                if found >= CUT:
                    yield route, [row]
                    break
                if found == IMPRECISE:
                    nearly.setdefault(row, route)
            else:
                if row in nearly and self.judged[step_id].worst[row] == WRONG:
                    yield nearly[row], [row]

    def _ways_to(self, step_id: str, written: Sequence[str]) -> list[Route]:
        """Other right ways through steps that were not written down before this one, beside those that were gone already;
        then two of them together."""
        lineage = self.marker.lineage
        moved = frozenset[str]().union(*(route.moved for _, route in self.routes))
        near = {step_id, *lineage.open_steps(step_id, written)}
        at_hand = near.intersection((step_id, *self.marker.graph.steps[step_id].inputs))
        closed = {*self.swap, *set(written).difference(lineage[step_id])}
        fresh = [
            route
            for route in self.marker.routes
            if (at_hand if route.at_hand else near).intersection(route.swap)
            and closed.isdisjoint(route.swap)
            and not route.moved & moved
            and route.is_open(self.swap)
        ]
        pairs = [
            Route(one.id, {**one.swap, **other.swap}, other.said, moved=one.moved | other.moved)
            for i, one in enumerate(fresh)
            for other in fresh[i + 1 :]
            if not set(one.swap) & set(other.swap) and not one.moved & other.moved
        ]
        costs = [lineage.steps_between(way.swap, step_id, sorted(near)) for way in (*fresh, *pairs)]
        afford = int(np.searchsorted(np.cumsum(costs), _MOST_STEPS, side="right"))
        return [*fresh, *pairs][: max(afford, 1)]

    def _by_own_constants(self, step_id: str, line: Line, written: Sequence[str], right: Family) -> Iterator[Route]:
        """The ways of a sheet that took another constant away from its scores, if this line of it shows that.

        Parameters
        ----------
        written : what else stands on the sheet
        right : its right numbers
        """
        steps = self.marker.graph.steps
        step = steps[step_id]
        shifted = steps.get(step.inputs[0]) if step.op.name == "exp" else step
        if shifted is None or step.phase != "forward" or shifted.op.name != "subtract":
            return
        if not shifted.params.get("column") or np.any(line.blank) or (shifted is not step and shifted.id in written):
            return
        scores = shifted.inputs[0]
        carried = [chain.carried(scores)[0] for chain in right.chains]
        sources = [*zip(carried, carried, strict=True), carried_hull(right.full, scores, shifted.id)]
        unit = 10.0 ** -self.marker.lineage.places[step_id]
        for taken in other_constants(sources, line.values[0], unit, step is not shifted):
            yield Route(
                "other-constant", dict(instead(shifted, partial(_without, taken), scores)), Message(OTHER_CONSTANT)
            )

    def _along(self, step_id: str, route: Route, rows: Rows) -> Cells:
        """What the least cell of some sheets' lines is by another way."""
        line, strictly = self.lines[step_id].of(rows), self.marker.rules[step_id].changed(widened=False, short=False)
        right, head = self.right[line.eps].fork(route.swap, rows), self.head[line.eps].fork(route.swap)
        judged = judge(line, right.raws(step_id) + head.raws(step_id), strictly)
        judged = reconsidered(step_id, line, judged, right.full, {}, strictly)
        # Nothing taken away is a way to e^x, and no maximum: zeros show nothing. A maximum that is 0 is one.
        before_mask = route.id == "maximum-before-mask"
        true = right.full.raw(step_id)[0] if before_mask else self.marker.rounded(step_id)
        nothing = trivial_rows(true, np.where(np.isneginf(line.values), true, line.values))[1]
        return np.where(nothing, WRONG, judged.worst)

    def _may_lead_to(self, step_id: str, route: Route, rows: Rows) -> BoolArray:
        """Which of some sheets wrote about what a way leads to, in full and rounded line by line."""
        line, rules = self.lines[step_id].of(rows), self.marker.rules[step_id]
        chains = self.right[line.eps].chains[:_BOTH]
        reached = [fitting(chain.fork(route.swap, rows).raw, step_id) for chain in chains]
        full, rounded = reached[0], reached[-1]
        if full is None or rounded is None:
            return np.zeros(len(line.values), dtype=np.bool_)
        apart = np.abs(full - rounded)
        apart = largest(np.where(np.isfinite(apart), apart, 0.0))
        spread = np.maximum(self.judged[step_id].spread[rows] * 10.0 ** -self.marker.lineage.places[step_id], apart)
        near: BoolArray = off(line, full, _SHARE) <= reach(line, spread, rules)
        return near

    def verdicts(self, rows: Sequence[int]) -> list[Verdicts]:
        """What this pass has found about every line of some sheets; one object for all that are plainly right alike."""
        found: list[Verdicts] = [{} for _ in rows]
        routes = dict(reversed(self.routes))
        for step_id, line in self.lines.items():
            judged, route = self.judged[step_id], routes.get(step_id)
            has, worst, witness = line.has.tolist(), judged.worst.tolist(), judged.witness.tolist()
            cells = np.full(self.marker.lineage.shapes[step_id], RIGHT, dtype=np.int8)
            full, carried = (Verdict(cells, how=how, off=0.0) for how in ("full", "carried"))
            for row, verdicts in zip(rows, found, strict=True):
                if not has[row]:
                    continue
                if worst[row] == RIGHT and route is None:
                    verdicts[step_id] = full if witness[row] == 0 else carried
                else:
                    how = None if worst[row] < CUT else "cut off" if worst[row] == CUT else "carried"
                    near = float(judged.near[row])
                    verdicts[step_id] = Verdict(
                        judged.cells[row],
                        route=route,
                        how=route.id if route is not None and how is not None else how,
                        off=near if np.isfinite(near) else None,
                    )
        return found


def _without(taken: FloatArray, xp: Arithmetic, scores: Value) -> Value:
    """Every line of scores minus its own constant."""
    return xp.subtract(scores, taken)


# --- lines that leave nothing to work out -----------------------------------------------------------------------------


def trivial_rows(true: FloatArray, own: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which sheets' lines make what follows trivial where the true one does not: in some row, in all of them.

    Trivial is a row of zeros, of one number again and again or a single one that is visible, with a single 1 among zeros
    (one-hot); zeros are so beside every true row that is not 0. An infinity where there is none is trivial in some row;
    all of a matrix may be hidden so by a mistake.

    Parameters
    ----------
    true : (…, i, j) the true numbers
    own : (sheets, …, i, j) the learners'
    """
    if own.shape[1:] != true.shape or not own.size:
        none = np.zeros(len(own), dtype=np.bool_)
        return none, none
    if true.ndim < 2:
        true, own = true.reshape(1, -1), own.reshape(len(own), 1, -1)
    (zero, trivial), (true_zero, true_trivial) = _empty_rows(own), _empty_rows(true)
    found = trivial & ~true_trivial | zero & ~true_zero
    some = found | (~np.isfinite(own) & np.isfinite(true)).any(-1)
    # One number for every row may be the same for all of them, and rightly so after a mistake.
    whole = found if own.shape[-1] > 1 else found & (own[..., 0] == 0)
    return in_some(some), in_all(whole)


def _empty_rows(matrix: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which rows are zeros, and which are trivial; a column stands for one row."""
    lines = matrix.swapaxes(-1, -2) if matrix.shape[-1] == 1 else matrix
    finite = np.isfinite(lines)
    zero = ((lines == 0) | ~finite).all(-1)
    trivial = zero
    if lines.shape[-1] > 1:
        low, high = np.where(finite, lines, np.inf).min(-1), np.where(finite, lines, -np.inf).max(-1)
        zeros, ones = (lines == 0).sum(-1), (lines == 1).sum(-1)
        trivial = zero | (low == high) | (ones == 1) & (zeros == lines.shape[-1] - 1)
    return np.broadcast_to(zero, matrix.shape[:-1]), np.broadcast_to(trivial, matrix.shape[:-1])
