"""Dumps of programs: right ones are never marked wrong however they calculate; a real departure is found."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from dumps import Program
from learn_forward import FEED_FORWARD
from learn_layers import EXERCISES
from learner import Learner
from simulation import problem
from wrongs import kinds

from attncli.marking.mark import Marker
from attncli.problems.answers import sheet_from_arrays
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

LAYERS = {"layer_norm": 0, "rms_norm": 1, "positions": 2, "rotary": 3}
KINDS = (np.float32, np.float64)


def cases(layer: str, count: int):  # type: ignore[no-untyped-def]
    rng = random.Random(layer)
    exercise = FEED_FORWARD if layer == "feed_forward" else EXERCISES[LAYERS[layer]]
    for _ in range(count):
        case = exercise.draw(rng)
        yield case, Marker(problem(case, 6)), rng


def judged(marker, dump):  # type: ignore[no-untyped-def]
    return marker.mark(sheet_from_arrays(dump))


@pytest.mark.parametrize("kind", KINDS, ids=["float32", "float64"])
@pytest.mark.parametrize("layer", [*LAYERS, "feed_forward"])
def test_right_programs_are_never_marked_wrong(layer: str, kind) -> None:  # type: ignore[no-untyped-def]
    for case, marker, rng in cases(layer, 50):
        dump = Program(case, kind, rng).run()
        share = rng.choice((1.0, 1.0, 0.5, 0.2))
        kept = {id: value for id, value in dump.items() if rng.random() < share}
        marked = judged(marker, kept)
        assert marked.ok, (case.texts, case.settings, [step for step in marked.steps if step.verdict == "wrong"][:1])


def stored():  # type: ignore[no-untyped-def]
    return json.loads(Path(__file__).with_name("torch_dumps.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("which", range(0, 50, 10))
def test_pytorch_in_float32_is_never_marked_wrong(which: int) -> None:
    """Its fused layers, and its gradients by autograd; written by make_torch_dumps.py."""
    for one in stored()[which : which + 10]:
        inputs = {name: parse_matrix(text) for name, text in one["inputs"].items()}
        upstream = parse_matrix(one["upstream"]) if "upstream" in one else None
        exercise = Problem(one["model"], inputs, settings=one["settings"], upstream=upstream, id="torch")
        dump = {id: np.array(value, dtype=np.float32) for id, value in one["dump"].items()}
        marked = judged(Marker(exercise), dump)
        assert marked.ok, (one["model"], one["settings"], marked.first_wrong)


@pytest.mark.parametrize("layer", [*LAYERS, "feed_forward"])
def test_one_cell_off_in_the_fifth_digit_is_found(layer: str) -> None:
    """In float32, at the largest cell of a line. Where large parts cancel, as they do in the gradient of a norm, less
    is known of what is left."""
    for case, marker, rng in cases(layer, 40):
        dump = Program(case, np.float32, rng).run()
        id = rng.choice([id for id in dump if np.abs(dump[id]).max() > 0.3 and not ("norm" in layer and id == "G_X")])
        off = dump[id].copy()
        place = np.unravel_index(np.abs(off).argmax(), off.shape)
        off[place] += 10.0 ** (np.floor(np.log10(abs(off[place]))) - 4)
        first = judged(marker, {**dump, id: off}).first_wrong
        assert first == id, (case.texts, case.settings, id)


@pytest.mark.parametrize("layer", [*LAYERS, "feed_forward"])
def test_mistakes_of_programs_are_named(layer: str) -> None:
    named = tried = 0
    for case, marker, rng in cases(layer, 40):
        kind = rng.choice([kind for kind in kinds(case) if not kind.page])
        right = Learner(case, 6).run()
        try:
            values = Learner(case, 6, wrong=kind.lines).run()
        except (ValueError, IndexError):
            continue
        if any(values[id].shape != right[id].shape or not np.isfinite(values[id]).all() for id in values):
            continue
        off = [id for id in values if not np.allclose(values[id], right[id], rtol=1e-4, atol=1e-5)]
        if not off:
            continue
        marked = judged(marker, {id: value.astype(np.float32) for id, value in values.items()})
        step = next(step for step in marked.steps if step.id == off[0])
        assert marked.first_wrong == off[0]
        tried += 1
        named += kind.id in {one.id for one in step.mistakes}
    assert tried >= 15
    assert named >= 0.9 * tried


WHOLE = {"X": "1 2 3; 0 1 1; 2 0 1", "W_Q": "1 0; 0 1; 1 1", "W_K": "1 0; 0 1; 0.5 1", "W_V": "1 0; 0 1; 1 1"}


def half_precision(order: int):  # type: ignore[no-untyped-def]
    """Causal self-attention as a program in float16 works it out, every result rounded to float16."""
    x, w_q, w_k, w_v = (parse_matrix(text).values.astype(np.float16) for text in WHOLE.values())

    def product(a, b):  # type: ignore[no-untyped-def]
        return (a[..., ::order] @ b[::order]).astype(np.float16)

    out = {"Q": product(x, w_q), "K": product(x, w_k), "V": product(x, w_v)}
    out["scores"] = product(out["Q"], out["K"].T)
    out["scaled"] = out["scores"] * np.float16(1 / np.sqrt(2)) if order < 0 else out["scores"] / np.float16(np.sqrt(2))
    masked = np.where(np.tri(3, dtype=bool), out["scaled"], np.float16(-np.inf))
    out["exp"] = np.exp(masked - masked.max(-1, keepdims=True))
    out["A"] = out["exp"] / out["exp"].sum(-1, keepdims=True)
    out["O"] = product(out["A"], out["V"])
    return out


def test_float16_is_about_three_digits_and_no_more() -> None:
    inputs = {name: parse_matrix(text) for name, text in WHOLE.items()}
    marker = Marker(Problem("self_attention", inputs, settings={"causal": True}, id="half"))
    for order in (1, -1):
        right = half_precision(order)
        assert all(value.dtype == np.float16 for value in right.values())
        assert judged(marker, right).ok
    for id in ("scores", "scaled", "O"):  # a hundredth off: ten units of its precision
        off = (right[id] * np.float16(1.01)).astype(np.float16)
        assert judged(marker, {id: off}).first_wrong == id
