"""Every model of the registry: its gradients by random projections, its step ids, and what it says."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
from cases import CASES, EACH, IDS, KEEP_BUT_ROW_2, Case, cached, qkv, some, table, tokens, weights
from projection import assert_slope

from attncli import models
from attncli.core.graph import Graph, Trace, gradient_id
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, ShapeError
from attncli.problems.problem import Problem

#: Models in which nothing can be changed a little.
CONSTANT = ("tokens", "positions")
WITH_GRADIENTS = [(m, c) for m, c in EACH if m not in CONSTANT]
WITH_GRADIENTS_IDS = [i for i, (m, _) in zip(IDS, EACH, strict=True) if m not in CONSTANT]


def test_every_model_has_a_case() -> None:
    assert set(CASES) == set(models.names())


def test_every_model_stands_in_its_file() -> None:
    for file, names in models.FILES.items():
        exported = importlib.import_module(f"attncli.models.{file}").MODELS
        assert sorted(model.name for model in exported) == list(names)


# --- gradients --------------------------------------------------------------------------------------------------------


def assert_gradients(graph: Graph, number: Callable[[Trace], float], until: str) -> None:
    """Every G_id is the slope of `number` when the input or step `id` is moved and everything after it follows."""
    trace = graph.evaluate()
    ids = [id for id in trace if gradient_id(id) in trace and id != graph.output]
    assert ids
    for id in ids:

        def moved(values: np.ndarray, id: str = id) -> float:
            return number(graph.evaluate(given={id: values}, until=until))

        assert_slope(moved, trace[id], trace[gradient_id(id)], id, rtol=1e-5)


@pytest.mark.parametrize(("model", "case"), WITH_GRADIENTS, ids=WITH_GRADIENTS_IDS)
def test_gradients_of_inputs_and_steps_are_the_slopes(model: str, case: Case) -> None:
    problem = case.with_upstream(model)
    graph = problem.graph()
    assert problem.upstream is not None
    v = problem.upstream.values
    assert_gradients(graph, lambda trace: float(np.sum(v * trace[graph.output])), graph.output)
    moved = {input.id for input in graph.inputs.values() if input.differentiable}
    assert all(gradient_id(id) in graph for id in moved)


LOSSES = ["sum({O})", "{O}[1,1] + 2*{O}[1,2] - 0.5*{O}[2,1]", "mse({O}, goal)"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "model", ["attention", "self_attention", "embedded_attention", "softmax", "product", "embedding"]
)
def test_gradients_of_a_loss(model: str, loss: str) -> None:
    case = CASES[model][0]
    output = case.problem(model).graph()
    goal = as_matrix(some(*output.shape(output.output)) + 0.3)
    graph = case.problem(model, loss=loss.format(O=output.output), extras={"goal": goal}).graph()
    assert graph.loss == "L"
    assert_gradients(graph, lambda trace: float(trace["L"][0, 0]), "L")


def test_gradients_of_a_loss_over_heads() -> None:
    for loss in ("sum(O)", "O[1,2,1] - 3*O[2,1,2]", "mse(O, goal)"):
        case = Case(qkv(2, 3, 2, 2, heads=2), {"causal": True})
        graph = case.problem("attention", loss=loss, extras={"goal": as_matrix(some(2, 2, 2))}).graph()
        assert_gradients(graph, lambda trace: float(trace["L"][0, 0]), "L")


@pytest.mark.parametrize(("model", "case"), EACH, ids=IDS)
def test_axes_say_the_shape_of_every_step(model: str, case: Case) -> None:
    graph = (case.problem(model) if model in CONSTANT else case.with_upstream(model)).graph()
    trace = graph.evaluate()
    for step in graph.steps.values():
        assert trace[step.id].shape == graph.shape(step.id), step.id
        assert str(step.why) and step.symbol


# --- step ids: FORMATS.md ---------------------------------------------------------------------------------------------

SOFTMAX = ["row_max", "shifted", "exp", "row_sum", "A"]
SOFTMAX_BACK = ["weighted", "row_dot", "deviation"]
FORWARD = ["scores", "scaled", "masked", *SOFTMAX, "O"]
BACKWARD = ["G_V", "G_A", *SOFTMAX_BACK, "G_masked", "G_scaled", "G_scores", "G_Q", "G_K"]
WEIGHTS_BACK = ["G_W_Q", "G_W_K", "G_W_V", "G_X_Q", "G_X_K", "G_X_V", "G_X"]
MASK_STEPS = ["masked", "G_masked"]
SCALE_STEPS = ["scaled", "G_scaled"]


def ids_of(model: str, case: Case) -> list[str]:
    return list(case.with_upstream(model).graph().steps)


def without(ids: list[str], *left_out: str) -> list[str]:
    return [id for id in ids if id not in left_out]


@pytest.mark.parametrize(
    ("settings", "d_k", "left_out"),
    [
        ({"causal": True}, 2, []),
        ({"mask": [[0, 0.5, 0]]}, 2, []),
        ({"keep": [[True, True, False]]}, 2, []),
        ({"hide": [[True, False, False]]}, 2, []),
        ({"window": [1, -1]}, 2, []),
        ({"causal": True, "scale": 0.5}, 2, []),
        ({}, 2, MASK_STEPS),
        ({"causal": False}, 2, MASK_STEPS),
        ({"window": [-1, -1]}, 2, MASK_STEPS),
        ({"causal": True, "scale": "none"}, 2, SCALE_STEPS),
        ({"causal": True, "scale": 1}, 2, SCALE_STEPS),
        ({"causal": True}, 1, SCALE_STEPS),
        ({}, 1, [*MASK_STEPS, *SCALE_STEPS]),
        ({"scale": "none"}, 3, [*MASK_STEPS, *SCALE_STEPS]),
    ],
    ids=str,
)
def test_a_step_that_would_do_nothing_is_left_out(settings: dict[str, object], d_k: int, left_out: list[str]) -> None:
    expected = without([*FORWARD, *BACKWARD], *left_out)
    assert ids_of("attention", Case(qkv(3, 3, d_k, 2), settings)) == expected
    own = without(["Q", "K", "V", *FORWARD, *BACKWARD, *WEIGHTS_BACK], *left_out)
    assert ids_of("self_attention", Case(tokens(3, 2, d_k, 2), settings)) == own
    embedded = without(["X", "Q", "K", "V", *FORWARD, *BACKWARD, *WEIGHTS_BACK, "G_E"], *left_out)
    assert ids_of("embedded_attention", Case(table(4, 2, [0, 3, 0]) | weights(2, d_k, 2), settings)) == embedded


def test_a_soft_cap_stands_between_scale_and_mask() -> None:
    ids = ids_of("attention", Case(qkv(3, 3, 2, 2), {"softcap": 2.0, "causal": True}))
    assert ids[:4] == ["scores", "scaled", "capped", "masked"]
    assert ids[ids.index("G_masked") :] == ["G_masked", "G_capped", "slope", "G_scaled", "G_scores", "G_Q", "G_K"]


@pytest.mark.parametrize(
    ("model", "case", "expected"),
    [
        ("softmax", CASES["softmax"][0], [*SOFTMAX, *SOFTMAX_BACK, "G_scores"]),
        ("softmax", CASES["softmax"][4], ["exp", "row_sum", "A", *SOFTMAX_BACK, "G_scores"]),
        ("softmax", CASES["softmax"][5], ["shifted", "exp", "row_sum", "A", *SOFTMAX_BACK, "G_scores"]),
        ("product", CASES["product"][0], ["O", "G_V", "G_A"]),
        ("embedding", CASES["embedding"][0], ["X", "G_E"]),
        ("embedding", CASES["embedding"][1], ["X", "G_E", "E_new"]),
        ("embedding", CASES["embedding"][2], ["T", "X", "G_E"]),
    ],
)
def test_the_steps_of_the_small_models(model: str, case: Case, expected: list[str]) -> None:
    found = ids_of(model, case)
    assert sorted(found) == sorted(expected)
    assert found == expected or model == "product"


def test_a_learning_rate_adds_the_updated_table() -> None:
    case = Case(table(4, 2, [0, 3, 0]) | weights(2, 2, 2), {"eta": 0.1, "causal": True})
    graph = case.with_upstream("embedded_attention").graph()
    assert list(graph.steps)[-2:] == ["G_E", "E_new"]
    assert graph.steps["E_new"].phase == "update"
    trace = graph.evaluate()
    np.testing.assert_allclose(trace["E_new"], trace["E"] - 0.1 * trace["G_E"], rtol=1e-15)
    assert "E_new" not in case.problem("embedded_attention").graph()


def test_phases_say_what_is_forward_and_what_is_backward() -> None:
    steps = Case(tokens(3, 2, 2, 2), {"causal": True}).with_upstream("self_attention").graph().steps.values()
    assert [s.id for s in steps if s.phase == "forward"] == ["Q", "K", "V", *FORWARD]
    assert [s.id for s in steps if s.phase == "backward"] == [*BACKWARD, *WEIGHTS_BACK]


def test_where_the_paths_of_x_meet_they_are_added() -> None:
    graph = Case(tokens(3, 4, 2, 3)).with_upstream("self_attention").graph()
    trace = graph.evaluate()
    assert graph.steps["G_X"].inputs == ("G_X_Q", "G_X_K", "G_X_V")
    for name in "QKV":
        expected = trace[f"G_{name}"] @ trace[f"W_{name}"].T
        np.testing.assert_allclose(trace[f"G_X_{name}"], expected, rtol=1e-14)
    np.testing.assert_allclose(trace["G_X"], trace["G_X_Q"] + trace["G_X_K"] + trace["G_X_V"], rtol=1e-14)


# --- rows that see nothing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [0, 2])
def test_a_row_that_sees_nothing_has_no_weights_no_output_and_no_gradient(heads: int) -> None:
    graph = Case(qkv(3, 3, 2, 2, heads=heads), {"keep": KEEP_BUT_ROW_2}).with_upstream("attention").graph()
    trace = graph.evaluate()
    for id in ("A", "O", "G_masked", "G_scaled", "G_scores", "G_Q"):
        assert np.all(trace[id][..., 1, :] == 0), id
    for id in ("A", "O", "G_Q", "G_K", "G_V"):
        assert np.isfinite(trace[id]).all(), id
    assert len(graph.notes) == 1
    note = str(graph.notes[0])
    assert note.startswith("Nothing at all is visible in row 2.")
    assert "0/0" in note and "PyTorch" in note


def test_rows_that_see_nothing_are_named_from_1() -> None:
    case = Case(qkv(3, 2, 2, 2), {"keep": [[False, False], [True, False], [False, False]]})
    assert str(case.problem("attention").graph().notes[0]).startswith("Nothing at all is visible in row 1, 3.")


def test_a_row_hidden_by_two_masks_together_sees_nothing() -> None:
    settings = {"causal": True, "hide": [[True, False, False]]}
    graph = Case(qkv(3, 3, 2, 2), settings).problem("attention").graph()
    trace = graph.evaluate()
    assert np.array_equal(trace["A"][0], [0, 0, 0])
    assert str(graph.notes[0]).startswith("Nothing at all is visible in row 1.")


def test_a_hidden_row_of_scores() -> None:
    graph = CASES["softmax"][3].with_upstream("softmax").graph()
    trace = graph.evaluate()
    assert np.array_equal(trace["A"][1], [0, 0])
    assert np.array_equal(trace["G_scores"][1], [0, 0])
    assert str(graph.notes[0]).startswith("Nothing at all is visible in row 2.")


def test_no_note_where_every_row_sees_something() -> None:
    assert Case(qkv(3, 3, 2, 2), {"causal": True}).problem("attention").graph().notes == []


# --- heads and caches -------------------------------------------------------------------------------------------------


def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, **settings: object) -> Trace:
    return Case({"Q": q, "K": k, "V": v}, settings).problem("attention").graph().evaluate()


@pytest.mark.parametrize(("heads", "kv"), [(4, 2), (3, 1), (6, 3), (2, 2)])
def test_a_head_of_keys_and_values_is_shared_by_consecutive_query_heads(heads: int, kv: int) -> None:
    inputs = qkv(3, 3, 2, 2, heads=heads, kv=kv)
    trace = Case(inputs, {"causal": True}).problem("attention").graph().evaluate()
    for h in range(heads):
        own = h // (heads // kv)
        alone = plain(inputs["Q"][h], inputs["K"][own], inputs["V"][own], causal=True)
        np.testing.assert_allclose(trace["O"][h], alone["O"], rtol=1e-14)
        np.testing.assert_allclose(trace["A"][h], alone["A"], rtol=1e-14)
    assert ("K_shared" in trace) == (heads != kv)


def test_a_shared_head_receives_the_sum_of_its_query_heads_gradients() -> None:
    trace = Case(qkv(3, 3, 2, 2, heads=4, kv=2)).with_upstream("attention").graph().evaluate()
    for name in "KV":
        each = trace[f"G_{name}_shared"]
        np.testing.assert_allclose(trace[f"G_{name}"], [each[0] + each[1], each[2] + each[3]], rtol=1e-14)


def test_a_cache_goes_before_the_new_keys_and_values() -> None:
    inputs = cached(2, 3, 2, 2)
    trace = Case(inputs).problem("attention").graph().evaluate()
    k, v = (np.concatenate([inputs[f"{name}_past"], inputs[name]]) for name in "KV")
    assert np.array_equal(trace["K_all"], k) and np.array_equal(trace["V_all"], v)
    np.testing.assert_allclose(trace["O"], plain(inputs["Q"], k, v)["O"], rtol=1e-14)


@pytest.mark.parametrize("settings", [{}, {"window": [1, 0]}, {"window": [2, -1]}], ids=str)
def test_with_a_cache_the_causal_mask_counts_from_the_end_of_it(settings: dict[str, object]) -> None:
    """Token by token with a cache is the same as all at once."""
    whole = qkv(5, 5, 2, 3)
    at_once = plain(*whole.values(), causal=True, **settings)
    for past in range(1, 5):
        q, k, v = (values[past:] for values in whole.values())
        inputs = {"Q": q, "K": k, "V": v, "K_past": whole["K"][:past], "V_past": whole["V"][:past]}
        trace = Case(inputs, {"causal": True, **settings}).problem("attention").graph().evaluate()
        np.testing.assert_allclose(trace["O"], at_once["O"][past:], rtol=1e-13)


@pytest.mark.parametrize(("n", "m"), [(2, 4), (4, 2), (3, 3)])
def test_without_a_cache_the_causal_triangle_sits_at_the_top_left(n: int, m: int) -> None:
    trace = plain(*qkv(n, m, 2, 2).values(), causal=True)
    assert np.array_equal(trace["A"] > 0, np.tri(n, m) > 0)


def test_max_over_all_changes_only_what_is_subtracted() -> None:
    inputs = qkv(3, 3, 2, 2)
    usual, over_all = plain(*inputs.values(), causal=True), plain(*inputs.values(), causal=True, max_over="all")
    np.testing.assert_allclose(over_all["row_max"], usual["scaled"].max(-1, keepdims=True))
    np.testing.assert_allclose(over_all["A"], usual["A"], rtol=1e-13)


def test_the_maximum_over_hidden_scores_can_lose_a_row() -> None:
    """Curriculum A10: a hidden score that exceeds the visible ones by 800 makes them all underflow to 0."""
    inputs = {"Q": [[1.0], [1.0]], "K": [[0.0], [800.0]], "V": [[1.0], [2.0]]}
    lost = Case(inputs, {"causal": True, "max_over": "all"}).problem("attention").graph().evaluate()
    assert lost["row_sum"][0, 0] == 0 and np.isnan(lost["A"][0]).any()
    kept = Case(inputs, {"causal": True}).problem("attention").graph().evaluate()
    assert np.array_equal(kept["A"][0], [1, 0])


def test_the_text_becomes_ids_and_labels() -> None:
    graph = CASES["embedding"][2].problem("embedding").graph()
    assert graph.evaluate()["T"].tolist() == [0, 1, 3]
    assert graph.labels["token"] == ("我", "爱", "她")
    assert graph.labels["vocabulary"] == ("我", "爱", "你", "<unk>")


# --- what it says when things do not fit: sentence by sentence --------------------------------------------------------


def message(model: str, inputs: dict[str, object], settings: dict[str, object] | None = None, **more: object) -> str:
    with pytest.raises(InputError) as error:
        Case(inputs, settings or {}).problem(model, **more).graph().evaluate()  # type: ignore[arg-type]
    return str(error.value)


def sentences(text: str) -> list[str]:
    return text.replace(". ", ".\n").replace(": it has", ":\nit has").split("\n")


def test_widths_of_queries_and_keys_differ() -> None:
    text = message("attention", {"Q": some(2, 3), "K": some(4, 2), "V": some(4, 2)})
    assert sentences(text) == [
        "K is 4×2:",
        "it has 2 columns, but the axis “d_k” has length 3, set by Q (2×3).",
        "Give K 3 columns, or change Q.",
    ]


def test_keys_and_values_differ_in_number() -> None:
    text = message("attention", {"Q": some(2, 2), "K": some(4, 2), "V": some(1, 2)})
    assert sentences(text) == [
        "V is 1×2:",
        "it has 1 row, but the axis “key” has length 4, set by K (4×2).",
        "Give V 4 rows, or change K.",
    ]


def test_heads_of_keys_and_values_differ() -> None:
    text = message("attention", {"Q": some(4, 2, 2), "K": some(2, 3, 2), "V": some(1, 3, 2)})
    assert sentences(text) == [
        "V is 1×3×2:",
        "it has 1 head, but the axis “kv_head” has length 2, set by K (2×3×2).",
        "Give V 2 heads, or change K.",
    ]


def test_heads_that_cannot_be_shared_evenly() -> None:
    text = message("attention", {"Q": some(4, 2, 2), "K": some(3, 2, 2), "V": some(3, 2, 2)})
    assert sentences(text) == [
        "K has 3 heads and Q has 4: 4 query heads cannot share 3 heads evenly.",
        "Give K a number of heads that divides 4.",
    ]


def test_an_axis_too_few() -> None:
    text = message("attention", {"Q": some(3, 2, 2), "K": some(2, 2), "V": some(2, 2)})
    assert sentences(text) == [
        "K has shape 2×2, but it needs 3 axes: kv_head × key × d_k.",
        "Write one block per head, separated by “|”, like “1 2; 3 4 | 5 6; 7 8”.",
    ]
    assert message("self_attention", {"X": some(2)} | weights(2, 2, 2)) == (
        "X has shape 2, but it needs 2 axes: token × d_model. Write rows separated by “;”, like “1 2; 3 4”."
    )


def test_a_weight_matrix_of_another_height() -> None:
    text = message("self_attention", {"X": some(3, 4), "W_Q": some(3, 2), "W_K": some(4, 2), "W_V": some(4, 2)})
    assert sentences(text) == [
        "W_Q is 3×2:",
        "it has 3 rows, but the axis “d_model” has length 4, set by X (3×4).",
        "Give W_Q 4 rows, or change X.",
    ]


def test_query_and_key_weights_of_different_widths() -> None:
    text = message("self_attention", {"X": some(3, 4), "W_Q": some(4, 2), "W_K": some(4, 3), "W_V": some(4, 2)})
    assert sentences(text) == [
        "W_K is 4×3:",
        "it has 3 columns, but the axis “d_k” has length 2, set by W_Q (4×2).",
        "Give W_K 2 columns, or change W_Q.",
    ]


def test_a_cache_of_another_width() -> None:
    text = message("attention", cached(2, 3, 2, 2) | {"K_past": some(3, 4)})
    assert sentences(text) == [
        "K_past is 3×4:",
        "it has 4 columns, but the axis “d_k” has length 2, set by Q (2×2).",
        "Give K_past 2 columns, or change Q.",
    ]
    text = message("attention", cached(2, 3, 2, 2) | {"V_past": some(2, 2)})
    assert "it has 2 rows, but the axis “past_key” has length 3, set by K_past (3×2)." in text


def test_half_a_cache() -> None:
    inputs = cached(2, 3, 2, 2)
    del inputs["V_past"]
    assert message("attention", inputs) == "A cache needs both K_past and V_past; V_past is missing."


def test_a_mask_of_another_shape() -> None:
    text = message("attention", qkv(3, 4, 2, 2), {"keep": [[True, False], [True, True]]})
    assert sentences(text) == [
        "keep is 2×2, but the scores are 3×4.",
        "Give keep one row per query and one column per key (3×4), or a single row of 4 that holds for every query.",
    ]


def test_a_mask_of_0_and_1_is_refused_with_both_readings() -> None:
    text = message("attention", qkv(2, 2, 2, 2), {"mask": [[0, 1], [0, 0]]})
    assert text.startswith("mask: this mask holds only 0 and 1, which frameworks read in opposite ways.")
    assert "give it as keep" in text and "give it as hide" in text


def test_an_upstream_gradient_of_another_shape() -> None:
    text = message("attention", qkv(3, 4, 2, 2), upstream=as_matrix(some(3, 3)))
    assert sentences(text) == [
        "G_O is 3×3:",
        "it has 3 columns, but the axis “d_v” has length 2, set by V (4×2).",
        "Give G_O 2 columns, or change V.",
    ]


def test_ids_out_of_range() -> None:
    assert message("embedding", table(4, 2, [0, 4])) == (
        "T, entry 2: id 4 is out of range. E has 4 rows, so ids go from 0 to 3."
    )
    assert message("embedding", table(4, 2, [0, -1])).startswith("T, entry 2: id -1 is out of range.")
    assert message("embedding", {"E": some(4, 2), "T": [0.5]}) == (
        "T, entry 1: 0.5 is not an id. Ids are whole numbers from 0 to 3."
    )


def test_inputs_that_are_missing_or_unknown() -> None:
    text = message("attention", {"Q": some(2, 2), "V": some(2, 2)})
    assert text.startswith("Model attention needs K. Give it like this: -K")
    text = message("attention", qkv(2, 2, 2, 2) | {"W_Q": some(2, 2)})
    assert text.startswith("Model attention: the input “W_Q” does not exist.")
    text = message("attention", qkv(2, 2, 2, 2), {"casual": True})
    assert text.startswith("Model attention: the setting “casual” does not exist. Did you mean “causal”?")
    with pytest.raises(InputError, match=r"The model “atention” does not exist. Did you mean “attention”?"):
        models.get("atention")


def test_text_and_ids() -> None:
    with pytest.raises(InputError, match=r"Both T and text are given. Keep one"):
        Case(table(4, 2, [0]), {"vocabulary": ["a"]}, {"text": "a"}).problem("embedding").graph()
    with pytest.raises(InputError, match=r"A text needs a vocabulary to become ids."):
        Case({"E": some(4, 2)}, {}, {"text": "a"}).problem("embedding").graph()
    with pytest.raises(InputError, match=r"The tokens are missing."):
        Case({"E": some(4, 2)}).problem("embedding").graph()
    with pytest.raises(InputError, match=r"Both vocabulary and corpus are given."):
        Case({}, {"vocabulary": ["a"], "corpus": "a"}, {"text": "a"}).problem("tokens").graph()


def test_a_model_without_gradients_says_so() -> None:
    with pytest.raises(InputError, match="Model tokens has no gradients"):
        CASES["tokens"][0].problem("tokens", loss="sum(T)").graph()


def test_a_shape_error_is_an_input_error() -> None:
    with pytest.raises(ShapeError):
        Problem("attention", {n: as_matrix(v) for n, v in (qkv(2, 2, 2, 2) | {"K": some(2, 3)}).items()}).graph()


@pytest.mark.parametrize(
    ("model", "inputs", "name"),
    [
        ("attention", {"Q": np.zeros((2, 2)), "K": np.zeros((0, 2)), "V": np.zeros((0, 2))}, "K is 0×2"),
        ("attention", {"Q": np.zeros((2, 0)), "K": np.zeros((2, 0)), "V": np.zeros((2, 2))}, "Q is 2×0"),
        ("softmax", {"scores": np.zeros((2, 0))}, "scores is 2×0"),
        ("embedding", {"E": np.zeros((2, 2)), "T": np.zeros(0)}, "T is 0"),
    ],
)
def test_an_array_without_numbers(model: str, inputs: dict[str, object], name: str) -> None:
    assert message(model, inputs) == f"{name}, so it is empty. Give it at least one number."


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("id", ["Q", "K", "V"])
def test_a_number_that_is_not_finite_is_named_with_its_place(id: str, value: float) -> None:
    inputs = qkv(2, 2, 2, 2)
    inputs[id][0, 1] = value
    expected = f"{id}[1,2] is not a finite number. Only scores and masks may hold -inf."
    assert message("attention", inputs) == expected


def test_scores_may_be_hidden_but_not_infinite() -> None:
    expected = "scores[2,1] is not a finite number. Only scores and masks may hold -inf."
    assert message("softmax", {"scores": [[1.0, -np.inf], [np.inf, 0.0]]}) == expected
    assert message("softmax", {"scores": [[1.0, -np.inf], [np.nan, 0.0]]}) == expected


def test_an_upstream_gradient_that_is_not_finite() -> None:
    text = message("attention", qkv(1, 2, 2, 2), upstream=as_matrix([[1.0, np.nan]]))
    assert text == "G_O[1,2] is not a finite number. Only scores and masks may hold -inf."
