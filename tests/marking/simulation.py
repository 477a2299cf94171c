"""The marker held against a learner who makes one known mistake: python tests/marking/simulation.py --sheets N

Right sheets must never be rejected. On wrong ones: is the first wrong step found, the mistake named, named alone,
and the rest followed through? Exercises, right and wrong calculations come from `learner` and `wrongs`, bare NumPy.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from learn_blocks import BLOCKS
from learn_forward import FEED_FORWARD
from learn_gpt import GPT
from learn_heads import MULTI_HEAD
from learn_latent import LATENT
from learn_layers import EXERCISES as LAYERS
from learner import CARRYING, Case, Learner, as_text, from_text, lines, make_case, rounded, t
from reach import reach
from results import Tally, merged, section
from wrongs import Kind, kinds

from attncli.marking.mark import Marked, Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem
from attncli.problems.text import parse_matrix

#: What is drawn from, by name: a further file of exercises is a further name.
FAMILIES = {
    "attention": make_case,
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


def wrong_trial(rng: random.Random, case: Case, kind: Kind) -> Trial | None:
    """A sheet with this one mistake; None where the calculation breaks down."""
    decimals, carrying, seed = rng.randint(case.least, 6), rng.choice(CARRYING), rng.getrandbits(32)
    wrong = Learner(case, decimals, carrying, seed, kind.lines)
    right = Learner(case, decimals, carrying, seed).run()
    stopped = False
    try:
        values = wrong.run()
    except MISFITS:
        values, stopped = {}, True
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
    if kind.id == "decimal-point" and _lost(values[kind.place], right[kind.place], decimals):
        return None
    values = _sensible(values, right, kind)
    kept = _kept(rng, list(values), kind.place if kind.page or rng.random() < 0.6 or stopped else None)
    written: dict[str, str] = {}
    for id in (id for id in problem(case, decimals).graph().steps if id in values and id in kept):
        finite = values[id][np.isfinite(values[id])]
        if np.isnan(values[id]).any() or values[id].ndim < 2 or np.abs(finite).max(initial=0.0) > _LARGE:
            if id == kind.place:
                return None
            continue
        written[id] = as_text(values[id], decimals)
    touched = affected(case, kind, decimals)
    first = next((id for id in written if id in touched), None)
    if first is None or not _distinguishable(case, values[first], right[first], first, decimals):
        return Trial(case, decimals, carrying, seed, written, kind, None)
    return Trial(case, decimals, carrying, seed, written, kind, first)


def _sensible(values: dict[str, Any], right: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Lines of another shape stand on the page where the mistake was made; nobody works back through them."""
    odd = [id for id in values if values[id].shape != right[id].shape]
    kept = {id: value for id, value in values.items() if id not in odd or id in kind.lines}
    if kind.id != "layout-transposed" and any(id not in kept or len(kind.lines) > 1 for id in odd):
        kept = {id: value for id, value in kept.items() if not id.startswith("G_")}
    return kept


def _lost(slipped: Any, right: Any, decimals: int) -> bool:
    """Whether nothing is left of a number whose point slipped."""
    return bool(((slipped != right) & (rounded(slipped, decimals) == 0)).any())


def _before(values: dict[str, Any], place: str) -> Any:
    for id, value in values.items():
        if id == place:
            return
        yield id, value


def _asked(learner: Learner, case: Case, right: dict[str, Any]) -> Any:
    """Earlier lines as this learner carries them on."""
    learner.raw = dict(right) if case.root is None else {**right, "root": case.root}
    return lambda name: case.known[name] if name in case.known else learner._use("page", name)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=int, default=5000, help="right sheets; wrong ones: as many")
    parser.add_argument("--wrong", type=int, default=None)
    parser.add_argument("--family", action="append", choices=[*FAMILIES], help="one of the kinds of exercises; all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print every sheet that went wrong")
    parser.add_argument("--dry", action="store_true", help="do not write the table")
    given = parser.parse_args()
    wrong = given.sheets if given.wrong is None else given.wrong
    sections = {}
    for family in given.family or FAMILIES:
        start = time.perf_counter()
        rejected, tallies, right = run(given.sheets, wrong, given.seed, family, _print if given.show else None)
        sections[family] = section(family, given.seed, len(rejected), right, tallies)
        print("\n".join(sections[family].splitlines()[:8]), f"\n{time.perf_counter() - start:.0f} s")
    if not given.dry:
        page = OUT.read_text(encoding="utf-8") if OUT.exists() else ""
        OUT.write_text(merged(page, sections), encoding="utf-8")


if __name__ == "__main__":
    main()
