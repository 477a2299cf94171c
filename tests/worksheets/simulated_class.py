"""Learners at the sheets of a recipe: right ones, and one for every known mistake, in bare NumPy.

What they calculate comes from `tests/marking` (`learner`, `habits`, `wrongs`, `learn_…`), where nothing of attncli is
used, and from `_further`; of attncli a problem is only read here, and its sheets are put together.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from habits import UP, Person, manner, page
from learn_heads import MULTI_HEAD
from learn_layers import EXERCISES
from learner import Case, Learner, Line, as_text, from_text, lines
from wrongs import Kind, kinds

from attncli.marking.feedback import Marked
from attncli.problems.answers import Sheet, answer
from attncli.problems.problem import Problem

#: Mistakes that come to the same numbers always, or where a matrix is square: nobody can tell them apart.
SAME = (
    {"operands-swapped", "layout-transposed", "cells-exchanged"},
    {"softmax-sign", "sign"},
    {"mask-as-zero", "mask-tiny"},
    {"mask-plus-infinity", "sign"},
    {"norm-paths-missing", "path-missing"},
    {"scale-by-d", "scale-by-model-width"},
    {"split-without-transpose", "cells-exchanged"},
)
#: Slips of the page, which stand in any line.
SLIPS = {"sign", "decimal-point", "cells-exchanged", "layout-transposed"}
#: What happens where operands do not fit.
_MISFITS = (ValueError, IndexError)
#: Nobody writes down larger numbers, which a sum near 0 may leave when it divides.
_LARGE = 1e9


def are_same(one: str, other: str) -> bool:
    """Whether two mistakes are one, or a listed pair."""
    return one == other or any({one, other} <= group for group in SAME)


@dataclass(frozen=True)
class Wrong:
    """A sheet with one mistake, carried on by hand, and the first line where it shows."""

    kind: Kind
    first: str
    texts: dict[str, str]


class Class:
    """Everybody who is handed one sheet."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.places = problem.decimals
        self.case = _case(problem)
        self.ids = [id for id, _ in lines(self.case) if id in problem.marking.points]
        values = Learner(self.case, self.places, "rounded").run(self.ids[-1])
        self.right = {id: as_text(values[id], self.places) for id in self.ids}
        self.case.vectors = tuple(id for id in self.ids if 1 in values[id].shape[-2:])

    def people(self, count: int, seed: int) -> Iterator[dict[str, str]]:
        """Right sheets: everybody carries on what they like of each line, rounded or cut off, and rounds what they write.

        Left out are those who round one line in two ways for two uses: they take a maximum from itself and get −0.001.
        """
        rng = random.Random(seed)
        for _ in range(count):
            how = manner(rng, self.places, self.ids)
            how.places, how.on_page = None, UP
            how.style = "by line" if how.style == "by use" else how.style
            values = Person(self.case, how).run(self.ids[-1])
            yield {id: page(values[id], self.places, UP) for id in self.ids}

    def _may_be_right(self, texts: dict[str, str], id: str) -> bool:
        """Whether a slip is too small to be seen: somebody who makes none may write such a number, or 0, in its place."""
        near = np.array([from_text(text) for text in self.reach[id]])
        low, high = near.min(0), near.max(0)
        room = 2 * np.where(np.isfinite(high), high, 0) - 2 * np.where(np.isfinite(low), low, 0) + 10.0**-self.places
        written, right = from_text(texts[id]), from_text(self.right[id])
        if written.shape != right.shape:
            return False
        off = written != right
        hidden = (written >= low - room) & (written <= high + room)
        nothing = (low - room <= 0) & (high + room >= 0) & (low < high)
        return bool((hidden | nothing)[off].any())

    @cached_property
    def reach(self) -> dict[str, list[str]]:
        """What right people write in every line."""
        sheets = list(self.people(40, 0))
        return {id: [one[id] for one in sheets] for id in self.ids}

    def wrong(self, seed: int = 0) -> Iterator[Wrong]:
        """Every mistake that can be made in a line asked for, where it changes what is written."""
        for kind in (*kinds(self.case, seed), *_further(self.case)):
            if not set(kind.lines) <= set(self.ids):
                continue
            texts = self._texts(kind)
            first = next((id for id in self.ids if texts.get(id, self.right[id]) != self.right[id]), None)
            if first is None or kind.place not in texts:
                continue
            if kind.id == "decimal-point" and _is_nothing(texts[kind.place], self.right[kind.place]):
                continue  # of a number whose digits are all gone nothing shows where its point went
            if not (kind.id in SLIPS and self._may_be_right(texts, first)):
                yield Wrong(kind, first, texts)

    def _texts(self, kind: Kind) -> dict[str, str]:
        """The lines as far as they can be worked out."""
        worker = Learner(self.case, self.places, "rounded", 0, dict(kind.lines))
        with contextlib.suppress(*_MISFITS):
            worker.run(self.ids[-1])
        texts = {id: as_text(worker.raw[id], self.places) for id in self.ids if _is_writable(worker.raw.get(id))}
        if kind.id == "layout-transposed" and kind.place in texts:  # written the other way round, not worked out so
            return {**self.right, kind.place: texts[kind.place]}
        return texts


def _is_nothing(text: str, right: str) -> bool:
    """Whether a number that is not the right one is written as 0."""
    cells = zip(text.replace(";", " ").split(), right.replace(";", " ").split(), strict=True)
    return any(cell != other and float(cell) == 0 for cell, other in cells)


