"""Sheets that deserve nothing, and which points of a marked sheet are deserved. Nothing of the marker is used here.

A point is deserved where every written cell is what right people come to (`habits.reached`), where it follows from the
sheet's own wrong lines in the same sense, or, for half of it, where it says less but nothing false.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from habits import CUT, UP, Reach, page, reached, routes, shortened
from learner import Case, Learner, lines
from reach import asked_by, reach


@dataclass
class Written:
    """One line as it stands on a sheet: the numbers, the text, how many places it shows, and what it was rounded from."""

    values: Any
    text: str
    places: int
    before: Any = None

    @staticmethod
    def of(values: Any, places: int, way: str = UP) -> Written:
        values = np.asarray(values, dtype=float)
        return Written(
            shortened(values, places, way).reshape(np.shape(values)), page(values, places, way), places, values
        )


Sheet = dict[str, Written]


@dataclass
class Exercise:
    """An exercise with what right people reach in it."""

    case: Case
    decimals: int
    ids: list[str]  #: lines that may be asked
    count: int = 100
    _bounds: dict[str, Any] = field(default_factory=dict)
    _routes: list[Any] | None = None

    @cached_property
    def reach(self) -> dict[str, Reach]:
        return reached(self.case, self.decimals, self.count)

    @cached_property
    def full(self) -> dict[str, Any]:
        return {
            id: np.atleast_2d(value) for id, value in Learner(self.case, self.decimals).run().items() if id in self.ids
        }

    @cached_property
    def asked(self) -> dict[str, set[str]]:
        """What every line is worked out from."""
        given = self.case.known if self.case.root is None else {**self.case.known, "root": self.case.root}
        return asked_by({**given, **Learner(self.case, self.decimals).run()}, list(lines(self.case)))

    def unseen(self, id: str) -> Iterator[dict[str, Reach]]:
        """What people reach in a line by each other right way that does not show in it; a Q that was scaled early shows in
        nothing that is written but, where it was rounded, in its last digits."""
        if self._routes is None:
            found = [way for way in routes(self.case, random.Random(1)) if way.name]
            self._routes = [(way, None) for way in found]
        for at, (way, there) in enumerate(self._routes):
            touched = {line.rpartition(".")[2] for line in (*way.lines, *way.unwritten)} | {"shifted", "exp", "row_sum"}
            if id.rpartition(".")[2] in touched and not (way.name == "Q scaled early" and id.endswith("scaled")):
                continue
            if there is None:
                there = reached(self.case, self.decimals, 30, way.lines)
                self._routes[at] = way, there
            yield there

    def bound(self, id: str) -> Any:
        """How far rounding every number on the way can move a line at most, cutting off and all, to first order."""
        if id not in self._bounds:
            with np.errstate(all="ignore"):
                self._bounds[id] = 2.2 * reach(self.case, id, self.decimals) + 10.0**-self.decimals
        return self._bounds[id]


# Cheating ---------------------------------------------------------------------------------------------------------


def _one_hot(shape: tuple[int, ...], column: int = 0) -> Any:
    out = np.zeros(shape)
    out[..., column % shape[-1]] = 1
    return out


def cheating(exercise: Exercise, rng: random.Random) -> Iterator[tuple[str, Sheet]]:
    """Sheets of every dishonest kind, all lines filled in alike."""
    full, d = exercise.full, exercise.decimals
    unit = 10.0**-d

    def all_lines(fill: Any, places: int = d, way: str = UP) -> Sheet:
        return {id: Written.of(fill(value), places, way) for id, value in full.items()}

    def finite(value: Any) -> Any:
        return np.where(np.isfinite(value), value, 0.0)

    places = rng.choice((0, d))
    yield "nothing", {}
    yield "zeros", all_lines(np.zeros_like, places)
    yield "ones", all_lines(np.ones_like, places)
    yield "identity", all_lines(lambda v: np.broadcast_to(np.eye(*v.shape[-2:]), v.shape), places)
    column = rng.randrange(3)
    yield "one-hot", all_lines(lambda v: _one_hot(v.shape, column), places)
    yield "all equal", all_lines(lambda v: np.full(v.shape, rng.choice((0.5, 0.3, 2.0, -1.0))), d)
    yield "uniform rows", all_lines(lambda v: np.full(v.shape, 1 / v.shape[-1]), d)
    yield "one unit too small", all_lines(lambda v: shortened(v, d, UP).reshape(v.shape) - unit)
    yield "one unit too large", all_lines(lambda v: shortened(v, d, UP).reshape(v.shape) + unit)
    yield "one too small", all_lines(lambda v: shortened(v, d, UP).reshape(v.shape) - 1)
    for fewer in sorted({0, max(0, d - 1), max(0, d - 2)} - {d}):
        yield f"cut stumps, {d - fewer} places fewer", all_lines(lambda v: v, fewer, CUT)
    size = {id: max(float(np.abs(finite(v)).mean()), 0.2) for id, v in full.items()}
    draw = np.random.default_rng(rng.getrandbits(32))
    yield (
        "random numbers",
        {id: Written.of(draw.normal(0, size[id], v.shape), d) for id, v in full.items()},
    )
    positive = {id: Written.of(np.abs(draw.normal(0, size[id], v.shape)), d) for id, v in full.items()}
    yield "random positive numbers", positive
    yield "random weights", all_lines(lambda v: draw.dirichlet(np.ones(v.shape[-1]), v.shape[:-1]))
    yield "infinite", all_lines(lambda v: np.full(v.shape, rng.choice((np.inf, -np.inf))))
    yield "infinite first, then right", _infinite_then_right(exercise, rng)
    yield "trivial first, then what follows", _trivial_then_following(exercise, rng)
    shuffled = list(full)
    rng.shuffle(shuffled)
    yield "another line's numbers", _lines_of_others(full, shuffled, d)
    yield "the same line twice", _doubled(full, d)
    yield (
        "wrong shapes",
        {id: Written.of(np.concatenate([finite(v), finite(v)[..., :1, :]], -2), d) for id, v in full.items()},
    )
    yield "one row only", {id: Written.of(v.reshape(1, -1), d) for id, v in full.items()}
    yield "signs turned", all_lines(lambda v: -v)


def _infinite_then_right(exercise: Exercise, rng: random.Random) -> Sheet:
    """Infinite lines up to somewhere, and uniform weights and means from there on."""
    full = exercise.full
    first = rng.randrange(1, max(2, len(full) // 2))
    out = {}
    for i, (id, v) in enumerate(full.items()):
        short = id.rpartition(".")[2]
        fill = np.full(v.shape, np.inf) if i < first else np.full(v.shape, 1 / v.shape[-1] if short == "A" else 0.5)
        out[id] = Written.of(fill, exercise.decimals)
    return out


def _trivial_then_following(exercise: Exercise, rng: random.Random) -> Sheet:
    """One trivial line (zeros, equal, one-hot, in one row perhaps), and all the rest worked out from it rightly."""
    from habits import Manner, Person

    full, d = exercise.full, exercise.decimals
    ids = list(full)
    at = rng.choice(ids[: max(1, 2 * len(ids) // 3)])
    v = full[at]
    way = rng.choice(("zeros", "equal", "one-hot"))
    fill = {"zeros": np.zeros(v.shape), "equal": np.full(v.shape, 0.5), "one-hot": _one_hot(v.shape, rng.randrange(3))}[
        way
    ]
    if v.shape[-2] > 1 and rng.random() < 0.4:
        fill = np.concatenate([fill[..., :1, :], shortened(v, d, UP).reshape(v.shape)[..., 1:, :]], -2)
    own = {at: fill.reshape(np.shape(Learner(exercise.case, d).run()[at]))}
    values = Person(exercise.case, Manner(d, 0), own=own).run()
    out = {}
    for id in ids:
        value = fill if id == at else np.atleast_2d(values[id])
        if not np.isnan(value).any():
            out[id] = Written.of(value, d)
    return out


def _lines_of_others(full: dict[str, Any], order: list[str], places: int) -> Sheet:
    out = {}
    for id, value in full.items():
        other = next((o for o in order if o != id and full[o].shape == value.shape), None)
        if other is not None:
            out[id] = Written.of(full[other], places)
    return out


def _doubled(full: dict[str, Any], places: int) -> Sheet:
    """Each line copied into the next one of its shape."""
    out, last = {}, {}
    for id, value in full.items():
        copied = last.get(value.shape, value)
        out[id] = Written.of(copied, places)
        last[value.shape] = value
    return out


def off_by_one(exercise: Exercise, rng: random.Random, most: int = 12) -> Iterator[tuple[str, Sheet]]:
    """One unit off in one cell, where no right person comes to that: alone, and in the midst of a right sheet."""
    d, unit = exercise.decimals, 10.0**-exercise.decimals
    found = []
    for id, v in exercise.full.items():
        right = shortened(v, d, UP).reshape(v.shape)
        for cell in np.ndindex(v.shape):
            if not np.isfinite(v[cell]):
                continue
            for step in (unit, -unit):
                moved = right.copy()
                moved[cell] += step
                if not exercise.reach[id].honest(moved.reshape(exercise.reach[id].full.shape), d, guard=2.0).all():
                    found.append((id, moved))
    rng.shuffle(found)
    whole = {id: Written.of(v, d) for id, v in exercise.full.items()}
    for id, moved in found[:most]:
        off = Written.of(moved, d)
        yield (
            ("one unit off in one cell", {id: off})
            if rng.random() < 0.5
            else (
                "one unit off in one cell of a right sheet",
                {**whole, id: off},
            )
        )


# What is deserved -------------------------------------------------------------------------------------------------


def undeserved(exercise: Exercise, sheet: Sheet, steps: Any) -> list[tuple[str, str, float]]:
    """Steps with points that nothing written deserves: (step, verdict, points)."""
    found: list[tuple[str, str, float]] = []
    own: list[dict[str, Reach]] | None = None
    for step in steps:
        points = float(step.points)
        if points == 0 or step.id not in sheet:
            continue
        line = sheet[step.id]
        if deserved(exercise, step.id, line, points < float(step.max_points), exercise.reach):
            continue
        if any(deserved(exercise, step.id, line, False, there) for there in exercise.unseen(step.id)):
            continue
        if own is None:
            own = list(_own_reaches(exercise, sheet))
        if not _trivial(exercise, sheet, step.id) and any(
            deserved(exercise, step.id, line, True, there) for there in own
        ):
            continue
        found.append((step.id, step.verdict, points))
    return found


def deserved(exercise: Exercise, id: str, line: Written, half: bool, people: dict[str, Reach]) -> bool:
    """Whether a line deserves its points, `half` of them or all."""
    there = people.get(id)
    if there is None:
        return False
    shape, d = there.full.shape, exercise.decimals
    values = line.values
    if values.shape != shape and values.size == there.full.size and 1 in np.atleast_2d(there.full).shape[-2:]:
        values = values.reshape(shape)
    if values.shape != shape:
        return False
    places = min(line.places, d)
    if line.places >= d or there.honest(values, d, 1.5).all():
        if there.honest(values, d, 1.5).all() or by_another_way(exercise, id, values):
            return True
        with np.errstate(invalid="ignore"):
            within = np.abs(values - there.full) <= exercise.bound(id) + 10.0**-d
        within |= values == there.full
        lost = (values == 0) & (shortened(there.full, d, CUT).reshape(shape) != 0)
        return half and people is exercise.reach and bool((within & ~lost).all())
    lost = (values == 0) & (shortened(there.full, d, UP).reshape(shape) != 0)
    return half and bool((there.honest(values, places, 1.5) & ~lost).all())


def by_another_way(exercise: Exercise, id: str, values: Any) -> bool:
    """Another right way: another number taken away from each row, or none; scores of a Q that was scaled early."""
    p, _, short = id.rpartition(".")
    p = f"{p}." if p else ""
    if short == "scores" and f"{p}scaled" in exercise.reach:  # Q divided before the product
        early = exercise.reach[f"{p}scaled"]
        return values.shape == early.full.shape and bool(early.honest(values, exercise.decimals).all())
    if short == "masked" and f"{p}scores" in exercise.reach:  # masked before the scale
        bare = exercise.reach[f"{p}scores"]
        hidden = np.isneginf(exercise.reach[id].full)
        return values.shape == hidden.shape and bool((bare.honest(values, exercise.decimals) | hidden).all())
    if short not in ("shifted", "exp", "row_sum", "row_max") or f"{p}shifted" not in exercise.reach:
        return False
    shifted, exact = exercise.reach[f"{p}shifted"].full, exercise.reach[id].full
    unit = 10.0**-exercise.decimals
    source = next((v for k in ("masked", "scaled", "scores") if (v := exercise.full.get(p + k)) is not None), None)
    if short == "row_max":
        scaled = exercise.full.get(f"{p}scaled")
        return scaled is not None and bool((np.abs(values - scaled.max(-1, keepdims=True)) <= 2 * unit).all())
    with np.errstate(all="ignore"):
        if short == "row_sum":
            if source is None:
                return False
            bare = [source, source - (exercise.full.get(f"{p}scaled", source)).max(-1, keepdims=True)]
            sums = [np.exp(one).sum(-1, keepdims=True).reshape(exact.shape) for one in bare]
            return any(bool((np.abs(values / one - 1) < 5 * unit).all()) for one in sums)
        by = values - shifted if short == "shifted" else np.log(values) - np.log(exact)
        wide = 4 * unit if short == "shifted" else np.log1p(4 * unit / np.maximum(values, unit / 10))
        by = np.where(np.isfinite(exact) & (exact != 0 if short == "exp" else True), by, np.nan)
        if np.isnan(by).all():
            return False
        spread = np.nanmax(by - wide / 2, -1) - np.nanmin(by + wide / 2, -1)
        return bool((spread <= 0).all() and ((values == 0) >= (exact == 0)).all() and np.isfinite(by[exact != 0]).all())


def _own_reaches(exercise: Exercise, sheet: Sheet) -> Iterator[dict[str, Reach]]:
    """What people reach who go on from every line of the sheet: as written, or with the digits that it was rounded from.
    Who has not scaled does not scale on the way back either."""
    page_, before = {}, {}
    for id, line in sheet.items():
        shape = exercise.reach[id].full.shape
        if line.values.size == int(np.prod(shape)):
            page_[id] = line.values.reshape(shape)
            before[id] = page_[id] if line.before is None else np.asarray(line.before, dtype=float).reshape(shape)
    wrong = {}
    for id, own in page_.items():
        p, _, short = id.rpartition(".")
        p = f"{p}." if p else ""
        scaled = page_.get(f"{p}scaled")
        if short == "G_scores" and scaled is not None and np.array_equal(scaled, page_.get(f"{p}scores", own)):
            wrong[id] = lambda g, id=id: g(id.replace("G_scores", "G_scaled"))
    for own in (page_, before):
        yield reached(exercise.case, exercise.decimals, 10, own=own)
        if wrong:
            yield reached(exercise.case, exercise.decimals, 10, wrong, own)


def trivial_rows(values: Any, true: Any) -> bool:
    """Whether a row is all zero, all equal or one-hot where the true one is not (or is another)."""
    values, true = np.atleast_2d(values), np.atleast_2d(true)
    if values.shape != true.shape or values.shape[-1] == 1:
        return bool(values.shape == true.shape and ((values == 0) & (np.abs(true) > 1e-12)).any())
    return any(
        _is_trivial(row) and not _is_trivial(right)
        for row, right in zip(values.reshape(-1, values.shape[-1]), true.reshape(-1, true.shape[-1]), strict=True)
    )


def _is_trivial(row: Any) -> bool:
    """Whether a row, or what is visible of it, is one number again and again, a single one, or one-hot."""
    visible = row[np.isfinite(row)]
    if not len(visible) or (visible == visible[0]).all():
        return True
    nonzero = row[row != 0]
    return bool(len(nonzero) == 1 and nonzero[0] == 1)


def _trivial(exercise: Exercise, sheet: Sheet, id: str) -> bool:
    """Whether a line of the sheet that this one is worked out from is trivial where the true one is not."""
    waiting, seen = list(exercise.asked.get(id, ())), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        line = sheet.get(name)
        if line is None:
            waiting += exercise.asked.get(name, ())
        elif name in exercise.full:
            true = np.atleast_2d(exercise.full[name])
            on_page = shortened(true, exercise.decimals, UP).reshape(true.shape)
            if trivial_rows(line.values, true) and trivial_rows(line.values, on_page):
                return True
    return False
