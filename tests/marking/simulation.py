"""The marker held against a learner who makes one known mistake: python tests/marking/simulation.py --sheets N

Right sheets must never be rejected. On wrong ones: is the first wrong step found, the mistake named, named alone,
and the rest followed through? Exercises, right and wrong calculations come from `learner` and `wrongs`, bare NumPy.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP
from itertools import combinations
from pathlib import Path
from typing import Any

import cheats
import numpy as np
from every_step import marked_all, report
from habits import CUT, UP, Manner, Person, Route, manner, page, reached, routes, shortened
from learn_blocks import BLOCKS
from learn_forward import FEED_FORWARD
from learn_gpt import GPT
from learn_heads import MULTI_HEAD
from learn_latent import LATENT
from learn_layers import EXERCISES as LAYERS
from learner import (
    CARRYING,
    OUTPUT,
    Case,
    Learner,
    Line,
    Use,
    as_text,
    from_text,
    gradient_of,
    lines,
    make_case,
    rounded,
    t,
)
from reach import reach
from results import Tally, merged, section, with_sides
from wrongs import Kind, kinds

from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

#: What is drawn from, by name: a further file of exercises is a further name.
FAMILIES: dict[str, Callable[[random.Random], Case]] = {
    "attention": make_case,
    "wide": lambda rng: make_case(rng, most=rng.choice((12.0, 50.0))),
    "layers": lambda rng: rng.choice((*LAYERS, FEED_FORWARD, MULTI_HEAD, MULTI_HEAD)).draw(rng),
    "blocks": lambda rng: rng.choice((BLOCKS, BLOCKS, LATENT, GPT, GPT)).draw(rng),
}

#: Exercises of so many lines that each mistake has its turn wherever it stands, and not once for every line.
BY_ID = ("blocks",)

#: What happens where operands do not fit.
MISFITS = (ValueError, IndexError)

#: Nobody writes down larger numbers, which a sum near 0 may leave when it divides.
_LARGE = 1e9

FINE = ("correct", "route", "imprecise", "blank")
OUT = Path(__file__).with_name("RESULTS.md")


def problem(case: Case, decimals: int) -> Problem:
    """The exercise as a problem of attncli."""
    return Problem(
        case.model,
        {name: parse_matrix(text) for name, text in case.texts.items()},
        settings=case.settings,
        upstream=parse_matrix(case.upstream_text) if case.upstream_text else None,
        loss=case.loss or None,
        extras={"targets": parse_matrix(case.targets)} if case.targets else {},
        decimals=decimals,
        id="simulated",
    )


@dataclass
class Trial:
    """A sheet and what is true of it."""

    case: Case
    decimals: int
    carrying: str
    seed: int
    written: dict[str, str]
    kind: Kind | None = None
    first: str | None = None
    how: Manner | None = None  #: whose sheet it is, in place of `carrying`
    after: tuple[str, ...] = ()  #: lines that ought to be followed through


def right_trial(rng: random.Random, case: Case) -> Trial:
    """A sheet with nothing wrong, carried on in some way, some lines left out."""
    decimals, carrying, seed = rng.randint(case.least, 6), rng.choice(CARRYING), rng.getrandbits(32)
    ties = rng.choice((ROUND_HALF_UP, ROUND_HALF_EVEN))
    values = Learner(case, decimals, carrying, seed, ties=ties).run()
    kept = _kept(rng, list(values))
    return Trial(case, decimals, carrying, seed, {id: as_text(values[id], decimals, ties) for id in kept})


def _kept(rng: random.Random, ids: list[str], least: str | None = None) -> list[str]:
    share = rng.choice((1.0, 1.0, 0.7, 0.4, 0.2))
    kept = [id for id in ids if rng.random() < share or id == least]
    return kept or [rng.choice(ids)]


def affected(case: Case, kind: Kind, decimals: int) -> list[str]:
    """The lines that a change of the mistake's line reaches, itself included, found by trying."""
    right = Learner(case, decimals).run()

    def moved(place: str) -> Any:
        finite = np.where(np.isfinite(right[place]), right[place], 0.0)
        return right[place] + 0.137 + 0.211 * finite + 0.05 * np.arange(finite.size).reshape(finite.shape) ** 1.5

    other = Learner(case, decimals, wrong={at: lambda g, at=at: moved(at) for at in kind.lines}).run()
    return [id for id in right if not np.array_equal(right[id], other[id], equal_nan=True) or id in kind.lines]


