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
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from learner import CARRYING, OUTPUT, Case, Learner, as_text, make_case, reach, rounded
from wrongs import Kind, kinds

from attncli.marking.mark import Marked, Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem
from attncli.problems.text import parse_matrix

FINE = ("correct", "route", "imprecise", "blank")
OUT = Path(__file__).with_name("RESULTS.md")


def problem(case: Case, decimals: int) -> Problem:
    """The exercise as a problem of attncli."""
    return Problem(
        case.model,
        {name: parse_matrix(text) for name, text in case.texts.items()},
        settings=case.settings,
        upstream=parse_matrix(case.upstream_text),
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


@dataclass
class Tally:
    """Results of one mistake at one place."""

    sheets: int = 0
    same: int = 0
    found: int = 0
    named: int = 0
    alone: int = 0
    follow: int = 0
    followed: int = 0
    others: Counter[str] = field(default_factory=Counter)


def right_trial(rng: random.Random) -> Trial:
    """A sheet with nothing wrong, carried on in some way, some lines left out."""
    case = make_case(rng)
    decimals, carrying, seed = rng.randint(1, 6), rng.choice(CARRYING), rng.getrandbits(32)
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

    def moved(g: Any) -> Any:
        finite = np.where(np.isfinite(right[kind.place]), right[kind.place], 0.0)
        return right[kind.place] + 0.137 + 0.211 * finite + 0.05 * np.arange(finite.size).reshape(finite.shape) ** 1.5

    other = Learner(case, decimals, wrong={kind.place: moved}).run()
    return [id for id in right if not np.array_equal(right[id], other[id], equal_nan=True) or id == kind.place]


def wrong_trial(rng: random.Random, case: Case, kind: Kind) -> Trial | None:
    """A sheet with this one mistake; None where the calculation breaks down."""
    decimals, carrying, seed = rng.randint(1, 6), rng.choice(CARRYING), rng.getrandbits(32)
    wrong = Learner(case, decimals, carrying, seed, {kind.place: kind.line})
    right = Learner(case, decimals, carrying, seed).run()
    page: dict[str, Any] = {}
    try:
        values = wrong.run()
    except ValueError:
        page = right
        values = {}
    if kind.id == "layout-transposed" or (kind.place not in values and _only_page(kind)):
        values = {**right, kind.place: np.asarray(kind.line(_asked(wrong, case, right)))}
    elif page:
        # Later lines cannot be worked out from this one: the learner stops here.
        try:
            values = {**dict(_before(right, kind.place)), kind.place: np.asarray(kind.line(_asked(wrong, case, right)))}
        except ValueError:
            return None
    if kind.id == "decimal-point" and _lost(values[kind.place], right[kind.place], decimals):
        return None
    kept = _kept(rng, list(values), kind.place if kind.page or rng.random() < 0.6 or page else None)
    written: dict[str, str] = {}
    for id in (id for id in values if id in kept):
        if np.isnan(values[id]).any() or values[id].ndim != 2:
            if id == kind.place:
                return None
            continue
        if np.isnan(values[id]).any():
            break
        written[id] = as_text(values[id], decimals)
    touched = affected(case, kind, decimals)
    first = next((id for id in written if id in touched), None)
    if first is None or not _distinguishable(case, values[first], right[first], first, decimals):
        return Trial(case, decimals, carrying, seed, written, kind, None)
    return Trial(case, decimals, carrying, seed, written, kind, first)


def _lost(slipped: Any, right: Any, decimals: int) -> bool:
    """Whether nothing is left of a number whose point slipped."""
    return bool(((slipped != right) & (rounded(slipped, decimals) == 0)).any())


def _only_page(kind: Kind) -> bool:
    return kind.page


def _before(values: dict[str, Any], place: str) -> Any:
    for id, value in values.items():
        if id == place:
            return
        yield id, value


def _asked(learner: Learner, case: Case, right: dict[str, Any]) -> Any:
    """Earlier lines as this learner carries them on."""
    known = {**case.inputs, f"G_{OUTPUT.get(case.model, 'O')}": case.upstream}
    learner.raw = {**right, "root": np.array(_root(case))}
    return lambda name: known[name] if name in known else learner._use("page", name)


def _root(case: Case) -> float:
    weights = case.inputs.get("Q", case.inputs.get("W_Q"))
    return 1.0 if weights is None else float(weights.shape[1]) ** 0.5


def _distinguishable(case: Case, wrong: Any, right: Any, id: str, decimals: int) -> bool:
    """Whether the written numbers differ from the right ones by more than rounding the lines before can do."""
    exact = Learner(case, decimals).run()[id]
    if wrong.shape != exact.shape:
        return True
    half = 0.5 * 10.0**-decimals
    with np.errstate(invalid="ignore"):
        off = np.abs(rounded(wrong, decimals) - exact)
    off = np.where(np.isfinite(exact) == np.isfinite(wrong), np.nan_to_num(off), np.inf)
    return bool((off > half + reach(case, id, decimals) + 1e-12).any())


def same_numbers(trial: Trial, seed: int) -> set[tuple[str, str]]:
    """Every mistake (place, id) that leads this learner to the same numbers in the first wrong line."""
    assert trial.first is not None and trial.kind is not None
    target = trial.written[trial.first]
    found = set()
    for kind in kinds(trial.case, seed):
        learner = Learner(trial.case, trial.decimals, trial.carrying, trial.seed, {kind.place: kind.line})
        try:
            values = learner.run()
        except ValueError:
            values = learner.raw
        there = values.get(trial.first)
        if there is None or there.ndim != 2 or np.isnan(there).any():
            continue
        if as_text(there, trial.decimals) == target:
            found.add((kind.place, kind.id))
    # XᵀG_Q stands at G_W_V whether G_W_V was exchanged with G_W_Q, or G_V with G_Q before it.
    found |= {(f"G_{at[-1]}", id) for at, id in found if id == "gradients-swapped" and at.startswith("G_W_")}
    right = Learner(trial.case, trial.decimals, trial.carrying, trial.seed).run()[trial.first]
    return found | {(trial.first, id) for id in _same_slips(target, right, trial.decimals)}


def _same_slips(target: str, right: Any, decimals: int) -> Iterator[str]:
    """Slips of the page that lead from the right numbers to the written ones."""
    page, wrong = rounded(right, decimals), np.array([row.split() for row in target.split(";")], dtype=float)
    if wrong.shape == page.T.shape and (wrong == page.T).all():
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
    rows, columns = np.flatnonzero(off.any(1)), np.flatnonzero(off.any(0))
    if (
        (off.sum() == 2 and (wrong[off][::-1] == page[off]).all())
        or (len(rows) == 2 and (wrong[rows[::-1]] == page[rows]).all())
        or (len(columns) == 2 and (wrong[:, columns[::-1]] == page[:, columns]).all())
    ):
        yield "cells-exchanged"


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
    tally.named += (kind.place, kind.id) in names
    others = names - {(kind.place, kind.id)}
    if others:
        others -= same_numbers(trial, seed)
    tally.alone += (kind.place, kind.id) in names and not others
    tally.others.update(f"{id} at {place}" for place, id in others)
    if (kind.place, kind.id) not in names:
        tally.others.update(["(not named)"])
    ids = list(trial.written)
    rest = [s for s in marked.steps if s.id in ids[ids.index(trial.first) + 1 :]]
    tally.follow += len(rest)
    tally.followed += sum(s.verdict not in ("wrong", "malformed") for s in rest)


def run(right: int, wrong: int, seed: int, report: Any = None) -> tuple[list[Trial], dict[str, Tally], int]:
    """Mark `right` right sheets and `wrong` wrong ones.

    Returns
    -------
    the right sheets that were rejected, the tallies by mistake, the number of right sheets
    """
    rng = random.Random(seed)
    rejected = []
    for _ in range(right):
        trial = right_trial(rng)
        marked = Marker(problem(trial.case, trial.decimals)).mark(sheet({"answers": trial.written}))
        if any(step.verdict not in FINE for step in marked.steps):
            rejected.append(trial)
            if report:
                report("rejected", trial, marked)
    tallies: dict[str, Tally] = defaultdict(Tally)
    made: Counter[str] = Counter()
    count = 0
    while count < wrong:
        case = make_case(rng)
        slip_seed = rng.getrandbits(32)
        found = kinds(case, slip_seed)
        # The mistakes least tried come first, slips of the page once in a while.
        found = [kind for kind in found if not kind.page or rng.random() < 0.06]
        found.sort(key=lambda kind: (made[kind.name], rng.random()))
        for kind in found[:3]:
            made[kind.name] += 1
            trial = wrong_trial(rng, case, kind)
            if trial is None or not trial.written:
                continue
            count += 1
            marked = Marker(problem(case, trial.decimals)).mark(sheet({"answers": trial.written}))
            before = tallies[_group(kind)].__dict__.copy()
            score(trial, marked, tallies[_group(kind)], slip_seed)
            if report:
                report("wrong", trial, marked, before, tallies[_group(kind)])
    return rejected, dict(tallies), right


def _group(kind: Kind) -> str:
    return f"{kind.id}|{kind.place if not kind.page else 'any line'}"


def totals(tallies: dict[str, Tally]) -> dict[str, float]:
    """Shares over all distinguishable wrong sheets."""
    all_ = list(tallies.values())
    seen = sum(t.sheets - t.same for t in all_)
    follow = sum(t.follow for t in all_)
    return {
        "kinds": len(all_),
        "wrong": sum(t.sheets for t in all_),
        "distinguishable": seen,
        "found": sum(t.found for t in all_) / max(seen, 1),
        "named": sum(t.named for t in all_) / max(seen, 1),
        "alone": sum(t.alone for t in all_) / max(seen, 1),
        "followed": sum(t.followed for t in all_) / max(follow, 1),
    }


def table(rejected: int, right: int, tallies: dict[str, Tally], seed: int) -> str:
    """The results as Markdown."""
    sums = totals(tallies)
    out = [
        "# How well mistakes are found and named",
        "",
        f"Written by `python tests/marking/simulation.py`, seed {seed}. A simulated learner, written without the marker's own",
        "code, works through random exercises at 1 to 6 decimals, carries on full or rounded numbers, and leaves lines out.",
        "",
        f"- Right sheets: {right}; marked wrong: {rejected}.",
        f"- Wrong sheets: {sums['wrong']}, each with one of {sums['kinds']} mistakes (by place);"
        f" {sums['distinguishable']} of them differ from the right numbers by more than rounding can do.",
        f"- Of these: first wrong step found {sums['found']:.1%}, mistake named {sums['named']:.1%},",
        f"  named alone (or only beside others with the very same numbers) {sums['alone']:.1%}.",
        f"- Later lines of these sheets followed through: {sums['followed']:.1%}.",
        "",
        "| mistake | at | sheets | told apart | first step found | named | alone | followed through |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for name in sorted(tallies):
        t = tallies[name]
        id, place = name.split("|")
        seen = t.sheets - t.same
        share = lambda n, of: "" if of == 0 else f"{n / of:.0%}"  # noqa: E731
        out.append(
            f"| {id} | {place} | {t.sheets} | {seen} | {share(t.found, seen)} | {share(t.named, seen)} |"
            f" {share(t.alone, seen)} | {share(t.followed, t.follow)} |"
        )
    return "\n".join(out) + "\n"


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
        "   ", [(s.id, s.verdict, [(m.step, m.id) for m in s.mistakes]) for s in marked.steps if s.verdict not in FINE]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=int, default=5000, help="right sheets; wrong ones: as many")
    parser.add_argument("--wrong", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print every sheet that went wrong")
    parser.add_argument("--dry", action="store_true", help="do not write the table")
    given = parser.parse_args()
    start = time.perf_counter()
    wrong = given.sheets if given.wrong is None else given.wrong
    rejected, tallies, right = run(given.sheets, wrong, given.seed, _print if given.show else None)
    text = table(len(rejected), right, tallies, given.seed)
    if not given.dry:
        OUT.write_text(text, encoding="utf-8")
    print("\n".join(text.splitlines()[5:12]), f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
