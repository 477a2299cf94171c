"""A wrong answer of every kind to every step of every worked example, and sheets that deserve nothing.

No traceback, no points, nothing called malformed that can be read. What a step truly comes to is the calculation in
full and by hand (`attncli.forward` and `backward`), not what the marker thinks of it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from habits import UP, Reach, page, shortened

import attncli
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet
from attncli.problems.problem import Problem

EXAMPLES = Path(__file__).parents[2] / "worked_examples"


def every_example(published: bool = False) -> list[Path]:
    """The worked examples; those taken from other people's pages too."""
    found = sorted(EXAMPLES.glob("*.toml"))
    return found + sorted((EXAMPLES / "published").glob("*.toml")) if published else found


@dataclass
class Example:
    """A worked example and what is true of it."""

    path: Path
    problem: Problem
    marker: Marker = field(repr=False)

    @staticmethod
    def of(path: Path) -> Example:
        problem = attncli.load(path)
        return Example(path, problem, Marker(problem))

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def steps(self) -> list[str]:
        """Every step that can be answered."""
        return list(self.marker.graph.steps)

    @property
    def asked(self) -> list[str]:
        """The steps that a blank sheet is charged for."""
        return [step.id for step in self.marker.mark(sheet({"answers": {}})).steps if step.max_points]

    def places(self, id: str) -> int:
        return self.problem.decimals_of(id)

    def _run(self, **how: Any) -> Any:
        run = attncli.backward if self.problem.has_gradient else attncli.forward
        return run(self.problem, **how)

    @cached_property
    def full(self) -> dict[str, Any]:
        run = self._run()
        return {id: np.asarray(run[id], dtype=float) for id in self.steps}

    @cached_property
    def reach(self) -> dict[str, Reach]:
        """Between the values in full and those of whoever carries on rounded ones."""
        low, high = dict(self.full), dict(self.full)
        default = self.problem.decimals
        for places in range(default, default + 4):
            run = self._run(arithmetic="hand", decimals=places)
            for id in self.steps:
                value = np.asarray(run[id], dtype=float)
                low[id], high[id] = np.fmin(low[id], value), np.fmax(high[id], value)
        return {id: Reach(low[id], high[id], self.full[id]) for id in self.steps}

    def text(self, id: str, values: Any = None, way: str = UP) -> str:
        return page(self.full[id] if values is None else values, self.places(id), way)


# One wrong answer -------------------------------------------------------------------------------------------------


@dataclass
class Wrong:
    """A wrong answer, and the verdicts that it may have."""

    what: str
    answer: Any
    allowed: tuple[str, ...]