def wrong_trial(rng: random.Random, case: Case, kind: Kind, exercise: cheats.Exercise | None = None) -> Trial | None:
    """A sheet with this one mistake; None where the calculation breaks down."""
    decimals = rng.randint(case.least, 6) if exercise is None else exercise.decimals
    carrying, seed, how = rng.choice(CARRYING), rng.getrandbits(32), None
    ids = [id for id, _ in lines(case)]
    kept = _kept(rng, ids, kind.place if kind.page or rng.random() < 0.6 else None)
    if exercise is not None:
        how = manner(rng, decimals, kept)
        how.on_page, how.places = UP if how.on_page == CUT else how.on_page, None

    def worker(wrong: dict[str, Line] | None = None) -> Learner:
        return Learner(case, decimals, carrying, seed, wrong) if how is None else Person(case, how, wrong)

    wrong, right = worker(kind.lines), worker().run()
    stopped = False
    try:
        values = wrong.run()
    except MISFITS:
        values, stopped = {}, True
        kept.append(kind.place)
    if kind.id == "layout-transposed" or (kind.place not in values and kind.page):
        values = {**right, kind.place: np.asarray(kind.line(_asked(wrong, case, right)))}
    elif stopped:
        # Later lines cannot be worked out from this one: the learner stops here.
        try:
            values = {**dict(_before(right, kind.place)), kind.place: np.asarray(kind.line(_asked(wrong, case, right)))}
        except MISFITS:
            return None
    if kind.id == "layout-transposed" and min(right[kind.place].shape[-2:]) == 1:
        return None  # a vector may be written either way
    if kind.id in ("decimal-point", "sign") and _lost(values[kind.place], right[kind.place], decimals):
        return None
    values = _sensible(values, right, kind)
    written: dict[str, str] = {}
    ended = False
    for id in (id for id in problem(case, decimals).graph().steps if id in values):
        # Who divided by nothing has no line from there on.
        ended = ended or bool(np.isnan(values[id]).any())
        if id not in kept or (ended and id != kind.place):
            continue
        finite = values[id][np.isfinite(values[id])]
        if np.isnan(values[id]).any() or values[id].ndim < 2 or np.abs(finite).max(initial=0.0) > _LARGE:
            if id == kind.place:
                return None
            continue
        written[id] = as_text(values[id], decimals) if how is None else page(values[id], decimals, how.on_page)
    touched = affected(case, kind, decimals)
    trial = Trial(case, decimals, carrying, seed, written, kind, None, how)
    if exercise is None:
        first = next((id for id in written if id in touched), None)
        if first is not None and _distinguishable(case, values[first], right[first], first, decimals):
            trial.first = first
        return trial
    _judge_written(trial, exercise, touched)
    return trial


def _judge_written(trial: Trial, exercise: cheats.Exercise, touched: list[str]) -> None:
    """The first line that no right person writes, and the lines behind it that follow from the learner's own."""
    ids = list(trial.written)
    for at, id in enumerate(ids):
        if id not in touched:
            continue
        values = _as_asked(from_text(trial.written[id]), exercise.full[id])
        there = exercise.reach[id]
        if values.shape == np.atleast_2d(there.full).shape:
            own = values.reshape(there.full.shape)
            if there.honest(own, trial.decimals, guard=0.0).all():
                continue
            if there.honest(own, trial.decimals).all() or cheats.by_another_way(exercise, id, own):
                return  # neither surely right nor surely wrong: nothing is asked of such a sheet
        if not _surely_wrong(exercise, id, values):
            return
        trial.first = id
        trial.after = tuple(ids[at + 1 :])
        trivial = [
            i
            for i in range(at, len(ids))
            if cheats.trivial_rows(
                _as_asked(from_text(trial.written[ids[i]]), exercise.full[ids[i]]), exercise.full[ids[i]]
            )
        ]
        if trivial:
            trial.after = tuple(ids[at + 1 : trivial[0] + 1])
        return


def _as_asked(values: Any, full: Any) -> Any:
    """A written matrix with its axis of heads, where there is but one."""
    return values[None] if values.ndim == full.ndim - 1 and len(full) == 1 else values


def _surely_wrong(exercise: cheats.Exercise, id: str, values: Any) -> bool:
    """Whether a line is farther off than rounding every number before it can bring about."""
    there = exercise.reach[id]
    if values.shape != np.atleast_2d(there.full).shape:
        return not (values.ndim == 2 and 1 in values.shape and values.size == there.full.size)
    values = values.reshape(there.full.shape)
    with np.errstate(invalid="ignore"):
        off = np.abs(values - there.full)
    off = np.where(np.isfinite(values) == np.isfinite(there.full), np.nan_to_num(off), np.inf)
    beyond = off > exercise.bound(id)
    return bool((beyond & ~there.honest(values, exercise.decimals, 2.0)).any())


