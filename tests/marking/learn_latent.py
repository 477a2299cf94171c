"""A learner with a calculator at multi-head latent attention (MLA), right and with the mistakes of the catalogue.

Bare NumPy; nothing of attncli is used here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from learn_heads import join_heads, projection_kinds, split_heads
from learn_layers import Lines, is_uneven, made, paths, turned_back, turned_kinds, turned_lines
from learner import Case, Exercise, Learner, Line, attention, attention_back, hidden_cells
from wrongs import Kind, output_wrong, scores_back, scores_wrong, softmax_wrong

_TURNED = {"Q_R_rotated": "Q_R_heads", "K_R_rotated": "K_R"}


def _draw(rng: random.Random) -> Case:
    while True:
        case = _drawn(rng)
        values = Learner(case, 6).run()
        if is_uneven(case.upstream) and np.abs(values["scores"]).max() <= 4:
            return case


def _drawn(rng: random.Random) -> Case:
    heads, n, width = rng.choice((1, 2, 2)), rng.randint(2, 3), rng.randint(3, 4)
    d, d_v, narrow, out = 2, rng.randint(1, 2), rng.randint(2, 3), rng.randint(2, 3)
    shapes: dict[str, tuple[int, ...]] = {"X": (n, width), "W_DKV": (width, narrow)}
    shapes |= {"W_UK": (narrow, heads * d), "W_UV": (narrow, heads * d_v)}
    source = width
    if rng.random() < 0.5:
        source = rng.randint(2, 3)
        shapes["W_DQ"] = (width, source)
    shapes["W_UQ"] = (source, heads * d)
    part = rng.choice((0, 2, 2, 4))
    if part:
        shapes |= {"W_QR": (source, heads * part), "W_KR": (width, part)}
    shapes["W_O"] = (heads * d_v, out)
    if rng.random() < 0.3:
        shapes["b_O"] = (out,)
    case = made("latent", rng, shapes, (n, out), 1.1)
    case.settings["heads"] = heads
    if part:
        case.settings["pairing"] = rng.choice(("adjacent", "half"))
        case.settings["base"] = rng.choice((4.0, 10.0, 10000.0))
    case.mask = rng.choice(("none", "causal"))
    case.hidden = hidden_cells(rng, case.mask, n, n)
    if case.mask == "causal":
        case.settings["causal"] = True
    case.names = ("Q_heads", "K_heads", "V_heads")
    case.width, case.turned, case.exercise = d + part, part, LATENT
    case.vectors = (*case.vectors, "G_b_O")
    return case


def _projections(case: Case) -> list[tuple[str, str, str]]:
    """What is projected, from what, by which weights: from the tokens down, and up again."""
    source = "c_Q" if "W_DQ" in case.inputs else "X"
    found = [("c_KV", "X", "W_DKV")]
    found += [("c_Q", "X", "W_DQ")] if source == "c_Q" else []
    found += [("Q_C", source, "W_UQ"), ("K_C", "c_KV", "W_UK"), ("V_C", "c_KV", "W_UV")]
    return found + ([("Q_R", source, "W_QR"), ("K_R", "X", "W_KR")] if case.turned else [])


def _cuts(case: Case) -> dict[str, str]:
    """What is cut into heads, by the name of the heads."""
    if not case.turned:
        return {"Q_heads": "Q_C", "K_heads": "K_C", "V_heads": "V_C"}
    return {"Q_C_heads": "Q_C", "K_C_heads": "K_C", "V_heads": "V_C", "Q_R_heads": "Q_R"}


def _lines(case: Case) -> Lines:
    heads = case.settings["heads"]
    for place, x, weight in _projections(case):
        yield place, lambda g, x=x, w=weight: g(x) @ g(w)
    for place, whole in _cuts(case).items():
        yield place, lambda g, w=whole: split_heads(g(w), heads)
    if case.turned:
        yield from turned_lines(case, _TURNED)
        yield "K_R_heads", lambda g: g("K_R_rotated")[None]
        if heads > 1:
            yield "K_R_shared", lambda g: np.repeat(g("K_R_heads"), heads, 0)
        shared = "K_R_shared" if heads > 1 else "K_R_heads"
        yield "Q_heads", lambda g: np.concatenate([g("Q_C_heads"), g("Q_R_rotated")], -1)
        yield "K_heads", lambda g: np.concatenate([g("K_C_heads"), g(shared)], -1)
    yield from attention(case)
    yield "concat", lambda g: join_heads(g("O"))
    yield "output", lambda g: g("concat") @ g("W_O") + (g("b_O") if "b_O" in case.inputs else 0)
    yield from _back(case)


def _back(case: Case) -> Lines:
    heads, width = case.settings["heads"], (case.width or 0) - case.turned
    if "b_O" in case.inputs:
        yield "G_b_O", lambda g: g("G_output").sum(0, keepdims=True)
    yield "G_W_O", lambda g: g("concat").T @ g("G_output")
    yield "G_concat", lambda g: g("G_output") @ g("W_O").T
    yield "G_O", lambda g: split_heads(g("G_concat"), heads)
    yield from attention_back(case)
    if case.turned:
        shared = "K_R_shared" if heads > 1 else "K_R_heads"
        yield f"G_{shared}", lambda g: g("G_K_heads")[..., width:]
        yield "G_K_C_heads", lambda g: g("G_K_heads")[..., :width]
        yield "G_Q_R_rotated", lambda g: g("G_Q_heads")[..., width:]
        yield "G_Q_C_heads", lambda g: g("G_Q_heads")[..., :width]
        if heads > 1:
            yield "G_K_R_heads", lambda g: g("G_K_R_shared").sum(0, keepdims=True)
        yield "G_K_R_rotated", lambda g: g("G_K_R_heads")[0]
        yield from turned_back(case, _TURNED)
    for place, whole in _cuts(case).items():
        yield f"G_{whole}", lambda g, p=place: join_heads(g(f"G_{p}"))
    for place, x, weight in reversed(_projections(case)):
        if place in ("c_KV", "c_Q"):
            yield from _sum_at(case, place)
        yield f"G_{weight}", lambda g, x=x, p=place: g(x).T @ g(f"G_{p}")
        at = f"G_{x}_{place}" if len(_uses(case, x)) > 1 else f"G_{x}"
        yield at, lambda g, w=weight, p=place: g(f"G_{p}") @ g(w).T
    yield from _sum_at(case, "X")


def _uses(case: Case, x: str) -> list[str]:
    """Where a matrix is used."""
    return [place for place, source, _ in _projections(case) if source == x]


def _sum_at(case: Case, x: str) -> Lines:
    meeting = [f"G_{x}_{place}" for place in _uses(case, x)]
    if len(meeting) > 1:
        yield f"G_{x}", lambda g: sum(g(one) for one in meeting)


def _kinds(case: Case) -> Iterator[Kind]:
    heads, width = case.settings["heads"], case.width or 0
    for place, x, weight in _projections(case):
        others = [w for p, _, w in [*_projections(case), ("output", "concat", "W_O")] if w != weight]
        several = len(_uses(case, x)) > 1
        yield from projection_kinds(case, place, x, weight, others, f"G_{x}_{place}" if several else f"G_{x}")
    yield from projection_kinds(case, "output", "concat", "W_O", [w for _, _, w in _projections(case)], "G_concat")
    yield Kind("output", "no-output-projection", lambda g: g("concat"))
    yield from scores_wrong(case)
    yield from softmax_wrong(case)
    yield from output_wrong(case)
    yield from scores_back(case)
    models = {case.inputs["X"].shape[1]} - {width}
    for model in models:
        yield Kind("scaled", "scale-by-model-width", lambda g, w=model: g("scores") / np.sqrt(w), f"{model}")
    for part in {width - case.turned, case.turned} - {0, 1, width} - models:
        yield Kind("scaled", "scale-by-part", lambda g, p=part: g("scores") / np.sqrt(p), f"{part}")
    if case.turned:
        yield from turned_kinds(case, _TURNED)
    if heads > 1:
        yield from _kinds_of_heads(case)
    for x in ("X", "c_KV", "c_Q"):
        meeting = [f"G_{x}_{place}" for place in _uses(case, x)]
        if len(meeting) > 1:
            yield from paths(f"G_{x}", meeting)


def _kinds_of_heads(case: Case) -> Iterator[Kind]:
    heads, rows = case.settings["heads"], len(case.inputs["X"])

    def cut(whole: str) -> Line:
        return lambda g: g(whole).reshape(heads, rows, -1)

    def joined(place: str) -> Line:
        return lambda g: g(place).reshape(rows, -1)

    for place, whole in _cuts(case).items():
        yield Kind(place, "split-without-transpose", cut(whole))
        yield Kind(f"G_{whole}", "merge-without-transpose", joined(f"G_{place}"))
    yield Kind("G_O", "split-without-transpose", cut("G_concat"))
    yield Kind("concat", "merge-without-transpose", joined("O"))
    yield Kind("concat", "heads-reversed", lambda g: join_heads(g("O")[::-1]))
    if case.turned:
        for only in (0, heads - 1):
            line: Any = lambda g, o=only: g("G_K_R_shared")[o : o + 1]  # noqa: E731
            yield Kind("G_K_R_heads", "group-not-summed", line, f"head {only + 1}")


LATENT = Exercise(_draw, _lines, _kinds, "output")
