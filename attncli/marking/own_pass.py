"""The second pass over sheets in which something is wrong: what went wrong, and what follows from the learners' own lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from attncli.arithmetic import Indices, Value
from attncli.core.graph import Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.marking.chain import Family, Lineage, fitting, of_sheets
from attncli.marking.explain import NOTHING, Explained, Found, Named
from attncli.marking.judge import (
    CUT,
    IMPRECISE,
    RIGHT,
    WRONG,
    Cells,
    Judged,
    Line,
    Rows,
    are_same,
    beside,
    either_way,
    in_all,
    in_some,
    judge,
    off,
    spread_of,
)
from attncli.marking.papers import line_of
from attncli.marking.right_pass import RightPass, Verdict, Verdicts, trivial_rows
from attncli.marking.seeds import reconsidered
from attncli.marking.slips import NOT, SHORT, Slip, WrongLine, may_hold_slips, parts_wrong, slips_of

#: Units within which what is carried on with all digits and what stands on the page are mixed.
_BESIDE = 3.0
#: Units of the last place written within which a number is a round one.
_ROUND = 1e-6
#: Units within which a line is its slip with all digits, rounded or cut off; √2 may be rounded otherwise at each use.
_BESIDE_SLIP = 2.0
#: Units of the last place beyond which a right line speaks against a mistake that would have shown in it.
_SURELY = 3.0

_NOTHING: Mapping[str, Value] = MappingProxyType({})


class Way:
    """How some sheets may go on from a wrong line: with a mistake made again, or with its own unrounded numbers.

    Parameters
    ----------
    rows : which sheets, in their order
    swap : what is calculated instead
    free : steps that are not carried on as written
    given : numbers of an odd shape that are carried on
    """

    def __init__(
        self,
        lineage: Lineage,
        rows: Indices,
        swap: Mapping[str, Swap],
        free: Sequence[str] = (),
        given: Mapping[str, Value] = _NOTHING,
    ) -> None:
        self.rows = rows
        self.swap = swap
        self.free = frozenset(free)
        self.given = given
        #: What is done otherwise, or comes from what is.
        self.reaches = {*swap, *lineage.after([*swap, *given, *free])}
        self._family: Family | None = None

    def family(self, own: Family) -> Family:
        """The numbers of this way; worked out when they are asked for."""
        if self._family is None:
            self._family = own.of(self.rows).fork(self.swap, free=self.free)
            for step_id, values in self.given.items():
                for chain in self._family.chains:
                    chain.give(step_id, values)
        return self._family


class OwnPass:
    """The second pass, over the sheets in which something is wrong: what follows from what they wrote."""

    def __init__(self, first: RightPass, rows: Sequence[int]) -> None:
        self.first = first
        self.marker = first.marker
        self.lineage = first.marker.lineage
        self.rows = np.asarray(rows)
        self.papers = [first.papers[row] for row in rows]
        self.verdicts: list[Verdicts] = first.verdicts(rows)
        # Right lines are carried on as written or by head, wrong ones as written.
        self.page = {eps: head.from_page() for eps, head in first.head.items()}
        self.head = {eps: head.from_page() for eps, head in first.head.items()}
        self.own = {eps: Family(page.chains + self.head[eps].chains) for eps, page in self.page.items()}
        self.right = {eps: family.of(self.rows) for eps, family in first.right.items()}
        #: By step, which sheets are not right there; and of which it makes the rest trivial.
        self.bad: dict[str, BoolArray] = {}
        self.trivial: dict[str, BoolArray] = {}
        #: Which sheets go on from a step with what they wrote, and with nothing else.
        self.kept: dict[str, BoolArray] = {}
        #: Which sheets went on from a line with too few places.
        self.short = self._none()
        #: Which sheets hold a line that no known calculation leads to.
        self.unnamed = self._none()
        self.ways: list[Way] = []

    def run(self) -> list[Verdicts]:
        """By sheet, the verdict of every line that could be read."""
        for step_id in self.marker.ids:
            line = self.first.lines.get(step_id)
            if line is not None and step_id in self.marker.graph.steps:
                self._line(step_id, line.of(self.rows))
            for row, paper in enumerate(self.papers):
                entry = paper.entries.get(step_id)
                if entry is not None and entry.odd:
                    self._odd(step_id, row, line_of({0: entry}, (1, *entry.values.shape)))
        return self.verdicts

    def _none(self) -> BoolArray:
        return np.zeros(len(self.rows), dtype=np.bool_)

    def _line(self, step_id: str, line: Line) -> None:
        worst = self.first.judged[step_id].worst[self.rows]
        not_right = line.has & (worst < CUT)
        has_fewer = self._has_fewer(step_id, line)
        apart = self._apart(step_id)
        followed = self._followed(step_id, line, np.flatnonzero(not_right & apart))
        wrong = not_right & (worst == WRONG) & ~followed
        # What rounding may have come to is no other number than the right one: more digits of that may be carried on.
        made = not_right & ~followed & ((worst == WRONG) | has_fewer)
        if not_right.any():
            self.bad[step_id] = not_right
            # What only follows from a line above is what it is; stumps go on making zeros.
            some, whole = trivial_rows(self.marker.rounded(step_id), line.values)
            is_own = self.unnamed | ~followed
            self.trivial[step_id] = (made | not_right & self.short) & np.where(is_own, some, whole)
        if wrong.any():
            self._explain(step_id, line, np.flatnonzero(wrong), apart)
        self.unnamed |= not_right & ~followed & ~wrong
        self.short |= not_right & has_fewer
        as_written = made | self._against_own(step_id, line, line.has & ~not_right & apart)
        if as_written.any():
            self.kept[step_id] = as_written
        from_page = line.has if self.marker.reads_page else as_written
        for families, rows in ((self.page, from_page), (self.head, as_written)):
            if rows.any():
                for family in families.values():
                    family.give(step_id, line.values, beside(rows, line.values) & ~line.blank)

    def _against_own(self, step_id: str, line: Line, rows: BoolArray) -> BoolArray:
        """Which of some right lines do not follow from the wrong ones above them: nobody goes on with what does."""
        found = self._none()
        index = np.flatnonzero(rows)
        if index.size:
            own = self.own[line.eps].of(index)
            found[index] = judge(line.of(index), own.raws(step_id), self.marker.rules[step_id]).worst == WRONG
        return found

    def _has_fewer(self, step_id: str, line: Line) -> BoolArray:
        """Which sheets wrote a number with fewer places than asked, and than the number has: nobody writes 5.000 for a
        whole number."""
        fewer = line.fewer(self.marker.rules[step_id].decimals)
        if fewer.any():
            full = self.right[line.eps].full.raw(step_id)
            if full.shape[1:] == line.values.shape[1:]:
                scaled = full * 10.0 ** np.asarray(line.places, dtype=np.float64)
                with np.errstate(invalid="ignore"):
                    fewer = fewer & ~(np.abs(scaled - np.rint(scaled)) <= _ROUND)
        return in_some(fewer)

    def _on_the_way(self, lines: Mapping[str, BoolArray], step_id: str) -> BoolArray:
        """Which sheets have one of these lines on the way to a step."""
        found = self._none()
        for other, rows in lines.items():
            if step_id in self.lineage[other]:
                found |= rows
        return found

    def _apart(self, step_id: str) -> BoolArray:
        """Which sheets have a line that is not right on the way here, or one whose mistake is made again here."""
        found = self._on_the_way(self.bad, step_id)
        for way in self.ways:
            if step_id in way.reaches:
                found[way.rows] = True
        return found

    # What follows from the learner's own lines.

    def _followed(self, step_id: str, line: Line, index: Indices) -> BoolArray:
        """Which of some sheets are right from their own earlier values; their verdicts say so."""
        found = self._none()
        refused = self._on_the_way(self.trivial, step_id)
        for places, judged in self._judged_own(step_id, line, index) if index.size else ():
            for at in np.flatnonzero((judged.worst > WRONG) & ~found[index[places]]).tolist():
                row = int(index[places[at]])
                found[row] = True
                how = "carried" if judged.worst[at] > CUT else "cut off"
                cells = self._as_short(step_id, row, line, judged.cells[at])
                self._say(row, step_id, cells=cells, follows=True, refused=bool(refused[row]), how=how)
            if found[index].all():
                break
        return found

    def _say(self, row: int, step_id: str, **found: Any) -> None:
        self.verdicts[row][step_id] = self.verdicts[row][step_id].changed(**found)

    def _as_short(self, step_id: str, row: int, line: Line, cells: Cells) -> Cells:
        """A number with too few places stays one, also where the learner's own lines have no more."""
        if not self.short[row]:
            return cells
        fewer = line.fewer(self.marker.rules[step_id].decimals)[row] & (line.values[row] != 0)
        return np.where(fewer & (cells > IMPRECISE), IMPRECISE, cells)

    def _judged_own(self, step_id: str, line: Line, index: Indices) -> Iterator[tuple[Indices, Judged]]:
        """The line of some sheets against what follows from their own numbers, way after way: which of them, and how."""
        rules = self.marker.rules[step_id]
        part = line.of(index)
        own = self.own[line.eps].of(index)
        page, head = (family[line.eps].of(index).raws(step_id) for family in (self.page, self.head))
        judged = judge(part, page, rules, by_another_plan=head)
        hidden = self.marker.hidden_back.get(step_id)
        if hidden is not None:
            cells = np.where(hidden & (part.values == 0), np.int8(RIGHT), judged.cells)
            judged = judged.changed(cells=cells)
        judged = reconsidered(step_id, part, judged, own.full, self._kept(index), rules)
        yield np.arange(len(index)), judged
        left = np.flatnonzero(judged.worst == WRONG)
        for way in self.ways:
            places = left[np.isin(index[left], way.rows)]
            if places.size and step_id in way.reaches:
                numbers = self._on(way, line.eps, index[places])
                yield places, self._judged_way(step_id, part.of(places), own.of(places), numbers, index[places])
        for route in self.marker.own_routes if left.size else ():
            if step_id in route.swap or step_id in self.lineage.after(route.swap):
                raws = self.own[line.eps].fork(route.swap, index[left]).raws(step_id)
                yield left, judge(part.of(left), raws, rules.changed(widened=False, short=False))

    def _kept(self, rows: Rows) -> Mapping[str, BoolArray]:
        """What some sheets go on with as they wrote it."""
        return {step_id: which[rows] for step_id, which in self.kept.items()}

    def _judged_way(self, step_id: str, line: Line, own: Family, way: Family, rows: Rows) -> Judged:
        """A line against one way on from a wrong line; then also between that and what stands on the page."""
        rules = self.marker.rules[step_id]
        raws = [either_way(raw, line.values.shape) for raw in way.raws(step_id)]
        judged = judge(line, raws, rules)
        bad = np.flatnonzero(judged.worst == WRONG)
        if bad.size:
            raws, beside_it = of_sheets(raws, bad), of_sheets(own.raws(step_id), bad)
            both = [*raws, *_close_to(raws, beside_it, _BESIDE * 10.0**-rules.decimals)]
            judged = judged.replaced(bad, judge(line.of(bad), both, rules))
        return reconsidered(step_id, line, judged, way.full, self._kept(rows), rules)

    def _on(self, way: Way, eps: float | None, rows: Rows) -> Family:
        """The numbers of a way for some of its sheets."""
        return way.family(self.own[eps]).of(np.searchsorted(way.rows, rows))

    # What went wrong.

    def _wrong(self, step_id: str, line: Line, index: Indices, *, is_apart: bool, spread: FloatArray) -> WrongLine:
        """The line of some sheets that left the same steps before it unwritten, with what they may have started from."""
        families = [self.own[line.eps].of(index), *([self.right[line.eps].of(index)] if is_apart else [])]
        open_steps = self.lineage.open_steps(step_id, self.papers[index[0]].entries)
        return WrongLine(step_id, line, families, spread, self.marker.rules[step_id], open_steps, self._kept(index))

    def _explain(self, step_id: str, line: Line, rows: Indices, apart: BoolArray) -> None:
        """Name what went wrong, and remember the ways that the sheets may go on from here."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for row in rows.tolist():
            open_steps = tuple(self.lineage.open_steps(step_id, self.papers[row].entries))
            groups.setdefault((open_steps, bool(apart[row])), []).append(row)
        for (_, is_apart), members in groups.items():
            index = np.array(members)
            spread = self.first.judged[step_id].spread[self.rows[index]] * 10.0 ** -self.lineage.places[step_id]
            wrong = self._wrong(step_id, line.of(index), index, is_apart=is_apart, spread=spread)
            singles = self.marker.explainer.singles(wrong)
            may_slip = np.flatnonzero(may_hold_slips(wrong)).tolist()
            early = self._too_early(wrong, [at for at, single in enumerate(singles) if single.tier == NOT])
            slips = self._beside_slips(wrong, singles, may_slip)
            for at, row in enumerate(members):
                slipped = slips.get(at, [])
                found = self._uncontradicted(step_id, row, _found(wrong, singles[at], slipped))
                if not found and at in early:
                    found = [Found((Named(step_id, "rounded-too-early"),), {})]
                alone = wrong.of([at])
                self._settle(row, alone, found or self._two(alone))
                if slipped and self._may_go_on_from(alone, slipped[0]):
                    swap = slipped[0].made_at(self.marker.graph.steps[step_id])
                    self._remember(np.array([row]), swap, [step_id])
            self._remember_mistakes(step_id, index, singles)

    def _may_go_on_from(self, wrong: WrongLine, slip: Slip) -> bool:
        """Whether one sheet's line is its slip with all digits, rounded or cut off, so that these may be carried on."""
        if slip.id == "decimal-point":
            return True
        value = fitting(wrong.own.raw, wrong.step_id)
        reach = _BESIDE_SLIP * 10.0 ** -self.lineage.places[wrong.step_id]
        return value is not None and bool(off(wrong.line, slip.of(value))[0] < reach)

    def _too_early(self, wrong: WrongLine, rows: Sequence[int]) -> list[int]:
        """Which of some sheets are right for lines before this one that were rounded to too few places."""
        if not rows or not wrong.by_person:
            return []
        return [row for row, early in zip(rows, self.marker.explainer.too_early(wrong.of(rows)), strict=True) if early]

    def _beside_slips(self, wrong: WrongLine, singles: list[Explained], rows: Sequence[int]) -> dict[int, list[Slip]]:
        """What explains the line of some sheets, mistakes and slips of writing: the better of them, or both if they do it
        as well or come to the same. The slips, by sheet; of the mistakes, those that are left stay in `singles`."""
        kept: dict[int, list[Slip]] = {}
        for family in wrong.families:
            left = [row for row in rows if row not in kept]
            for at, one in slips_of(wrong.of(left), family.of(left)).items() if left else ():
                row = left[at]
                single = singles[row]
                as_well, better = max(single.tier, SHORT) == one.tier, one.tier < single.tier
                alike = [any(are_same(value, other) for other in single.values) for value in one.values]
                kept[row] = [slip for slip, same in zip(one.slips, alike, strict=True) if as_well or better or same]
                if better and not any(alike):
                    singles[row] = NOTHING
        return kept

    def _uncontradicted(self, step_id: str, row: int, found: list[Found]) -> list[Found]:
        """Of several explanations those that no right line of the sheet speaks against, if there are any."""
        if len({one.named for one in found}) < 2:
            return found
        return [one for one in found if not self._is_contradicted(step_id, row, one.swap)] or found

    def _is_contradicted(self, step_id: str, row: int, swap: Mapping[str, Swap]) -> bool:
        """Whether a wrong calculation at unwritten steps would show in a line before this one that is right."""
        written, rows = self.papers[row].entries, self.rows[[row]]
        earlier = {at for at in swap if at != step_id and at not in written}
        for other in self.lineage.after(earlier).intersection(written) - {step_id}:
            if written[other].odd or not self.first.judged[other].worst[rows[0]] >= CUT:
                continue
            if not earlier.intersection(self.lineage.open_steps(other, written)):
                continue
            right = self.first.right[written[other].eps].of(rows)
            value = fitting(right.full.fork(swap).raw, other)
            if value is None:
                return True
            judged = judge(self.first.lines[other].of(rows), [value], self.marker.rules[other])
            spread = spread_of(right.raws(other), 10.0 ** -self.lineage.places[other])
            if judged.near[0] > _SURELY + 4 * spread[0]:
                return True
        return False

    def _two(self, wrong: WrongLine) -> list[Found]:
        """Two things at once that explain one sheet's line."""
        if parts_wrong(wrong.own, wrong.step_id, wrong.line, wrong.rules):
            return []
        return self.marker.explainer.with_slip(wrong) or self.marker.explainer.pairs(wrong)

    def _settle(self, row: int, wrong: WrongLine, found: Sequence[Found]) -> None:
        """Keep what was found about one sheet's wrong line, and what follows from the lines above it."""
        step_id, full = wrong.step_id, wrong.own
        value = fitting(full.raw, step_id)
        if value is None:
            full = self.first.right[None].full.fork(rows=self.rows[[row]])
        expected = None if value is None else np.asarray(value[0], dtype=np.float64)
        self._say(row, step_id, found=tuple(found), expected=expected, chain=full, how=None)
        self.unnamed[row] |= not found
        if found and self.trivial[step_id][row]:
            self.trivial[step_id][row] = trivial_rows(self.marker.rounded(step_id), wrong.line.values)[1][0]

    # How the sheets may go on from there.

    def _remember(
        self, rows: Indices, swap: Mapping[str, Swap], free: Sequence[str] = (), given: Mapping[str, Value] = _NOTHING
    ) -> None:
        self.ways.append(Way(self.lineage, rows, swap, free, given))

    def _remember_mistakes(self, step_id: str, index: Indices, singles: Sequence[Explained]) -> None:
        """Ways on from a wrong line that was explained: the mistake made alike later, or carried on with all digits."""
        by_mistake: dict[tuple[int, int], tuple[Found, list[int]]] = {}
        for at, single in enumerate(singles):
            for one in single.found:
                by_mistake.setdefault((one.turn, id(one.swap)), (one, []))[1].append(int(index[at]))
        # In the order in which they were tried: it must not depend on the sheets beside one.
        for one, members in sorted(by_mistake.values(), key=lambda way: way[0].turn):
            rows = np.array(sorted(set(members)))
            elsewhere = _elsewhere(one, step_id)
            if elsewhere:
                self._remember(rows, elsewhere)
            self._remember(rows, one.swap, [step_id])

    # A line whose shape is not the step's: what a mistake gives, or nothing that can be marked.

    def _odd(self, step_id: str, row: int, line: Line) -> None:
        index, values = np.array([row]), line.values
        for way in self.ways:
            if row in way.rows and step_id in way.reaches:
                raws = [either_way(raw, values.shape) for raw in self._on(way, line.eps, index).raws(step_id)]
                judged = judge(line, raws, self.marker.rules[step_id])
                if judged.worst[0] > WRONG:
                    refused = bool(self._on_the_way(self.trivial, step_id)[row])
                    self.verdicts[row][step_id] = Verdict(judged.cells[0], follows=True, refused=refused, how="carried")
                    self._mark_bad(step_id, row)
                    chains = way.family(self.own[line.eps]).chains
                    for chain in chains[: len(chains) // 2]:  # the others go on by head
                        chain.give(step_id, values)
                    return
        wrong = self._wrong(step_id, line, index, is_apart=bool(self._apart(step_id)[row]), spread=np.zeros(1))
        singles = self.marker.explainer.singles(wrong)
        slips = self._beside_slips(wrong, singles, [0]).get(0, [])
        found = _found(wrong, singles[0], slips)
        self.verdicts[row][step_id] = Verdict(np.full(values.shape[1:], WRONG, dtype=np.int8), found=tuple(found))
        if not found:
            return
        self._mark_bad(step_id, row)
        transposed = values.swapaxes(-1, -2)
        if any(one.named[0].id == "layout-transposed" for one in found) and (
            transposed.shape[1:] == self.lineage.shapes[step_id]
        ):
            self._remember(index, {}, [step_id], {step_id: transposed})
            return
        for one in found:
            self._remember(index, _elsewhere(one, step_id), [step_id], {step_id: values})
            if one.swap:
                self._remember(index, one.swap, [step_id])

    def _mark_bad(self, step_id: str, row: int) -> None:
        self.bad.setdefault(step_id, self._none())[row] = True


def _found(wrong: WrongLine, single: Explained, slips: Sequence[Slip]) -> list[Found]:
    """The mistakes and the slips of writing that explain one sheet's line."""
    return [*single.found, *(Found((Named(wrong.step_id, slip.id),), {}) for slip in slips)]


def _elsewhere(found: Found, step_id: str) -> dict[str, Swap]:
    """What of a mistake is made at other steps than this one."""
    return {at: swap for at, swap in found.swap.items() if at != step_id}


def _close_to(raws: Sequence[Value], beside_it: Sequence[Value], reach: float) -> list[Value]:
    """The others beside the first of these numbers, for sheets where they are so close that somebody may be in between."""
    found = []
    for other in beside_it:
        if raws and raws[0].shape[1:] == other.shape[1:]:
            with np.errstate(invalid="ignore"):
                close = (np.abs(raws[0] - other) <= reach) | (raws[0] == other)
            found.append(np.where(beside(in_all(close), close), other, raws[0]))
    return found
