"""The second pass over sheets in which something is wrong: what went wrong, and what follows from the learners' own lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Value
from attncli.core.graph import Swap
from attncli.core.matrix import BoolArray
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain, Family, of_sheets
from attncli.marking.distance import either_way, is_one_of, off
from attncli.marking.explain import NOTHING, Explained, Found, Named, Numbers
from attncli.marking.judge import CUT, IMPRECISE, RIGHT, WRONG, Judged, Line, judge, spread_of
from attncli.marking.papers import trivial_rows
from attncli.marking.right_pass import RightPass
from attncli.marking.seeds import reconsidered
from attncli.marking.slips import NOT, SHORT, Slip, may_hold_slips, slips_of
from attncli.marking.verdict import Verdict, Verdicts

#: Units within which what is carried on with all digits and what stands on the page are mixed.
_BESIDE = 3.0
#: Units of the last place written within which a number is a round one.
_ROUND = 1e-6
#: Units within which a line is its slip with all digits, rounded or cut off; √2 may be rounded otherwise at each use.
_BESIDE_SLIP = 2.0
#: Units of the last place beyond which a right line speaks against a mistake that would have shown in it.
_SURELY = 3.0


class Way(Record):
    """How some sheets may go on from a wrong line: with a mistake made again, or with its own unrounded numbers.

    Parameters
    ----------
    rows : which sheets
    swap : what is calculated instead
    free : steps that are not carried on as written
    given : numbers of an odd shape that are carried on
    """

    rows: Any
    swap: Mapping[str, Swap]
    free: frozenset[str]
    given: Mapping[str, Any]


class OwnPass:
    """The second pass, over the sheets in which something is wrong: what follows from what they wrote."""

    def __init__(self, first: RightPass, rows: Sequence[int]) -> None:
        self.first = first
        self.marker = first.marker
        self.rows = np.asarray(rows)
        self.papers = [first.papers[row] for row in rows]
        # Right lines are carried on as written or by head, wrong ones as written.
        self.page = {eps: self.marker.from_page(eps, head) for eps, head in first._head.items()}
        self.head = {eps: self.marker.from_page(eps, head) for eps, head in first._head.items()}
        self.own = {eps: Family(self.page[eps].chains + self.head[eps].chains) for eps in first._head}
        self.right = {eps: family.fork(rows=self.rows) for eps, family in first._right.items()}
        self.verdicts: list[Verdicts] = [{} for _ in rows]
        #: Which sheets are not right at a step, and which of these for no reason further up.
        self.bad: dict[str, BoolArray] = {}
        self.astray: dict[str, BoolArray] = {}
        self.trivial: dict[str, BoolArray] = {}
        #: Which sheets go on from a step with what they wrote, and with nothing else.
        self.kept: dict[str, BoolArray] = {}
        #: Which sheets went on from a line with too few places.
        self.short: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        #: Which sheets hold a line that no known calculation leads to.
        self.unnamed: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        self.ways: list[Way] = []
        self._families: dict[int, Family] = {}

    def run(self) -> list[Verdicts]:
        """By sheet, the verdict of every line that could be read."""
        for step_id in self.marker.ids:
            line = self.first.lines.get(step_id)
            if line is not None:
                self._line(step_id, line.of(self.rows))
            for row, paper in enumerate(self.papers):
                entry = paper.entries.get(step_id)
                if entry is not None and entry.odd:
                    self._odd(step_id, row)
        return self.verdicts

    def _line(self, step_id: str, line: Line) -> None:
        judged = self.first.judged[step_id]
        worst = judged.worst[self.rows]
        for row in np.flatnonzero(line.has).tolist():
            self.verdicts[row][step_id] = self.first.verdict(step_id, int(self.rows[row]))
        if step_id in self.marker.graph.inputs:
            return
        not_right = line.has & (worst < CUT)
        apart = self._apart(step_id)
        followed = self._followed(step_id, line, not_right & apart)
        wrong = not_right & (worst == WRONG) & ~followed
        # What rounding may have come to is no other number than the right one: more digits of that may be carried on.
        made = not_right & ~followed & ((worst == WRONG) | self._has_fewer(step_id, line))
        if not_right.any():
            self.bad[step_id] = not_right
            self.astray[step_id] = not_right & ~followed
            # What only follows from a line above is what it is; stumps go on making zeros.
            self.trivial[step_id] = self._trivial(step_id, line, made | not_right & self.short)
        if wrong.any():
            self._explain(step_id, line, np.flatnonzero(wrong), apart)
        self.unnamed |= not_right & ~followed & ~wrong
        self.short |= not_right & self._has_fewer(step_id, line)
        as_written = made | self._against_own(step_id, line, line.has & ~not_right & apart)
        if as_written.any():
            self.kept[step_id] = as_written
        from_page = line.has if self.marker.reads_page else as_written
        for families, rows in ((self.page, from_page), (self.head, as_written)):
            if rows.any():
                where = line.shown(np.broadcast_to(rows.reshape(-1, *(1,) * (line.values.ndim - 1)), line.values.shape))
                for family in families.values():
                    family.give(step_id, line.values, None if where.all() else where)

    def _against_own(self, step_id: str, line: Line, rows: BoolArray) -> BoolArray:
        """Which of some right lines do not follow from the wrong ones above them: nobody goes on with what does."""
        found = np.zeros(len(rows), dtype=np.bool_)
        index = np.flatnonzero(rows)
        if index.size:
            judged = judge(line.of(index), self.own[line.eps].fork(rows=index).raws(step_id), self.first.rules(step_id))
            found[index] = judged.worst == WRONG
        return found

    def _has_fewer(self, step_id: str, line: Line) -> BoolArray:
        """Which sheets wrote a number with fewer places than asked, and than the number has."""
        if line.places is None:
            return np.zeros(len(line.values), dtype=np.bool_)
        fewer = (line.places >= 0) & (line.places < self.first.rules(step_id).decimals)
        if fewer.any():
            fewer &= ~self._is_held(step_id, line)
        return np.array(fewer.reshape(len(fewer), -1).any(1), dtype=np.bool_)

    def _is_held(self, step_id: str, line: Line) -> BoolArray:
        """Where the places written are as many as the right number has: nobody writes 5.000 for a whole number."""
        full = self.right[line.eps].chains[0].raw(step_id)
        if full.shape[1:] != line.values.shape[1:]:
            return np.zeros(line.values.shape, dtype=np.bool_)
        scaled = full * 10.0 ** np.asarray(line.places, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            return np.array(np.abs(scaled - np.rint(scaled)) <= _ROUND, dtype=np.bool_)

    def _apart(self, step_id: str) -> BoolArray:
        """Which sheets have a line that is not right on the way here, or one whose mistake is made again here."""
        found = np.zeros(len(self.rows), dtype=np.bool_)
        for other, rows in self.bad.items():
            if step_id in self.marker.lineage[other]:
                found |= rows
        for way in self.ways:
            if self._leads_to(way, step_id):
                found[way.rows] = True
        return found

    def _leads_to(self, way: Way, step_id: str) -> bool:
        """Whether a step is done otherwise on this way, or comes from one that is."""
        return step_id in way.swap or step_id in self.marker.lineage.after([*way.swap, *way.given, *way.free])

    def _refused(self, step_id: str) -> BoolArray:
        """Which sheets have a line on the way here that makes the rest trivial."""
        found = np.zeros(len(self.rows), dtype=np.bool_)
        for other, rows in self.trivial.items():
            if step_id in self.marker.lineage[other]:
                found |= rows
        return found

    def _trivial(self, step_id: str, line: Line, rows: BoolArray) -> BoolArray:
        """Which of some sheets have made the rest trivial here, in some row or in all of them."""
        found = np.zeros(len(self.rows), dtype=np.bool_)
        index = np.flatnonzero(rows)
        some, whole = trivial_rows(self.marker.rounded(step_id), line.values[index])
        found[index] = np.where(self.unnamed[index] | self.astray[step_id][index], some, whole)
        return found

    def _followed(self, step_id: str, line: Line, rows: BoolArray) -> BoolArray:
        """Which of some sheets are right from their own earlier values; their verdicts say so."""
        found = np.zeros(len(self.rows), dtype=np.bool_)
        if not rows.any():
            return found
        index = np.flatnonzero(rows)
        refused = self._refused(step_id)
        for places, judged in self._judged_own(step_id, line, index):
            fits = judged.worst > WRONG
            for at in np.flatnonzero(fits).tolist():
                row = int(index[places[at]])
                if not found[row]:
                    found[row] = True
                    how = "carried" if judged.worst[at] > CUT else "cut off"
                    self.verdicts[row][step_id] = self.verdicts[row][step_id].changed(
                        cells=self._as_short(step_id, row, line, judged.cells[at]),
                        follows=True,
                        refused=bool(refused[row]),
                        how=how,
                    )
            if found[index].all():
                break
        return found

    def _as_short(self, step_id: str, row: int, line: Line, cells: Any) -> Any:
        """A number with too few places stays one, also where the learner's own lines have no more."""
        if line.places is None or not self.short[row]:
            return cells
        fewer = (
            (line.places[row] >= 0) & (line.places[row] < self.first.rules(step_id).decimals) & (line.values[row] != 0)
        )
        return np.where(fewer & (cells > IMPRECISE), IMPRECISE, cells)

    def _judged_own(self, step_id: str, line: Line, index: Any) -> Iterator[tuple[Any, Judged]]:
        """The line of some sheets against what follows from their own numbers, way after way: which of them, and how."""
        rules = self.first.rules(step_id)
        part = line.of(index)
        own = self.own[line.eps].fork(rows=index)
        page, head = (family[line.eps].fork(rows=index).raws(step_id) for family in (self.page, self.head))
        judged = judge(part, page, rules, by_another_plan=head)
        hidden = self.marker.hidden_back.get(step_id)
        if hidden is not None:
            cells = judged.cells.copy()
            cells[np.broadcast_to(hidden, cells.shape) & (part.values == 0)] = RIGHT
            judged = judged.changed(cells=cells)
        judged = reconsidered(step_id, part, judged, own.chains[0], self._kept(index), rules)
        yield np.arange(len(index)), judged
        for number, way in enumerate(self.ways):
            places = np.flatnonzero(np.isin(index, way.rows) & (judged.worst == WRONG))
            if places.size and self._leads_to(way, step_id):
                yield (
                    places,
                    self._judged_way(
                        step_id, part.of(places), own, places, self._on(number, line.eps, index[places]), index[places]
                    ),
                )
        for route in self.marker.own_routes(step_id):
            places = np.flatnonzero(judged.worst == WRONG)
            if places.size:
                raws = self.own[line.eps].fork(rows=index[places]).fork(route.swap).raws(step_id)
                yield places, judge(part.of(places), raws, rules.changed(widened=False, short=False))

    def _kept(self, rows: Any) -> Mapping[str, BoolArray]:
        """The same of some sheets."""
        return {step_id: which[rows] for step_id, which in self.kept.items()}

    def _judged_way(self, step_id: str, line: Line, own: Family, places: Any, way: Family, rows: Any) -> Judged:
        """A line against one way on from a wrong line; then also between that and what stands on the page."""
        rules = self.first.rules(step_id)
        raws = [either_way(raw, line.values.shape) for raw in way.raws(step_id)]
        judged = judge(line, raws, rules)
        bad = np.flatnonzero(judged.worst == WRONG)
        if bad.size:
            raws, beside = of_sheets(raws, bad), of_sheets(own.raws(step_id), places[bad])
            both = [*raws, *_close_to(raws, beside, _BESIDE * 10.0**-rules.decimals)]
            judged = judged.replaced(bad, judge(line.of(bad), both, rules))
        return reconsidered(step_id, line, judged, way.chains[0], self._kept(rows), rules)

    def _on(self, number: int, eps: float | None, rows: Any) -> Family:
        """The numbers of a way for some of its sheets."""
        return self._family(number, eps).fork(rows=np.searchsorted(self.ways[number].rows, rows))

    def _family(self, number: int, eps: float | None) -> Family:
        """The numbers of a way; worked out when they are asked for."""
        found = self._families.get(number)
        if found is None:
            way = self.ways[number]
            found = self.own[eps].fork(rows=way.rows).fork(way.swap, free=way.free)
            for step_id, values in way.given.items():
                found.give(step_id, values)
            self._families[number] = found
        return found

    def _explain(self, step_id: str, line: Line, rows: Any, apart: BoolArray) -> None:
        """Name what went wrong, and remember the ways that the sheets may go on from here."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for row in rows.tolist():
            open_steps = tuple(self.marker.open_steps(step_id, self.papers[row].entries))
            groups.setdefault((open_steps, bool(apart[row])), []).append(row)
        for (open_steps, is_apart), members in groups.items():
            index = np.array(members)
            part = line.of(index)
            numbers = Numbers(
                self.own[line.eps].fork(rows=index),
                self.right[line.eps].fork(rows=index) if is_apart else None,
                self.first.judged[step_id].spread[self.rows[index]] * 10.0 ** -self.marker.lineage.places[step_id],
            )
            rules = self.first.rules(step_id)
            singles = self.marker.explainer.singles(step_id, part, numbers, rules, open_steps, self._kept(index))
            families = [family for family in (numbers.own, numbers.right) if family is not None]
            may_slip = may_hold_slips(step_id, part, families, numbers.spread, rules)
            early = self._too_early(step_id, part, numbers, [at for at, one in enumerate(singles) if one.tier == NOT])
            slips_of = self._beside_slips(step_id, part, numbers, singles, np.flatnonzero(may_slip))
            for at, row in enumerate(members):
                slipped = slips_of.get(at, [])
                found = [*singles[at].found, *(Found((Named(step_id, slip.id),), {}) for slip in slipped)]
                found = self._uncontradicted(step_id, row, found)
                if not found and early[at]:
                    found.append(Found((Named(step_id, "rounded-too-early"),), {}))
                self._settle(
                    step_id, row, found or self._two(step_id, part.of([at]), numbers, at, open_steps), numbers, at
                )
                if slipped and self._may_go_on_from(step_id, part.of([at]), slipped[0], numbers.own.chains[0], at):
                    swap = slipped[0].made_at(self.marker.graph.steps[step_id])
                    self.ways.append(Way(np.array([row]), swap, frozenset([step_id]), {}))
            self._remember(step_id, index, singles)

    def _may_go_on_from(self, step_id: str, line: Line, slip: Slip, full: Chain, at: int) -> bool:
        """Whether one sheet's line is its slip with all digits, rounded or cut off, so that these may be carried on."""
        if slip.id == "decimal-point":
            return True
        try:
            value = full.raw(step_id)
        except MISFITS:
            return False
        far = off(line, slip.of(value if len(value) == 1 else value[[at]]))
        return bool(far[0] < _BESIDE_SLIP * 10.0 ** -self.marker.lineage.places[step_id])

    def _too_early(self, step_id: str, line: Line, numbers: Numbers, rows: Sequence[int]) -> BoolArray:
        """Which of some sheets are right for lines before this one that were rounded to too few places."""
        found = np.zeros(len(line.values), dtype=np.bool_)
        rules = self.first.rules(step_id)
        if rows and rules.by_person and line.eps is None:
            index = np.array(rows)
            found[index] = self.marker.explainer.too_early(step_id, line.of(index), numbers.own.fork(rows=index), rules)
        return found

    def _beside_slips(
        self, step_id: str, line: Line, numbers: Numbers, singles: list[Explained], rows: Any
    ) -> dict[int, list[Slip]]:
        """What explains the line of some sheets, mistakes and slips of writing: the better of them, or both if they do it
        as well or come to the same. The slips, by sheet; of the mistakes, those that are left stay in `singles`."""
        kept: dict[int, list[Slip]] = {}
        for family in filter(None, (numbers.own, numbers.right)):
            left = np.array([row for row in rows.tolist() if row not in kept], dtype=np.intp)
            if not left.size:
                break
            explained = slips_of(step_id, line.of(left), family.fork(rows=left), self.first.rules(step_id))
            for at, one in explained.items():
                row = int(left[at])
                single = singles[row]
                as_well, better = max(single.tier, SHORT) == one.tier, one.tier < single.tier
                alike = [is_one_of(value, single.values) for value in one.values]
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
        written = self.papers[row].entries
        earlier = [at for at in swap if at != step_id and at not in written]
        if not earlier:
            return False
        rows = self.rows[[row]]
        for other, entry in written.items():
            if other == step_id or entry.odd or other not in self.marker.lineage.after(earlier):
                continue
            if not self.first.judged[other].worst[rows[0]] >= CUT:
                continue
            if not set(earlier).intersection(self.marker.open_steps(other, written)):
                continue
            right = self.first.right(entry.eps).fork(rows=rows)
            line = self.first.lines[other].of(rows)
            try:
                judged = judge(line, [right.chains[0].fork(swap).raw(other)], self.first.rules(other))
            except MISFITS:
                return True
            spread = spread_of(right.raws(other), 10.0 ** -self.marker.lineage.places[other])
            if judged.near[0] > _SURELY + 4 * spread[0]:
                return True
        return False

    def _two(self, step_id: str, line: Line, numbers: Numbers, at: int, open_steps: Sequence[str]) -> list[Found]:
        """Two things at once that explain one sheet's line."""
        explainer, rules, one = self.marker.explainer, self.first.rules(step_id), numbers.of(np.array([at]))
        if self.marker.parts_wrong(step_id, line, one.own.chains[0]):
            return []
        return explainer.with_slip(step_id, line, one, rules, open_steps) or explainer.pairs(
            step_id, line, one, rules, open_steps
        )

    def _settle(self, step_id: str, row: int, found: Sequence[Found], numbers: Numbers, at: int) -> None:
        """Keep what was found about a wrong line, and what follows from the lines above it."""
        one = numbers.of(np.array([at]))
        full = one.own.chains[0]
        try:
            expected = np.asarray(full.raw(step_id)[0], dtype=np.float64)
        except MISFITS:
            expected, full = None, self.first.right(None).chains[0].fork(rows=self.rows[[row]])
        verdict = self.verdicts[row][step_id]
        self.verdicts[row][step_id] = verdict.changed(found=tuple(found), expected=expected, chain=full, how=None)
        self.unnamed[row] |= not found
        if found and self.trivial[step_id][row]:
            _, whole = trivial_rows(self.marker.rounded(step_id), self.first.lines[step_id].values[self.rows[[row]]])
            self.trivial[step_id][row] = whole[0]

    def _remember(self, step_id: str, index: Any, singles: Sequence[Explained]) -> None:
        """Ways on from a wrong line that was explained: the mistake made alike later, or carried on with all digits."""
        by_mistake: dict[tuple[int, int], tuple[Found, list[int]]] = {}
        for at, single in enumerate(singles):
            for one in single.found:
                by_mistake.setdefault((one.turn, id(one.swap)), (one, []))[1].append(int(index[at]))
        # In the order in which they were tried: it must not depend on the sheets beside one.
        for one, members in sorted(by_mistake.values(), key=lambda way: way[0].turn):
            rows = np.array(sorted(set(members)))
            elsewhere = {at: swap for at, swap in one.swap.items() if at != step_id}
            if elsewhere:
                self.ways.append(Way(rows, elsewhere, frozenset(), {}))
            self.ways.append(Way(rows, one.swap, frozenset([step_id]), {}))

    def _odd(self, step_id: str, row: int) -> None:
        """A line whose shape is not the step's: what a mistake gives, or nothing that can be marked."""
        paper = self.papers[row]
        entry = paper.entries[step_id]
        values = entry.values[None]
        line = Line(
            values,
            None if entry.places is None else entry.places[None],
            None if entry.blank is None else entry.blank[None],
            np.ones(1, dtype=np.bool_),
            entry.eps,
        )
        index = np.array([row])
        for number, way in enumerate(self.ways):
            if row in way.rows and self._leads_to(way, step_id):
                raws = [either_way(raw, values.shape) for raw in self._on(number, entry.eps, index).raws(step_id)]
                judged = judge(line, raws, self.first.rules(step_id))
                if judged.worst[0] > WRONG:
                    refused = bool(self._refused(step_id)[row])
                    self.verdicts[row][step_id] = Verdict(judged.cells[0], follows=True, refused=refused, how="carried")
                    self._mark_bad(step_id, row)
                    chains = self._families[number].chains
                    for chain in chains[: len(chains) // 2]:  # the others go on by head
                        chain.give(step_id, values)
                    return
        is_apart = bool(self._apart(step_id)[row])
        own = self.own[entry.eps].fork(rows=index)
        numbers = Numbers(
            own,
            self.right[entry.eps].fork(rows=index) if is_apart else None,
            np.zeros(1),
        )
        open_steps = self.marker.open_steps(step_id, paper.entries)
        rules = self.first.rules(step_id)
        singles = self.marker.explainer.singles(step_id, line, numbers, rules, open_steps, self._kept(index))
        slipped = self._beside_slips(step_id, line, numbers, singles, np.arange(1)).get(0, [])
        found = [*singles[0].found, *(Found((Named(step_id, slip.id),), {}) for slip in slipped)]
        self.verdicts[row][step_id] = Verdict(np.full(entry.values.shape, WRONG, dtype=np.int8), found=tuple(found))
        if not found:
            return
        self._mark_bad(step_id, row)
        turned = next((one for one in found if one.named[0].id == "layout-transposed"), None)
        if turned is not None and values.swapaxes(-1, -2).shape[1:] == self.marker.shapes[step_id]:
            self.ways.append(Way(index, {}, frozenset([step_id]), {step_id: values.swapaxes(-1, -2)}))
            return
        for one in found:
            elsewhere = {at: swap for at, swap in one.swap.items() if at != step_id}
            self.ways.append(Way(index, elsewhere, frozenset([step_id]), {step_id: values}))
            if one.swap:
                self.ways.append(Way(index, one.swap, frozenset([step_id]), {}))

    def _mark_bad(self, step_id: str, row: int) -> None:
        for which in (self.bad, self.astray):
            which.setdefault(step_id, np.zeros(len(self.rows), dtype=np.bool_))[row] = True


def _close_to(raws: Sequence[Value], beside: Sequence[Value], reach: float) -> list[Value]:
    """The others beside the first of these numbers, for sheets where they are so close that somebody may be in between."""
    found = []
    for other in beside:
        if raws and raws[0].shape[1:] == other.shape[1:]:
            with np.errstate(invalid="ignore"):
                close = (np.abs(raws[0] - other) <= reach) | (raws[0] == other)
            close = close.reshape(len(close), -1).all(1).reshape(-1, *(1,) * (close.ndim - 1))
            found.append(np.where(close, other, raws[0]))
    return found
