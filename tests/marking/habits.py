"""People who calculate rightly, each in a way of their own: what they round, how, and what they write down.

Bare NumPy on top of `learner`; nothing of attncli is used here. FORMATS, "Judging a rounded number: both ways", says
which ways are right: at each line the full value, or the value rounded at the places asked or one to three more (half
away from zero, half to even), or cut off, is carried on; a line of the sheet is carried on as written or in full.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from learner import Case, Learner, Line, lines

UP, EVEN, CUT, FULL = "half up", "half even", "cut", "full"


@dataclass(frozen=True)
class Habit:
    """How one line is carried on: in full, or rounded or cut at the places asked and `more`."""

    way: str = FULL
    more: int = 0

    def __str__(self) -> str:
        return self.way if self.way == FULL else f"{self.way} +{self.more}"


STEADY = (Habit(), *(Habit(way, more) for more in range(4) for way in (UP, EVEN, CUT)))


def shortened(values: Any, places: int, way: str) -> Any:
    """Numbers rounded or cut at these places, as a person does it who sees the decimals; infinities and NaN stay."""
    values = np.atleast_1d(np.asarray(values, dtype=float))
    if way == FULL:
        return values
    with np.errstate(all="ignore"):
        units = np.abs(values) * 10.0**places
        near = np.rint(units)
        # 0.3 is 0.3 on a calculator, whatever its last bit says; 0.5 units is a tie.
        fuzz = 1e-7 + np.abs(units) * 1e-13
        if way == CUT:
            whole = np.where(np.abs(units - near) < fuzz, near, np.floor(units))
        else:
            below = np.floor(units)
            tie = np.abs(units - below - 0.5) < fuzz
            away = below + 1
            whole = np.where(tie, away if way == UP else below + below % 2, near)
        out = np.copysign(whole / 10.0**places, values)
    return np.where(np.isfinite(values), out, values) + 0.0


def page(values: Any, places: int, way: str = UP) -> str:
    """A matrix as it is written down; heads separated by a bar."""
    values = np.atleast_2d(shortened(values, places, way))

    def cell(v: float) -> str:
        return f"{v + 0.0:.{places}f}" if np.isfinite(v) else ("-inf" if v < 0 else "inf" if v > 0 else "nan")

    def rows(of: Any) -> str:
        return "; ".join(" ".join(cell(v) for v in row) for row in of)

    return rows(values) if values.ndim == 2 else " | ".join(map(rows, values))


#: How people differ: one habit throughout, one a line, one a use, one a cell, or their own sheet as it stands.
STYLES = ("steady", "steady", "by line", "by line", "by use", "by cell", "as written", "as written by line")


@dataclass
class Manner:
    """Everything that makes one person's sheet differ from another's that is as right."""

    decimals: int
    seed: int
    style: str = "steady"
    habit: Habit = Habit()
    root: Habit = Habit()  #: of √d_k
    on_page: str = UP
    places: int | None = None  #: written places, where these are more than asked
    written: frozenset[str] = frozenset()  #: lines that stand on the sheet
    route: str = ""

    @property
    def page_places(self) -> int:
        return self.decimals if self.places is None else self.places

    def __str__(self) -> str:
        on = f"{self.on_page}{'' if self.places is None else f' at {self.places}'}"
        return f"{self.style} ({self.habit}), √d_k {self.root}, page {on}{self.route and f', {self.route}'}"


def manner(rng: random.Random, decimals: int, ids: Sequence[str] = ()) -> Manner:
    """Somebody at random."""
    style = rng.choice(STYLES)
    habit = rng.choice(STEADY)
    cutter = habit.way == CUT and style in ("steady", "as written") and rng.random() < 0.8
    places = decimals + rng.randint(1, 3) if rng.random() < 0.08 else None
    return Manner(
        decimals,
        rng.getrandbits(32),
        style,
        habit,
        rng.choice(STEADY),
        CUT if cutter else rng.choice((UP, UP, EVEN)) if rng.random() < 0.93 else CUT,
        places,
        frozenset(ids),
    )


class Person(Learner):
    """A learner of this manner. `own`: lines as they stand on the page, wrong ones too, that are carried on as such."""

    def __init__(
        self,
        case: Case,
        how: Manner,
        wrong: Mapping[str, Line] | None = None,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(case, how.decimals, "full", how.seed, dict(wrong or {}))
        self.how, self.own = how, dict(own or {})

    def _use(self, line: str, name: str) -> Any:
        how = self.how
        if name in self.own:
            return self.own[name]
        if how.style == "by use":
            return self._shortened(f"{line}:{name}", name, self.raw[name])
        if name not in self.paper:
            self.paper[name] = self._shortened(name, name, self.raw[name])
        return self.paper[name]

    def _noted(self, line: str, label: str, value: Any) -> Any:
        return self._shortened(f"{line}/{label}", "", value)

    def _shortened(self, key: str, name: str, value: Any) -> Any:
        how = self.how
        if name == "root":
            return self._by(how.root, value)
        if how.style.startswith("as written") and name in how.written:
            return shortened(value, how.page_places, how.on_page).reshape(np.shape(value))
        on_page = name in how.written
        if how.style in ("steady", "as written"):
            return self._by(how.habit, value, on_page)
        rng = random.Random(f"{how.seed}:{key}")
        if how.style != "by cell":
            return self._by(rng.choice(STEADY), value, on_page)
        value = np.asarray(value, dtype=float)
        several = [self._by(rng.choice(STEADY), value, on_page) for _ in range(3)]
        pick = np.random.default_rng(rng.getrandbits(32)).integers(0, 3, value.shape)
        return np.choose(pick, several)

    def _by(self, habit: Habit, value: Any, on_page: bool = False) -> Any:
        if habit.way == FULL:
            return value
        if on_page and habit.more == 0:  # nobody carries on 0.3447 who has just written 0.3448
            return shortened(value, self.how.page_places, self.how.on_page).reshape(np.shape(value))
        return shortened(value, self.decimals + habit.more, habit.way).reshape(np.shape(value))


# Other right ways -------------------------------------------------------------------------------------------------


@dataclass
class Route:
    """Another right way: lines worked out differently, and lines that nobody on it writes."""

    name: str
    lines: dict[str, Line] = field(default_factory=dict)
    unwritten: frozenset[str] = frozenset()


def routes(case: Case, rng: random.Random) -> list[Route]:
    """The other right ways that there are in this exercise; each taken in every part that has one."""
    ids = [id for id, _ in lines(case)]
    found = [Route("")]
    for id in ids:
        if not id.endswith("shifted"):
            continue
        p = id.removesuffix("shifted")
        source = f"{p}masked" if f"{p}masked" in ids else f"{p}scaled" if f"{p}scaled" in ids else None
        if source is None:
            source = "scores" if "scores" in case.inputs else "logits" if "logits" in ids else f"{p}scores"
        found += _of_softmax(p, source, ids, rng)
        if f"{p}scaled" in ids and f"{p}scores" in ids and case.exercise is None:
            found += _of_scale(case, p, ids)
        if f"{p}masked" in ids and case.hidden is not None and case.bias is None and case.exercise is None:
            found += _of_mask(case, p, ids)
    return found


def _of_softmax(p: str, source: str, ids: list[str], rng: random.Random) -> Iterator[Route]:
    beside = frozenset({f"{p}row_max", f"{p}shifted"})
    yield Route("no maximum", {f"{p}shifted": lambda g: g(source)}, beside)
    constant = rng.choice((1.0, 2.0, -1.0, 0.5))
    yield Route("another constant", {f"{p}shifted": lambda g: g(source) - constant}, beside - {f"{p}shifted"})
    if source.endswith("masked") and f"{p}scaled" in ids:
        yield Route("maximum before masking", {f"{p}row_max": lambda g: g(f"{p}scaled").max(-1, keepdims=True)})


def _of_scale(case: Case, p: str, ids: list[str]) -> Iterator[Route]:
    q, k, _ = case.names
    early: Line = lambda g: (g.aside("Q/√d", g(q) / g("root"))) @ np.swapaxes(g(k), -1, -2)  # noqa: E731
    yield Route("Q scaled early", {f"{p}scaled": early}, frozenset({f"{p}scores"}))


def _of_mask(case: Case, p: str, ids: list[str]) -> Iterator[Route]:
    hidden = case.hidden

    def put(number: float, name: str) -> Line:
        return lambda g: np.where(hidden, number, g(name))

    before = {f"{p}masked": put(-np.inf, f"{p}scores"), f"{p}shifted": _scaled_later(p)}
    before[f"{p}row_max"] = lambda g: (g(f"{p}masked") / g("root")).max(-1, keepdims=True)
    yield Route("mask before scale", before, frozenset({f"{p}scaled"}))
    for number in (-1e9, -1e4, -1e30):
        yield Route(f"{number:g} for -inf", {f"{p}masked": put(number, f"{p}scaled")})
    added: Line = lambda g: g(f"{p}scaled") + np.where(hidden, -1e9, 0.0)  # noqa: E731
    yield Route("-1e9 added", {f"{p}masked": added})


def _scaled_later(p: str) -> Line:
    return lambda g: g.aside("scaled", g(f"{p}masked") / g("root")) - g(f"{p}row_max")


# What right people reach ------------------------------------------------------------------------------------------


@dataclass
class Reach:
    """The smallest and the largest number that right people came to in each cell of a line, and the full value."""

    low: Any
    high: Any
    full: Any

    def honest(self, written: Any, decimals: int, guard: float = 1.0) -> Any:
        """For each cell, whether a right calculation comes to it at the places asked.

        Rounded or cut off there; between what people reached, widened on each side by `guard` times the distance.
        """
        unit = 10.0**-decimals
        if np.shape(written) != np.shape(self.full):
            return np.zeros(np.shape(written), dtype=bool)
        with np.errstate(all="ignore"):
            wide = self.high - self.low
            low, high = self.low - guard * wide, self.high + guard * wide
            cut_low, cut_high = (
                np.where(low > 0, unit * (1 - 1e-9), unit / 2),
                np.where(high < 0, unit * (1 - 1e-9), unit / 2),
            )
            near = (written >= low - cut_low - 1e-10) & (written <= high + cut_high + 1e-10)
            # What is exact at the places asked for everybody has one value; so has an infinity.
            places = np.abs(self.full) * 10.0**decimals
            exact = (wide <= 1e-12 * np.maximum(1, np.abs(self.full))) & (np.abs(places - np.rint(places)) < 1e-6)
            same = np.abs(np.abs(written) * 10.0**decimals - np.rint(places)) < 1e-6
            same &= (np.rint(places) == 0) | (np.sign(written) == np.sign(self.full))
        infinite = ~np.isfinite(self.full)
        return np.where(infinite, written == self.full, np.where(exact, same, near))


def people(case: Case, decimals: int, count: int, seed: int = 0) -> Iterator[Manner]:
    """One of every steady habit, and `count` who mix."""
    rng = random.Random(f"people {seed}")
    for habit in STEADY:
        for root in dict.fromkeys((Habit(), habit)):
            yield Manner(decimals, rng.getrandbits(32), "steady", habit, root)
    for _ in range(count):
        style = rng.choice(("by line", "by use", "by cell"))
        yield Manner(decimals, rng.getrandbits(32), style, root=rng.choice(STEADY))


def reached(
    case: Case,
    decimals: int,
    count: int = 100,
    wrong: Mapping[str, Line] | None = None,
    own: Mapping[str, Any] | None = None,
    until: str | None = None,
    seed: int = 0,
) -> dict[str, Reach]:
    """What people reach in every line; with a mistake, those who make it; with lines of their own, those who go on from them."""
    full: dict[str, Any] = {}
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for how in people(case, decimals, count, seed):
        person = Person(case, how, wrong, own)
        try:
            values = person.run(until)
        except (ValueError, IndexError):
            values = {id: value for id, value in person.raw.items() if id != "root"}
        for id, value in values.items():
            value = np.asarray(value, dtype=float)
            if id not in full:
                full[id], low[id], high[id] = value, value, value
            elif value.shape == full[id].shape:
                # Who divides by a number that rounded to 0 stops there.
                usable = np.isfinite(value) | ~np.isfinite(full[id])
                low[id] = np.where(usable, np.minimum(low[id], value), low[id])
                high[id] = np.where(usable, np.maximum(high[id], value), high[id])
    return {id: Reach(low[id], high[id], full[id]) for id in full}