def wrong_answers(example: Example, id: str) -> Iterator[Wrong]:
    """Everything that somebody may write in place of the right answer."""
    full, places = example.full[id], example.places(id)
    flat = full.reshape(-1)
    is_vector = full.ndim < 2 or (1 in full.shape[-2:] and full.ndim == 2)
    unit = 10.0**-places
    wrong = np.where(
        np.isfinite(full), -1.7 * full + 2.3 + 7 * unit + 0.01 * np.arange(full.size).reshape(full.shape), 0.7
    )
    wrong = np.where(np.abs(wrong - np.where(np.isfinite(full), full, 9)) < 3 * unit + 0.2, wrong + 1.1, wrong)
    one_cell = np.atleast_2d(np.where(np.isfinite(full), full, 0.0)).copy()
    one_cell.flat[-1] += 3.7 + 10 * unit
    nothing = ("wrong", "malformed")
    yield Wrong("every number wrong", page(wrong, places), ("wrong",))
    yield Wrong("one number wrong", _same_infinities(page(one_cell, places), full, one_cell, places), ("wrong",))
    yield Wrong("every number wrong, as lists", wrong.tolist(), ("wrong",))
    if is_vector and full.size > 1:
        yield Wrong("wrong, the vector as a row", page(wrong.reshape(1, -1), places), ("wrong",))
        yield Wrong("wrong, the vector as a column", page(wrong.reshape(-1, 1), places), ("wrong",))
        yield Wrong("wrong, one-dimensional", wrong.reshape(-1).tolist(), ("wrong",))
    elif full.size > 1:
        yield Wrong("wrong, one-dimensional", wrong.reshape(-1).tolist(), nothing)
        yield Wrong("flattened", page(flat.reshape(1, -1), places), nothing)
        yield Wrong("flattened, a column", page(flat.reshape(-1, 1), places), nothing)
    matrix = np.atleast_2d(wrong)
    if matrix.ndim == 2:
        yield Wrong("a row too many", page(np.vstack([matrix, matrix[:1]]), places), nothing)
        yield Wrong("a column too many", page(np.hstack([matrix, matrix[:, :1]]), places), nothing)
        if len(matrix) > 1:
            yield Wrong("a row left out", page(matrix[:-1], places), nothing)
        yield Wrong("heads where there are none", page(np.stack([matrix, matrix]), places), nothing)
        if not is_vector:
            yield Wrong(
                "wrong and transposed",
                page(matrix.T, places),
                ("wrong",) if matrix.shape[0] == matrix.shape[1] else nothing,
            )
    else:
        yield Wrong("a head left out", page(matrix[:-1] if len(matrix) > 1 else matrix[0][:, :1], places), nothing)
        yield Wrong("heads behind each other", page(np.concatenate(list(matrix), 0), places), nothing)
        yield Wrong("four axes", wrong[None, None].tolist(), nothing + ("correct",) * 0)
    yield Wrong("a single number", "7.25", ("wrong",) if full.size == 1 else nothing)
    yield Wrong("text", "what is asked?", ("malformed",))
    yield Wrong("a word", "Q", ("malformed",))
    yield Wrong("text in a cell", page(matrix, places).replace(" ", " x ", 1) + " x", ("malformed",))
    yield Wrong("rows of unequal length", "1 2; 3", nothing)
    yield Wrong("infinite", page(np.full(matrix.shape, np.inf), 0), ("wrong",))
    if not (full == -np.inf).all():
        yield Wrong("minus infinity", page(np.full(matrix.shape, -np.inf), 0), ("wrong",))
    yield Wrong("nan", page(np.full(matrix.shape, np.nan), 0), nothing)
    yield Wrong("nan as numbers", np.full(full.shape or (1,), np.nan).tolist(), nothing)
    yield Wrong("huge", page(np.ones(matrix.shape), 0).replace("1", "1e300"), ("wrong",))
    yield Wrong("beyond all numbers", " ".join(["1e999"] * matrix.shape[-1]), nothing)
    yield Wrong("nothing", "", ("blank",))
    yield Wrong("all blank", _blanks(matrix, lambda at: True), ("blank",))
    if full.size > 1:
        yield Wrong("one cell left blank, the rest wrong", _blanks(matrix, lambda at: at == 0, places), ("wrong",))
    yield Wrong("an empty list", [], ("blank", *nothing))
    yield Wrong("a truth value", True, nothing)
    yield Wrong("a table", {"a": 1}, nothing)


def right_either_way(example: Example, id: str) -> Iterator[tuple[str, Any]]:
    """Right vectors, written as a row, as a column, and as a list."""
    full = example.full[id]
    matrix = np.atleast_2d(full)
    yield "right", example.text(id)
    if matrix.ndim == 2 and 1 in matrix.shape and np.isfinite(full).all():
        yield "right, as a row", example.text(id, matrix.reshape(1, -1))
        yield "right, as a column", example.text(id, matrix.reshape(-1, 1))
        yield "right, one-dimensional", shortened(matrix, example.places(id), UP).reshape(-1).tolist()


def _same_infinities(text: str, full: Any, values: Any, places: int) -> str:
    out = np.where(np.isfinite(np.atleast_2d(full)), values, np.atleast_2d(full))
    out.flat[-1] = values.flat[-1]
    return page(out, places)