def sheet(texts: dict[str, str]) -> Sheet:
    """What somebody hands in."""
    return Sheet(None, {id: answer(text) for id, text in texts.items()})


def complaint(problem: Problem, wrong: Wrong, marked: Marked) -> str:
    """What marking misses of one mistake; "" where it is found at its line, and named beside nothing but a listed pair."""
    own = wrong.kind.id
    if marked.layout != problem.layout and are_same(own, "layout-transposed"):
        return ""  # K Qᵀ for Q Kᵀ at the first line of all looks like tokens as columns
    said = f"{wrong.kind.name}, seen at {wrong.first}"
    if marked.first_wrong != wrong.first:
        return f"{said}: marked wrong first is {marked.first_wrong}"
    named = {one.id for step in marked.steps if step.id == wrong.first for one in step.mistakes}
    if own not in named:
        return f"{said}: named is {sorted(named)}"
    others = {id for id in named if not are_same(own, id) and not (own in SLIPS and id in SLIPS)}
    return f"{said}: also named is {sorted(others)}" if others else ""


def _is_writable(values: Any) -> bool:
    if values is None or np.ndim(values) < 2 or np.isnan(values).any():
        return False
    return bool(np.abs(values[np.isfinite(values)]).max(initial=0.0) <= _LARGE)


def _case(problem: Problem) -> Case:
    """The exercise of a sheet, from its problem file alone."""
    inputs: dict[str, Any] = {id: np.array(one.values) for id, one in problem.inputs.items()}
    if "T" in inputs:
        inputs["T"] = inputs["T"].astype(int).ravel()
    settings = {id: value for id, value in problem.settings.items() if id not in ("causal", "eta")}
    case = Case(problem.model, inputs, {}, settings=settings, eta=problem.settings.get("eta"))
    if problem.upstream is not None:
        case.upstream = np.array(problem.upstream.values)
    if problem.settings.get("causal"):
        tokens = len(inputs["Q" if "Q" in inputs else "X"])
        case.mask, case.hidden = "causal", np.triu(np.ones((tokens, tokens), dtype=bool), 1)
    if problem.model == "multi_head":
        case.exercise, case.names = MULTI_HEAD, ("Q_heads", "K_heads", "V_heads")
        case.width = inputs["W_Q"].shape[1] // settings["heads"]
    elif problem.model == "layer_norm":
        case.exercise, *_ = EXERCISES
    return case


# Mistakes of the catalogue that the learners of tests/marking do not make. ------------------------------------------


def _further(case: Case) -> Iterator[Kind]:
    if case.model == "layer_norm":
        yield from _of_norm(case)
        return
    yield Kind("deviation", "value-for-gradient", lambda g: g("A") - g("row_dot"))
    if case.model == "multi_head":
        mean: Line = lambda g: g.aside("weights", g("exp") / g("row_sum")).mean(0)  # noqa: E731
        yield Kind("A", "heads-averaged", mean, "one matrix")
        yield Kind("A", "heads-averaged", lambda g: np.stack([mean(g)] * case.settings["heads"]), "for every head")
        for name in "QKV":
            if case.inputs[f"W_{name}"].shape == case.inputs["W_O"].shape:
                yield Kind("output", "wrong-weight", lambda g, n=name: g("concat") @ g(f"W_{n}"), name)
    elif case.model != "softmax":
        q, k, _ = case.names
        yield Kind(f"G_{q}", "operands-swapped", lambda g: g(k) @ g("G_scores"))
    if "W_Q" in case.inputs and case.model != "multi_head":
        for name in "QKV":
            for other in "QKV".replace(name, ""):
                yield Kind(f"G_X_{name}", "gradients-swapped", lambda g, o=other: g(f"G_{o}") @ g(f"W_{o}").T, other)


def _of_norm(case: Case) -> Iterator[Kind]:
    eps, (rows, width) = case.settings["eps"], case.inputs["X"].shape
    of_all: Line = lambda g: np.full((rows, 1), (g("centred") ** 2).mean())  # noqa: E731
    whole = {"variance": of_all}
    yield Kind("mean", "normalised-over-all", lambda g: np.full((rows, 1), g("X").mean()), also=whole)
    yield Kind("centred", "normalised-over-all", lambda g: g("X") - g.aside("mean", g("X").mean()), also=whole)
    yield Kind("variance", "normalised-over-all", of_all)
    yield Kind("std", "rooted-twice", lambda g: np.sqrt(g.aside("bare", np.sqrt(g("variance"))) + eps))
    yield Kind("std", "variance-squared", lambda g: g.aside("sum", g("variance") + eps) ** 2)
    yield Kind("G_X_centred", "value-for-gradient", lambda g: g("centred"))
    yield Kind("G_X_mean", "value-for-gradient", lambda g: np.repeat(g("mean") / width, width, -1))
    yield Kind("G_centred_variance", "value-for-gradient", lambda g: 2 * g("centred") * g("variance") / width)
    yield Kind("G_mean_total", "value-for-gradient", lambda g: g("centred").sum(-1, keepdims=True))
    for name, source in (("mean", "G_centred"), ("std", "G_std_product")):
        yield Kind(f"G_{name}_total", "row-dot-over-columns", lambda g, s=source: g(s).sum(0, keepdims=True))
    yield Kind("G_variance_half", "gradient-scale-lost", lambda g: g("G_std"))
