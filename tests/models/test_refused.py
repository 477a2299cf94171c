"""What a model or a loss refuses, and what it says then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from block_cases import weights
from cases import Case, cached, message, qkv, some, table
from cases import weights as weights_of_attention

from attncli.core.matrix import as_matrix
from attncli.core.message import InputError


def gpt(settings: Mapping[str, Any], *, without: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    """Weights of a GPT over three tokens, without those that are named."""
    bare = ("W_gate", "b_out", "final.gamma", "final.beta", *without)
    return weights("gpt", settings, without=bare, T=[0, 3, 4], **given)


NO_EXTRAS = ("P", "W_O")
TWO_LAYERS = {"layers": 2, "positions": "none"}


def with_caches(first: int, second: int) -> dict[str, np.ndarray]:
    sizes = {"layer1": first, "layer2": second}
    kinds = {"K_past": 4, "V_past": 2}
    return {
        f"{layer}.self.{kind}": some(1, length, width)
        for layer, length in sizes.items()
        for kind, width in kinds.items()
    }


MODELS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "A cache needs both K_past and V_past; V_past is missing.": (
        "attention",
        {name: value for name, value in cached(2, 1, 2, 2).items() if name != "V_past"},
        {},
    ),
    "layer2.self.K_past holds 3 tokens, but layer1.self.K_past holds 2.": (
        "gpt",
        gpt(TWO_LAYERS, without=(*NO_EXTRAS, "W_Q", "W_K", "W_V")) | with_caches(2, 3),
        TWO_LAYERS,
    ),
    "Learned positions need P": ("gpt", gpt({}, without=NO_EXTRAS), {"positions": "learned"}),
    "P is given, but positions is none.": ("gpt", gpt({}, without=("W_O",)), {}),
    "Model gpt with 0 layers needs W_Q, W_V.": ("gpt", gpt({}, without=(*NO_EXTRAS, "W_Q", "W_V")), {}),
    "heads needs W_O, which joins the heads.": ("gpt", gpt({}, without=NO_EXTRAS), {"heads": 2}),
    "The logits need W_out": ("gpt", gpt({}, without=(*NO_EXTRAS, "W_out")), {}),
    "tied is set, so the logits use E, but W_out is given too.": ("gpt", gpt({}, without=NO_EXTRAS), {"tied": True}),
    "tied uses E (5×4) for the logits too, but a token's vector has 3 numbers there.": (
        "gpt",
        gpt({}, without=(*NO_EXTRAS, "W_out"), sizes={"d_v": 3}),
        {"tied": True},
    ),
    "layers = 49 is more than this can show; the limit is 48.": ("gpt", {}, {"layers": 49}),
    "Model tokens needs text. Give it like this: --set text=": ("tokens", {}, {"vocabulary": ["a"]}),
    "average_heads is given, but there are no heads to average.": (
        "attention",
        qkv(2, 2, 2, 2),
        {"average_heads": True},
    ),
}


@pytest.mark.parametrize("said", MODELS)
def test_what_a_model_says(said: str) -> None:
    model, inputs, settings = MODELS[said]
    assert message(model, inputs, **settings).startswith(said)


CLASSES = [0, 2, 1]
LOSSES: dict[str, tuple[str, Mapping[str, Any], str, Any]] = {
    "cross_entropy needs one row of scores for each token, but O is 2×3×4.": (
        "attention",
        qkv(3, 3, 2, 4, heads=2),
        "cross_entropy(O, C)",
        CLASSES,
    ),
    "No token counts: every target is −1.": ("product", {}, "cross_entropy(O, C)", [-1, -1, -100]),
    "C has 2 targets, but O has 3 rows, one for each token.": ("product", {}, "cross_entropy(O, C)", [0, 1]),
    "C, entry 2: 1.5 is not a class. Classes are whole numbers from 0 to 3;": (
        "product",
        {},
        "nll(O, C)",
        [0, 1.5, 1],
    ),
    "C, entry 3: 4 is not a class.": ("product", {}, "nll(O, C)", [0, 1, 4]),
    "The loss names T, which is 3: a loss is taken of matrices.": (
        "embedding",
        table(4, 3, [2, 3, 0]),
        "sum(T)",
        CLASSES,
    ),
    "The loss names cos, which depends on nothing that is learned here": (
        "rotary",
        {"X": some(3, 4)},
        "sum(cos)",
        CLASSES,
    ),
    "The target “a.b” is not a name.": ("product", {}, "mse(O, a.b)", CLASSES),
    "nll takes the output and the targets.": ("product", {}, "nll(O)", CLASSES),
    "A sum of O − C without a square": ("product", {}, "Σ(O − C)", CLASSES),
    "The loss “(sum(O))^2” cannot be read from “^2” on.": ("product", {}, "(sum(O))^2", CLASSES),
    "The loss “2^” stops in the middle.": ("product", {}, "2^", CLASSES),
    "The loss “sqrt(2*sum(O)” stops in the middle.": ("product", {}, "sqrt(2*sum(O)", CLASSES),
    "The loss “sum((O^2)^2)” cannot be read from “)” on.": ("product", {}, "sum((O^2)^2)", CLASSES),
}


def loss_of(model: str, inputs: Mapping[str, Any], loss: str, classes: Any) -> None:
    given = inputs or {"A": some(3, 2), "V": some(2, 4)}
    Case(given).problem(model, loss=loss, extras={"C": as_matrix(classes)}).graph()


@pytest.mark.parametrize("said", LOSSES)
def test_what_a_loss_says(said: str) -> None:
    with pytest.raises(InputError) as error:
        loss_of(*LOSSES[said])
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("loss", ["sum(((O)^2))", "sum(((O - T)^2))", "Σ((O − T)²)"])
def test_brackets_within_brackets(loss: str) -> None:
    given, target = {"A": some(3, 2), "V": some(2, 2)}, {"T": as_matrix(some(3, 2))}
    graph = Case(given).problem("product", loss=loss, extras=target).graph()
    o = graph.evaluate()["O"] - (some(3, 2) if "T" in loss else 0)
    assert graph.evaluate()["L"] == pytest.approx(np.sum(o**2))


@pytest.mark.parametrize("name", ["keep", "mask"])
def test_a_row_of_marks_holds_for_every_query(name: str) -> None:
    flat = np.array([True, False, True]) if name == "keep" else np.array([0.0, -np.inf, 0.5])
    one, row = (Case(qkv(2, 3, 2, 2), {name: marks}).problem("attention").graph() for marks in (flat, flat[None]))
    assert one.inputs["M"].matrix.shape == (2, 3)
    np.testing.assert_array_equal(one.inputs["M"].matrix.values, row.inputs["M"].matrix.values)


def test_the_model_s_own_tokens_are_as_many_as_the_rows() -> None:
    case = Case(table(4, 3, [2, 0, 2]) | weights_of_attention(3, 2, 4))
    with pytest.raises(InputError) as error:
        case.problem("embedded_attention", loss="sum(O) + cross_entropy(E, T)").graph()
    assert str(error.value) == "T has 3 tokens, but E has 4 rows."
