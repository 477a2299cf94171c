"""Scaled dot-product attention from Q, K and V."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, InputError
from attncli.models import Argument, Given, Model
from attncli.models._attend import SETTINGS, attend


def build(graph: Graph, given: Given) -> str:
    """Q ([head] query d_k), K ([kv_head] key d_k), V ([kv_head] key d_v) → O ([head] query d_v); without V → A."""
    heads = given.inputs["Q"].values.ndim == 3
    same = heads and given.inputs["K"].shape[:1] == given.inputs["Q"].shape[:1]
    other = ["head" if same else "kv_head"] if heads else []
    q = graph.input("Q", given.inputs["Q"], [*(["head"] if heads else []), "query", "d_k"])
    row = "new_key" if "K_past" in given or "V_past" in given else "key"
    k = graph.input("K", given.inputs["K"], [*other, row, "d_k"])
    if "V" not in given and "V_past" in given:
        raise InputError("V_past is given without V. Give V too, or leave the cache out.")
    v = graph.input("V", given.inputs["V"], [*other, row, "d_v"]) if "V" in given else None
    return attend(graph, q, k, v, given)


MODEL = Model(
    name="attention",
    text=N_("scaled dot-product attention: scores, softmax, weighted values"),
    arguments=(
        Argument("Q", ("query", "d_k"), N_("queries: what each token is looking for")),
        Argument("K", ("key", "d_k"), N_("keys: what each token can be matched by")),
        Argument(
            "V",
            ("key", "d_v"),
            N_("values: what each token hands over; left out, the weights A are the result"),
            required=False,
        ),
        Argument("K_past", ("past_key", "d_k"), N_("cached keys that go before K"), required=False),
        Argument("V_past", ("past_key", "d_v"), N_("cached values that go before V"), required=False),
    ),
    settings=SETTINGS,
    build=build,
)