def _blanks(matrix: Any, blank: Any, places: int = 3) -> str:
    pages = matrix if matrix.ndim == 3 else matrix[None]
    at = iter(range(matrix.size))
    return " | ".join(
        "; ".join(
            " ".join("?" if blank(next(at)) else f"{v if np.isfinite(v) else 0.7:.{places}f}" for v in row)
            for row in one
        )
        for one in pages
    )


def faults_of_answers(example: Example) -> tuple[list[str], int]:
    """What went wrong with wrong answers to every step; and how many there were."""
    faults = []
    tried: list[tuple[str, str, Any, tuple[str, ...]]] = []
    for id in example.steps:
        tried += [(id, wrong.what, wrong.answer, wrong.allowed) for wrong in wrong_answers(example, id)]
        tried += [(id, what, answer, ("correct",)) for what, answer in right_either_way(example, id)]
    found = marked_all(example.marker, [{id: answer} for id, _, answer, _ in tried])
    for (id, what, answer, allowed), marked in zip(tried, found, strict=True):
        where = f"{example.name} | {id}={answer!r:.160} | {what}"
        if isinstance(marked, Exception):
            faults.append(f"{where} | TRACEBACK {type(marked).__name__}: {marked}")
            continue
        step = next((step for step in marked.steps if step.id == id), None)
        if step is None:
            faults.append(f"{where} | not marked at all")
        elif step.verdict not in allowed:
            faults.append(f"{where} | {step.verdict}, not {' or '.join(allowed)}")
        elif step.points and "correct" not in allowed:
            faults.append(f"{where} | {step.points} points")
    return faults, len(tried)


#: Sheets on which nothing may be followed through.
_TRIVIAL = ("zeros", "ones", "identity", "halves")


# Sheets that deserve nothing --------------------------------------------------------------------------------------


def floor_sheets(example: Example) -> Iterator[tuple[str, dict[str, str]]]:
    """Zeros, ones, everything one too small, and each line one unit off, alone."""
    asked = example.asked

    def all_lines(fill: Any) -> dict[str, str]:
        return {
            id: page(fill(np.atleast_2d(example.full[id]), 10.0 ** -example.places(id)), example.places(id))
            for id in asked
        }

    yield "zeros", all_lines(lambda v, unit: np.zeros(v.shape))
    yield "ones", all_lines(lambda v, unit: np.ones(v.shape))
    yield "identity", all_lines(lambda v, unit: np.broadcast_to(np.eye(*v.shape[-2:]), v.shape))
    yield "halves", all_lines(lambda v, unit: np.full(v.shape, 0.5))
    yield "one unit too small", all_lines(lambda v, unit: v - unit)
    yield "one unit too large", all_lines(lambda v, unit: v + unit)
    yield "one too small", all_lines(lambda v, unit: v - 1)
    for id in asked:
        v, places = np.atleast_2d(example.full[id]), example.places(id)
        finite = np.isfinite(example.full[id])
        with np.errstate(invalid="ignore"):
            spread = example.reach[id].high - example.reach[id].low
        if np.abs(np.where(finite, spread, 0)).max(initial=0) > 1e-9 or not finite.all():
            continue
        if np.abs(v * 10.0**places - np.rint(v * 10.0**places)).max() > 1e-6:
            continue
        is_whole = bool((v == np.rint(v)).all())
        for step in (-1, 1):
            yield f"exact line, {step:+d} unit", {id: page(v + step * 10.0**-places, places)}
            if is_whole:
                yield f"whole line, {step:+d}", {id: page(v + step, 0)}
                off = v.copy()
                off.flat[0] += step
                yield f"whole line, {step:+d} in one cell", {id: page(off, 0)}
        if is_whole and (v != 0).any():
            yield "whole line, a tenth less", {id: page(v - np.where(v == 0, 0, 0.1), 1)}