def _sensible(values: dict[str, Any], right: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Lines of another shape stand on the page where the mistake was made; nobody works back through them."""
    odd = [id for id in values if values[id].shape != right[id].shape]
    kept = {id: value for id, value in values.items() if id not in odd or id in kind.lines}
    if kind.id != "layout-transposed" and any(id not in kept or len(kind.lines) > 1 for id in odd):
        kept = {id: value for id, value in kept.items() if not id.startswith("G_")}
    return kept


def _lost(slipped: Any, right: Any, decimals: int) -> bool:
    """Whether nothing is left of a number whose point or sign slipped, or nothing was there."""
    nothing = (rounded(slipped, decimals) == 0) | (rounded(right, decimals) == 0)
    return bool(((slipped != right) & nothing).any())


def _before(values: dict[str, Any], place: str) -> Any:
    for id, value in values.items():
        if id == place:
            return
        yield id, value


def _asked(learner: Learner, case: Case, right: dict[str, Any]) -> Any:
    """Earlier lines as this learner carries them on."""
    learner.raw = dict(right) if case.root is None else {**right, "root": case.root}
    return Use(lambda name: case.known[name] if name in case.known else learner._use("page", name))


def _distinguishable(case: Case, wrong: Any, right: Any, id: str, decimals: int) -> bool:
    """Whether the written numbers differ from the right ones by more than rounding the lines before can do."""
    exact = Learner(case, decimals).run()[id]
    if sorted(wrong.shape) == sorted(exact.shape) and max(exact.shape) == exact.size:
        wrong = wrong.reshape(exact.shape)  # a vector may be written either way
    if wrong.shape != exact.shape:
        return True
    # Half a unit off is rounding; cutting off is right too, and may be nearly a whole unit short.
    unit, moved, page = 10.0**-decimals, reach(case, id, decimals) + 1e-12, rounded(wrong, decimals)
    with np.errstate(invalid="ignore"):
        off = np.abs(page - exact)
        cut = (np.abs(page) <= np.abs(exact) + moved) & (page * exact >= 0)
    off = np.where(np.isfinite(exact) == np.isfinite(wrong), np.nan_to_num(off), np.inf)
    return bool((off > moved + np.where(cut, unit, unit / 2)).any())


def same_numbers(trial: Trial, seed: int) -> set[tuple[str, str]]:
    """Every mistake (place, id) that leads this learner to the same numbers in the first wrong line."""
    assert trial.first is not None and trial.kind is not None
    target = trial.written[trial.first]
    found = set()
    before = [id for id, _ in lines(trial.case)]
    before = before[: before.index(trial.first) + 1]
    for kind in kinds(trial.case, seed):
        if kind.place not in before or (kind.page and kind.place != trial.first):
            continue
        # Somebody who carries on other digits may come to them too.
        for carrying in dict.fromkeys((trial.carrying, "full", "rounded")):
            learner = Learner(trial.case, trial.decimals, carrying, trial.seed, kind.lines)
            try:
                values = learner.run(trial.first)
            except MISFITS:
                values = learner.raw
            there = values.get(trial.first)
            fits = there is not None and there.ndim > 1 and not np.isnan(there).any()
            if fits and as_text(there, trial.decimals) == target:
                found.add((kind.place, kind.id))
    # XᵀG_Q stands at G_W_V whether G_W_V was exchanged with G_W_Q, or G_V with G_Q before it.
    found |= {(f"G_{at[-1]}", id) for at, id in found if id == "gradients-swapped" and at.startswith("G_W_")}
    right = Learner(trial.case, trial.decimals, trial.carrying, trial.seed).run()[trial.first]
    return found | {(trial.first, id) for id in _same_slips(target, right, trial.decimals)}


def _same_slips(target: str, right: Any, decimals: int) -> Iterator[str]:
    """Slips of the page that lead from the right numbers to the written ones."""
    page, wrong = rounded(right, decimals), from_text(target)
    if page.ndim == wrong.ndim + 1 and len(page) == 1:
        wrong = wrong[None]
    if wrong.shape == t(page).shape and (wrong == t(page)).all():
        yield "layout-transposed"
    if wrong.shape != page.shape:
        return
    off = wrong != page
    if (np.abs(wrong) == np.abs(page)).all():
        yield "sign"
    with np.errstate(invalid="ignore"):
        if all(
            any(w == rounded(v * 10.0**k, decimals)[0] for k in range(-3, 4))
            for w, v in zip(wrong[off], right[off], strict=True)
        ):
            yield "decimal-point"
    if (off.sum() == 2 and (wrong[off][::-1] == page[off]).all()) or any(
        _exchanged(lined(wrong), lined(page)) for lined in (_rows, lambda x: _rows(t(x)))
    ):
        yield "cells-exchanged"


def _rows(values: Any) -> Any:
    return values.reshape(-1, values.shape[-1])


def _exchanged(wrong: Any, right: Any) -> bool:
    """Whether two lines stand in each other's place, and nothing else is off."""
    lines = np.flatnonzero((wrong != right).any(1))
    return len(lines) == 2 and bool((wrong[lines[::-1]] == right[lines]).all())


def score(trial: Trial, marked: Marked, tally: Tally, seed: int) -> None:
    """Add what came out for one sheet."""
    kind = trial.kind
    assert kind is not None
    tally.sheets += 1
    if trial.first is None:
        tally.same += 1
        return
    tally.found += marked.first_wrong == trial.first
    step = next(step for step in marked.steps if step.id == trial.first)
    names = {(named.step, named.id) for named in step.mistakes}
    same = {(kind.place, kind.id)}
    if names != same:
        same |= same_numbers(trial, seed)
    # By its name, at its place or at one where it gives the very same numbers.
    is_named = any(id == kind.id and (place, id) in same for place, id in names)
    tally.named += is_named
    tally.alone += is_named and not names - same
    tally.others.update(f"{id} at {place}" for place, id in names - same)
    if not is_named:
        tally.others.update(["(not named)"])
    ids = list(trial.written)
    # A line of one number throughout makes the rest trivial: there is no credit for following it.
    values = from_text(trial.written[trial.first])
    rest = (
        []
        if (values == values.flat[0]).all()
        else [s for s in marked.steps if s.id in ids[ids.index(trial.first) + 1 :]]
    )
    tally.follow += len(rest)
    tally.followed += sum(s.verdict not in ("wrong", "malformed") for s in rest)


def run(
    right: int, wrong: int, seed: int, family: str = "attention", report: Any = None
) -> tuple[list[Trial], dict[str, Tally], int]:
    """Mark `right` right sheets and `wrong` wrong ones.

    Returns
    -------
    the right sheets that were rejected, the tallies by mistake, the number of right sheets
    """
    rng, draw, by_id = random.Random(seed), FAMILIES[family], family in BY_ID
    rejected = []
    for _ in range(right):
        trial = right_trial(rng, draw(rng))
        marked = Marker(problem(trial.case, trial.decimals)).mark(sheet({"answers": trial.written}))
        if any(step.verdict not in FINE for step in marked.steps):
            rejected.append(trial)
            if report:
                report("rejected", trial, marked)
    tallies: dict[str, Tally] = defaultdict(Tally)
    made: Counter[str] = Counter()
    count = 0
    while count < wrong:
        case = draw(rng)
        slip_seed = rng.getrandbits(32)
        found = kinds(case, slip_seed)
        # The mistakes least tried come first, slips of the page once in a while.
        found = [kind for kind in found if not kind.page or rng.random() < 0.06]
        found.sort(key=lambda kind: (made[kind.id] * by_id, made[_name(case, kind)], rng.random()))
        for kind in found[:3]:
            made.update((kind.id, _name(case, kind)))
            trial = wrong_trial(rng, case, kind)
            if trial is None or not trial.written:
                continue
            count += 1
            marked = Marker(problem(case, trial.decimals)).mark(sheet({"answers": trial.written}))
            before = tallies[_group(case, kind)].__dict__.copy()
            score(trial, marked, tallies[_group(case, kind)], slip_seed)
            if report:
                report("wrong", trial, marked, before, tallies[_group(case, kind)])
    return rejected, dict(tallies), right


def _name(case: Case, kind: Kind) -> str:
    if case.exercise is None:
        return kind.name
    # The same line of another part or another parameter is the same mistake.
    return f"{case.model} {kind.id} at {_line(case, kind)} {kind.variant}"


def _line(case: Case, kind: Kind) -> str:
    """The line of a mistake, without the part it stands in; of an update, whose it is does not matter."""
    name = kind.place.rpartition(".")[2]
    return next((f"…{end}" for end in ("_m_hat", "_v_hat", "_m", "_v", "_new") if _is_update(case, name, end)), name)


def _is_update(case: Case, name: str, end: str) -> bool:
    return case.model == "gpt" and name.endswith(end)


def _group(case: Case, kind: Kind) -> str:
    at = kind.place if case.exercise is None else f"{case.model} {_line(case, kind)}"
    return f"{kind.id}|{'any line' if kind.page else at}"


def _print(what: str, trial: Trial, marked: Marked, before: Any = None, after: Tally | None = None) -> None:
    """What went wrong with one sheet, to look into."""
    if what == "wrong":
        assert after is not None
        new = {
            key: getattr(after, key) - before[key] for key in ("same", "found", "named", "alone", "follow", "followed")
        }
        if new["same"] or (new["found"] and new["named"] and new["alone"] and new["follow"] == new["followed"]):
            return
        print(new, end=" ")
    print(
        what,
        trial.kind and trial.kind.name,
        "first",
        trial.first,
        trial.case.model,
        trial.case.mask,
        trial.carrying,
        trial.decimals,
    )
    print("   written:", " ".join(trial.written))
    print(
        "   ",
        [
            (s.id, s.verdict, [(m.step, m.id) for m in s.mistakes])
            for s in marked.steps
            if s.verdict in ("wrong", "malformed")
        ],
    )


# Both sides --------------------------------------------------------------------------------------------------------

#: Sheets of one exercise: a marker is made once for all of them.
TOGETHER = 10


@dataclass
class Failure:
    """A sheet that was marked as it should not be, ready to be tried again."""

    what: str
    case: Case
    decimals: int
    answers: dict[str, str]
    got: str
    why: str

    def __str__(self) -> str:
        gradient = {}
        if self.case.upstream_text:
            output = self.case.exercise.output if self.case.exercise else OUTPUT.get(self.case.model, "O")
            gradient = {gradient_of(output): self.case.upstream_text}
        if self.case.loss:
            gradient = {"loss": self.case.loss, **({"targets": self.case.targets} if self.case.targets else {})}
        data = {
            "model": self.case.model,
            "decimals": self.decimals,
            "inputs": self.case.texts,
            "settings": self.case.settings,
            "gradient": gradient,
            "answers": self.answers,
        }
        return f"{self.what} | {json.dumps(data, ensure_ascii=False)} | got {self.got} | {self.why}"


@dataclass
class Side:
    """What came out of one side: sheets by group, points, failures."""

    sheets: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def right_sheet(
    rng: random.Random, case: Case, decimals: int, ids: list[str], ways: list[Route]
) -> tuple[Manner, dict[str, str]]:
    """Somebody's right sheet."""
    way = rng.choice(ways[1:]) if len(ways) > 1 and rng.random() < 0.35 else ways[0]
    how = manner(rng, decimals, _kept(rng, ids))
    how.route = way.name
    values = Person(case, how, way.lines).run()
    answers = {}
    large = 1e31 if "inf" in way.name or "1e9" in way.name else _LARGE
    stopped = False
    for id in ids:
        finite = values[id][np.isfinite(values[id])]
        # Who divided by a number that had rounded to nothing has no line from there on; nor has who sees it coming.
        stopped = stopped or bool(np.isnan(values[id]).any() or (values[id] == np.inf).any())
        stopped = stopped or (bool(way.name) and _rounds_to_nothing(id, values[id], decimals))
        if id not in how.written or id in way.unwritten or stopped or np.abs(finite).max(initial=0.0) > large:
            continue
        value = np.atleast_2d(values[id])
        if value.ndim == 2 and value.shape[-1] == 1 and len(value) > 1 and rng.random() < 0.15:
            value = value.T
        if how.on_page == CUT and _cut_to_nothing(value, how):
            continue
        answers[id] = page(value, how.page_places, how.on_page)
    if way.name == "another constant":
        # A sum alone does not show what was taken away.
        for id in [id for id in answers if id.endswith("row_sum")]:
            p = id.removesuffix("row_sum")
            if f"{p}shifted" not in answers and f"{p}exp" not in answers:
                del answers[id]
    return how, answers


def _cut_to_nothing(values: Any, how: Manner) -> bool:
    """Whether cutting off leaves a line of nothing but zeros of numbers that are not: by the contract that says nothing."""
    cut, rounded_there = (shortened(values, how.page_places, way) for way in (CUT, UP))
    return bool(
        (np.where(np.isfinite(cut), cut, 0.0) == 0).all()
        and (np.where(np.isfinite(cut), rounded_there, 0.0) != 0).any()
    )


def _rounds_to_nothing(id: str, values: Any, decimals: int) -> bool:
    """Whether a constant of one's own has left next to nothing of e^x: all zeros, or sums of one digit."""
    unit, short = 10.0**-decimals, id.rpartition(".")[2]
    if short == "row_sum":
        return bool((values < 10 * unit).any())
    return short == "exp" and bool((values < unit).all(-1).any())


def right_side(rng: random.Random, draw: Callable[[random.Random], Case], count: int) -> Side:
    """Right sheets: none may be marked wrong, and all their points are theirs."""
    side = Side()
    while side.sheets["all"] < count:
        case = draw(rng)
        decimals = rng.randint(case.least, 6)
        marker = Marker(problem(case, decimals))
        ids = [id for id, _ in lines(case) if id in marker.graph.steps]
        ways = routes(case, rng)
        made = [right_sheet(rng, case, decimals, ids, ways) for _ in range(TOGETHER)]
        made = [one for one in made if one[1]]
        for (how, answers), marked in zip(made, marked_all(marker, [a for _, a in made]), strict=True):
            if isinstance(marked, Exception):
                side.failed["all"] += 1
                side.sheets["all"] += 1
                side.failures.append(Failure("TRACEBACK", case, decimals, answers, repr(marked), "never a traceback"))
                continue
            groups = (f"{case.model}", f"at {decimals} decimals", f"style: {how.style}", f"page: {how.on_page}")
            groups += (f"route: {how.route or 'none'}",)
            written = [step for step in marked.steps if step.id in answers]
            bad = [step for step in written if step.verdict in ("wrong", "malformed")]
            for group in ("all", *groups):
                side.sheets[group] += 1
                side.failed[group] += bool(bad)
                side.points[group] += float(sum(step.points for step in written))
                side.most[group] += float(sum(step.max_points for step in written))
            side.verdicts.update(step.verdict for step in written)
            if bad or any(step.points < step.max_points for step in written):
                low = bad or [step for step in written if step.points < step.max_points]
                side.failures.append(
                    Failure(
                        "RIGHT IS WRONG" if bad else "right loses points",
                        case,
                        decimals,
                        answers,
                        f"{low[0].id}: {low[0].verdict} cells {low[0].cells}",
                        f"a right sheet: {how}",
                    )
                )
    return side


def cheating_side(rng: random.Random, draw: Callable[[random.Random], Case], count: int) -> Side:
    """Sheets that deserve nothing: points only for what is really so."""
    side = Side()
    while side.sheets["all"] < count:
        case = draw(rng)
        decimals = rng.randint(max(case.least, 1), 6)
        marker = Marker(problem(case, decimals))
        ids = [id for id, _ in lines(case) if id in marker.graph.steps]
        exercise = cheats.Exercise(case, decimals, ids)
        made = [*cheats.cheating(exercise, rng), *cheats.off_by_one(exercise, rng)]
        texts = [{id: line.text for id, line in one.items()} for _, one in made]
        for (what, one), marked, text in zip(made, marked_all(marker, texts), texts, strict=True):
            if isinstance(marked, Exception):
                side.failed["all"] += 1
                side.sheets["all"] += 1
                side.failures.append(Failure("TRACEBACK", case, decimals, text, repr(marked), "never a traceback"))
                continue
            found = cheats.undeserved(exercise, one, marked.steps)
            for group in ("all", what, f"at {decimals} decimals"):
                side.sheets[group] += 1
                side.failed[group] += bool(found)
                side.points[group] += sum(points for _, _, points in found)
                side.most[group] += float(sum(step.max_points for step in marked.steps if step.id in one))
            side.verdicts.update(verdict for _, verdict, _ in found)
            for id, verdict, points in found[:1]:
                answers = {name: line.text for name, line in one.items()}
                full = page(exercise.full[id], decimals)
                side.failures.append(
                    Failure(
                        f"WRONG IS RIGHT ({what})",
                        case,
                        decimals,
                        answers,
                        f"{id}: {verdict}, {points:g} points for {one[id].text}",
                        f"the value is {full}; nothing right, and nothing from the sheet's own lines, comes to it",
                    )
                )
    return side


@dataclass
class WrongSide:
    """What came out for sheets with one mistake of the catalogue, by mistake and place."""

    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    failures: list[Failure] = field(default_factory=list)


def wrong_side(rng: random.Random, draw: Callable[[random.Random], Case], count: int, by_id: bool = False) -> WrongSide:
    """Sheets with one mistake each, made by people of every manner."""
    side, made = WrongSide(), Counter[str]()
    done = 0
    while done < count:
        case = draw(rng)
        decimals, slip_seed = rng.randint(case.least, 6), rng.getrandbits(32)
        marker = Marker(problem(case, decimals))
        ids = [id for id, _ in lines(case) if id in marker.graph.steps]
        exercise = cheats.Exercise(case, decimals, ids, count=40)
        found = [kind for kind in kinds(case, slip_seed) if not kind.page or rng.random() < 0.06]
        found.sort(key=lambda kind: (made[kind.id] * by_id, made[_name(case, kind)], rng.random()))
        trials = []
        for kind in found[:6]:
            made.update((kind.id, _name(case, kind)))
            trial = wrong_trial(rng, case, kind, exercise)
            if trial is not None and trial.written:
                trials.append(trial)
        done += len(trials)
        for trial, marked in zip(trials, marked_all(marker, [trial.written for trial in trials]), strict=True):
            if isinstance(marked, Exception):
                side.failures.append(
                    Failure("TRACEBACK", case, decimals, trial.written, repr(marked), "never a traceback")
                )
                continue
            _score_both(trial, marked, exercise, side, slip_seed)
    return side


def _score_both(trial: Trial, marked: Marked, exercise: cheats.Exercise, side: WrongSide, slip_seed: int) -> None:
    kind, case = trial.kind, trial.case
    assert kind is not None
    tally = side.tallies[_group(case, kind)]
    tally.sheets += 1
    if trial.first is None:
        tally.same += 1
        return

    def failed(what: str, got: str, why: str) -> None:
        side.failures.append(
            Failure(what, case, trial.decimals, trial.written, got, f"{why} [{kind.name}; {trial.how}]")
        )

    is_found = marked.first_wrong == trial.first
    tally.found += is_found
    if not is_found:
        failed("FIRST WRONG STEP", str(marked.first_wrong), f"first wrong step is {trial.first}")
    step = next(step for step in marked.steps if step.id == trial.first)
    names = {(named.step, named.id) for named in step.mistakes}
    same = {(kind.place, kind.id)} | (
        _indistinct(trial, exercise, names, slip_seed) if names != {(kind.place, kind.id)} else set()
    )
    is_named = any(id == kind.id and (place, id) in same for place, id in names)
    tally.named += is_named
    tally.alone += is_named and not names - same
    tally.others.update(f"{id} at {place}" for place, id in names - same)
    if not is_named:
        tally.others.update(["(not named)"])
        failed("NOT NAMED", f"{step.verdict} {sorted(names)}", f"{trial.first} is {kind.id} at {kind.place}")
    elif names - same:
        failed("NAMED BESIDE", f"{sorted(names - same)}", f"other numbers than {kind.id} at {kind.place}")
    rest = [one for one in marked.steps if one.id in trial.after]
    lost = [one for one in rest if one.verdict in ("wrong", "malformed")]
    tally.follow += len(rest)
    tally.followed += len(rest) - len(lost)
    if lost:
        failed("NOT FOLLOWED", f"{lost[0].id}: {lost[0].verdict}", "follows from the learner's own lines")


def _indistinct(
    trial: Trial, exercise: cheats.Exercise, names: set[tuple[str, str]], slip_seed: int
) -> set[tuple[str, str]]:
    """Which of these mistakes come to the written numbers too, for somebody who makes them."""
    assert trial.first is not None and trial.kind is not None
    full = np.atleast_2d(exercise.reach[trial.first].full)
    written = _as_asked(from_text(trial.written[trial.first]), full)
    found = {(trial.first, id) for id in _near_slips(written, full, 10.0**-trial.decimals)}
    there = exercise.reach[trial.first]
    for id, mended in _mended(written, full):
        if mended.shape == full.shape and there.honest(mended.reshape(there.full.shape), trial.decimals, 2.0).all():
            found.add((trial.first, id))
    for kind in kinds(trial.case, slip_seed):
        places = _places(kind)
        if kind.page or not any((place, kind.id) in names for place in places):
            continue
        there = reached(trial.case, trial.decimals, 15, wrong=kind.lines, until=trial.first).get(trial.first)
        if there is None or there.full.size != written.size:
            continue
        if there.honest(written.reshape(there.full.shape), trial.decimals, 2.0).all():
            found |= {(place, kind.id) for place in places}
    return found


def _places(kind: Kind) -> set[str]:
    """Where a mistake may be said to be made: XᵀG_Q stands at G_W_V whether G_W_V was exchanged with G_W_Q, or G_V with G_Q
    before it; so of the heads' gradients before they are joined."""
    part, _, name = kind.place.rpartition(".")
    part = part and f"{part}."
    if kind.id != "gradients-swapped":
        return {kind.place}
    earlier = f"{part}G_{name[-1]}" if name.startswith("G_W_") else kind.place
    return {kind.place, earlier, *(f"{earlier}_{of}" for of in ("heads", "shared", "rotated"))}


def _mended(written: Any, full: Any) -> Iterator[tuple[str, Any]]:
    """What a line would be without a slip of writing, by the name of the slip."""
    yield "layout-transposed", t(written)
    if written.shape != full.shape:
        return
    yield "sign", np.copysign(written, full)
    cells = np.arange(written.size).reshape(written.shape)
    for pieces in (cells.reshape(-1, 1), _rows(cells), _rows(t(cells))):
        for a, b in combinations(range(len(pieces)), 2):
            order = cells.flatten()
            order[np.concatenate([pieces[a], pieces[b]])] = np.concatenate([pieces[b], pieces[a]])
            yield "cells-exchanged", written.flatten()[order].reshape(written.shape)


def _near_slips(written: Any, full: Any, unit: float) -> Iterator[str]:
    """Slips of the page that lead to the written numbers, whichever way the right ones were rounded."""

    def near(a: Any, b: Any, by: float = 1.0) -> Any:
        with np.errstate(invalid="ignore"):
            return (np.abs(a - b) <= 1.01 * unit * by) | (a == b)

    if written.shape == t(full).shape and near(written, t(full)).all():
        yield "layout-transposed"
    if written.shape != full.shape:
        return
    if near(np.abs(written), np.abs(full)).all():
        yield "sign"
    off = ~near(written, full)
    powers = [10.0**k for k in range(-3, 4) if k]
    if all(any(near(w, v * p, max(1.0, p)) for p in powers) for w, v in zip(written[off], full[off], strict=True)):
        yield "decimal-point"
    if near(np.sort(written[off]), np.sort(full[off])).all():
        yield "cells-exchanged"


# The command ------------------------------------------------------------------------------------------------------


def _share(part: float, whole: float) -> str:
    return "" if whole == 0 else f"{part / whole:.3%}"


def table_of_rights(side: Side) -> str:
    """Right sheets by model, places, style and route."""
    out = ["| right sheets | sheets | marked wrong | share of their points |", "| --- | --: | --: | --: |"]
    for group in sorted(side.sheets, key=lambda g: (g != "all", g)):
        shares = _share(side.points[group], side.most[group])
        out.append(f"| {group} | {side.sheets[group]} | {side.failed[group]} | {shares} |")
    return "\n".join([*out, "", "Verdicts: " + ", ".join(f"{v} {n}" for v, n in side.verdicts.most_common())])


def table_of_cheats(side: Side) -> str:
    """Cheating sheets by what was written."""
    out = [
        "| cheating sheets | sheets | with points for what is not so | share of points |",
        "| --- | --: | --: | --: |",
    ]
    for group in sorted(side.sheets, key=lambda g: (g != "all", g)):
        shares = _share(side.points[group], side.most[group])
        out.append(f"| {group} | {side.sheets[group]} | {side.failed[group]} | {shares} |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=int, default=2000, help="right sheets of each family")
    parser.add_argument("--cheats", type=int, default=None, help="cheating sheets; as many")
    parser.add_argument("--wrong", type=int, default=None, help="sheets with one mistake of the catalogue; as many")
    parser.add_argument("--family", action="append", choices=[*FAMILIES], help="one of the kinds of exercises; all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="print N of the sheets that went wrong, a kind"
    )
    parser.add_argument("--examples", action="store_true", help="also every step of every worked example")
    parser.add_argument("--dry", action="store_true", help="do not write the table")
    given = parser.parse_args()
    sections = {}
    for family in given.family or FAMILIES:
        sections[family] = _family(family, given)
    if given.examples:
        print(report(given.show))
    if not given.dry:
        text = OUT.read_text(encoding="utf-8") if OUT.exists() else ""
        OUT.write_text(merged(text, sections), encoding="utf-8")


def _family(family: str, given: argparse.Namespace) -> str:
    """Run one family, print what came out, and give its part of the page."""
    start, draw = time.perf_counter(), FAMILIES[family]
    counts = [given.sheets if n is None else n for n in (given.cheats, given.wrong)]
    print(f"== {family}, seed {given.seed}")
    rights = right_side(random.Random(f"right {given.seed}"), draw, given.sheets)
    print(table_of_rights(rights), flush=True)
    _show(rights.failures, given.show)
    cheating = cheating_side(random.Random(f"cheating {given.seed}"), draw, counts[0])
    print(table_of_cheats(cheating), flush=True)
    _show(cheating.failures, given.show)
    wrongs = wrong_side(random.Random(f"wrong {given.seed}"), draw, counts[1], family in BY_ID)
    text = section(family, given.seed, rights.failed["all"], rights.sheets["all"], wrongs.tallies)
    print("\n".join(text.splitlines()[:8]), f"\n{time.perf_counter() - start:.0f} s", flush=True)
    _show(wrongs.failures, given.show)
    return with_sides(text, table_of_rights(rights), table_of_cheats(cheating))


def _show(failures: list[Failure], most: int) -> None:
    """The first few of each kind, and how many there are."""
    seen: Counter[str] = Counter()
    for failure in failures:
        seen[failure.what] += 1
        if seen[failure.what] <= most:
            print("\n" + str(failure))
    if seen:
        print("\nWent wrong: " + ", ".join(f"{what} {n}" for what, n in seen.most_common()), flush=True)


if __name__ == "__main__":
    main()