def faults_of_floor(example: Example) -> tuple[list[str], Counter[str], Counter[str], Counter[str]]:
    """Points that are not deserved; sheets, and undeserved and all points by kind of sheet."""
    faults: list[str] = []
    sheets, gained, most = Counter[str](), Counter[str](), Counter[str]()
    found = list(floor_sheets(example))
    for (what, answers), marked in zip(found, marked_all(example.marker, [one for _, one in found]), strict=True):
        sheets[what] += 1
        if isinstance(marked, Exception):
            faults.append(f"{example.name} | {what} | {answers} | TRACEBACK {type(marked).__name__}: {marked}")
            continue
        for step in marked.steps:
            if step.id not in answers:
                continue
            most[what] += float(step.max_points)
            if not step.points or _is_honest(example, step.id, answers[step.id]):
                continue
            if step.verdict == "follow_through" and what not in _TRIVIAL:
                continue
            gained[what] += float(step.points)
            faults.append(
                f"{example.name} | {what} | {step.id}={answers[step.id]} | {step.verdict}, {step.points} points;"
                f" it is {example.text(step.id)}"
            )
    return faults, sheets, gained, most


def marked_all(marker: Marker, answers: list[dict[str, Any]]) -> list[Any]:
    """Every sheet marked, side by side; in place of a mark the exception that came, where one did."""
    sheets = [sheet({"answers": one}) for one in answers]
    try:
        return list(marker.mark_many(sheets))
    except Exception:  # then each by itself, to find which
        return [_marked_or_raised(marker, one) for one in sheets]


def _marked_or_raised(marker: Marker, one: Any) -> Any:
    try:
        return marker.mark(one)
    except Exception as error:
        return error


def _values(text: str) -> Any:
    pages = [[[float(cell) for cell in row.split()] for row in one.split(";")] for one in text.split("|")]
    return np.array(pages[0] if len(pages) == 1 else pages)


def _is_honest(example: Example, id: str, text: str) -> bool:
    values, there = _values(text), example.reach[id]
    if values.size != there.full.size:
        return False
    values = values.reshape(there.full.shape)
    if id.rpartition(".")[2] == "shifted":  # any constant may be taken away from a row
        with np.errstate(invalid="ignore"):
            values = values - (np.nanmax(values - there.full, -1, keepdims=True) if values.ndim > 1 else 0)
        values = np.where(there.full == -np.inf, there.full, values)
    return bool(there.honest(values, example.places(id), 4.0).all())


def report(show: int = 0, published: bool = False, only: Sequence[str] = ()) -> str:
    """Everything, for every worked example, as lines of text; each example's own as it comes."""
    answers, floors, count = [], [], 0
    sheets, gained, most = Counter[str](), Counter[str](), Counter[str]()
    kinds: Counter[str] = Counter()
    for path in every_example(published):
        if only and path.stem.partition("-")[0] not in only:
            continue
        start = time.perf_counter()
        example = Example.of(path)
        found, tried = faults_of_answers(example)
        answers += found
        count += tried
        below, *counted = faults_of_floor(example)
        floors += below
        for total, part in zip((sheets, gained, most), counted, strict=True):
            total.update(part)
        seconds = time.perf_counter() - start
        print(
            f"{example.name}: {tried} answers, {len(found)} off; {len(below)} undeserved; {seconds:.1f} s", flush=True
        )
        for fault, kind in [*((f, f.split(" | ")[2]) for f in found), *((f, f.split(" | ")[1]) for f in below)]:
            kinds[kind] += 1
            if kinds[kind] <= show:
                print("   ", fault, flush=True)
    out = [f"Answers to every step of every example: {count}; not as they should be: {len(answers)}"]
    out += ["", "| sheets of the worked examples | sheets | undeserved points | of |", "| --- | --: | --: | --: |"]
    out += [f"| {what} | {sheets[what]} | {gained[what]:g} | {most[what]:g} |" for what in sheets]
    return "\n".join([*out, "", "Went wrong: " + (", ".join(f"{k} {n}" for k, n in kinds.most_common()) or "nothing")])


if __name__ == "__main__":
    print(report(int(sys.argv[1]) if len(sys.argv) > 1 else 0, only=sys.argv[2:]))
