"""Sheets of blocks and of a GPT: the mistakes that simulated learners found to have no name, or one at another step."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import CASES
from simulation import as_text
from test_marked_stacks import with_gradient

from attncli import mark
from attncli.core.matrix import as_matrix
from attncli.core.message import ENGLISH, Message
from attncli.marking.explain import Named
from attncli.marking.feedback import TWO_THINGS, Marked, StepMark
from attncli.mistakes import mistakes_at
from attncli.problems.problem import Problem
from attncli.render.document import Paragraph, StepVerdicts
from attncli.render.sheet import language_of, page

PLACES = 5


def exercise(model: str, number: int, **settings: Any) -> Problem:
    problem = with_gradient(model, CASES[model][number], PLACES, 1)
    return problem.changed(settings={**problem.settings, **settings})


def right(problem: Problem) -> dict[str, Any]:
    """Every number of the right calculation, and what was given."""
    graph = problem.graph()
    trace = graph.evaluate()
    return {id: np.asarray(trace[id]) for id in (*graph.inputs, *graph.steps)}


def marked(problem: Problem, **lines: Any) -> dict[str, Any]:
    answers = {id.replace("__", "."): as_text(np.atleast_2d(values), PLACES) for id, values in lines.items()}
    return {step.id: step for step in mark(problem, answers).steps}


def named(problem: Problem, **lines: Any) -> set[tuple[str, str]]:
    """The mistakes that the first of these lines is put down to."""
    steps = marked(problem, **lines)
    step = steps[next(iter(lines)).replace("__", ".")]
    assert step.verdict == "wrong"
    return {(one.step, one.id) for one in step.mistakes}


# --- across two sequences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_the_other_sequence_where_queries_or_keys_or_values_come_from(name: str) -> None:
    problem = exercise("decoder_block", 0)
    known = right(problem)
    source = known["memory"] if name == "Q" else known["norm1.Y"]
    wrong = source @ known[f"cross.W_{name}"]
    assert named(problem, **{f"cross__{name}": wrong}) == {(f"cross.{name}", "other-sequence")}


def test_keys_and_values_of_the_asking_sequence_are_followed_through_their_own_shapes() -> None:
    problem = exercise("decoder_block", 0)
    known = right(problem)
    k, v = (known["norm1.Y"] @ known[f"cross.W_{name}"] for name in "KV")
    assert len(k) != len(known["memory"])
    scores = known["cross.Q"] @ k.T
    e = np.exp(scores / np.sqrt(k.shape[1]))
    found = marked(problem, cross__K=k, cross__scores=scores, cross__O=e / e.sum(-1, keepdims=True) @ v)
    assert [found[id].verdict for id in ("cross.K", "cross.scores", "cross.O")] == [
        "wrong",
        "follow_through",
        "follow_through",
    ]


def test_there_is_no_other_sequence_in_self_attention_or_where_its_rows_do_not_fit() -> None:
    for model, number, part in (("encoder_block", 0, "self"), ("decoder_block", 1, "cross")):
        problem = exercise(model, number)
        step = problem.graph().steps[f"{part}.K"]
        assert "other-sequence" not in {one.id for one in mistakes_at(problem.graph(), step.id)}


# --- norms in another place, shown where the sublayer begins --------------------------------------------------------------


def normed(x: Any, eps: float = 1e-5) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_a_norm_before_the_sublayer_instead_of_behind_it(name: str) -> None:
    problem = exercise("encoder_block", 0)
    known = right(problem)
    wrong = normed(known["X"]) @ known[f"self.W_{name}"]
    assert named(problem, **{f"self__{name}": wrong}) == {(f"self.{name}", "norm-placement")}


@pytest.mark.parametrize("is_normed", [False, True])
def test_the_rest_is_followed_whichever_way_the_norm_was_put(is_normed: bool) -> None:
    """x + f(LN(x)) and LN(x) + f(LN(x)) begin with the same queries."""
    problem = exercise("encoder_block", 0)
    known = right(problem)
    x = normed(known["X"])
    q, k, v = (x @ known[f"self.W_{name}"] for name in "QKV")
    e = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    residual = (x if is_normed else known["X"]) + e / e.sum(-1, keepdims=True) @ v @ known["self.W_O"]
    hidden = residual @ known["ffn.W_1"]
    found = marked(problem, self__Q=q, self__K=k, self__residual=residual, ffn__hidden=hidden)
    assert {one.id for one in found["self.Q"].mistakes} == {"norm-placement"}
    assert {found[id].verdict for id in ("self.K", "self.residual", "ffn.hidden")} == {"follow_through"}


def test_a_norm_behind_the_sublayer_instead_of_before_it() -> None:
    problem = exercise("encoder_block", 1)
    known = right(problem)
    wrong = known["self.residual"] @ known["ffn.W_1"] + known["ffn.b_1"]
    assert named(problem, ffn__hidden=wrong) == {("ffn.hidden", "norm-placement")}


# --- positions ------------------------------------------------------------------------------------------------------------


def test_positions_left_out() -> None:
    problem = exercise("gpt", 1)
    known = right(problem)
    assert named(problem, positioned=known["X"]) == {("positioned", "no-positions")}
    assert ("positioned", "no-positions") in named(problem, Q=known["X"] @ known["W_Q"])


def test_positions_on_queries_only_are_followed_for_keys_and_values_alike() -> None:
    problem = exercise("gpt", 1)
    known = right(problem)
    k, v = (known["X"] @ known[f"W_{name}"] for name in "KV")
    found = marked(problem, positioned=known["positioned"], K=k, V=v)
    assert [(one.step, one.id) for one in found["K"].mistakes] == [("K", "positions-on-queries-only")]
    assert found["V"].verdict == "follow_through"
    alone = marked(problem, positioned=known["positioned"], K=k, V=known["V"])
    assert alone["V"].verdict == "correct"


# --- loss and update ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [2.0, 10.0])
def test_a_logarithm_to_another_base(base: float) -> None:
    problem = exercise("gpt", 0)
    known = right(problem)
    surprise = -np.log(known["loss.picked"]) / np.log(base)
    assert named(problem, loss__surprise=surprise) == {("loss.surprise", "log-base")}
    assert ("loss.surprise", "log-base") in named(problem, L=np.full((1, 1), surprise.mean()))


def test_adams_means_left_uncorrected() -> None:
    problem = exercise("gpt", 4, beta1=0.7, beta2=0.6, adam_eps=0.01)
    known = right(problem)
    m, v = known["E_m"], known["E_v"]
    assert named(problem, E_m_hat=m) == {("E_m_hat", "no-bias-correction")}
    assert named(problem, E_v_hat=v) == {("E_v_hat", "no-bias-correction")}
    both = marked(problem, E_m_hat=m, E_v_hat=v)
    assert both["E_v_hat"].verdict == "follow_through"
    new = known["E"] - 0.05 * m / (np.sqrt(v) + 0.01)
    assert ("E_new", "no-bias-correction") in named(problem, E_new=new)


def _is_lost(known: dict[str, Any], name: str) -> bool:
    return bool(((known[f"{name}_v_hat"] == 0) & (known[f"{name}_m_hat"] != 0)).any())


def test_what_adam_divides_by_may_have_been_rounded_to_nothing() -> None:
    """Of a small gradient the mean square is 0.000 on the page, and √0.000 + ε is ε."""
    problem = exercise("gpt", 4, adam_eps=0.001).changed(decimals=3)
    known = {id: np.round(value, 3) for id, value in right(problem).items()}
    small = [name for name in ("E", "W_out", "layer1.ffn.W_1") if _is_lost(known, name)]
    name = small[0]
    m, v = known[f"{name}_m_hat"], known[f"{name}_v_hat"]
    new = known[name] - 0.05 * m / (np.sqrt(v) + 0.001)
    answers = {f"{name}_m_hat": m, f"{name}_v_hat": v, f"{name}_new": new}
    sheet = mark(problem, {id: as_text(value, 3) for id, value in answers.items()})
    assert sheet.first_wrong is None


# --- the way back ---------------------------------------------------------------------------------------------------------


def test_all_paths_but_one_left_out() -> None:
    problem = exercise("encoder_block", 0)
    known = right(problem)
    assert len(problem.graph().steps["G_X"].inputs) == 4
    lines = {id: known[id] for id in ("G_X_residual", "G_X_Q", "G_X_K", "G_X_V")}
    assert ("G_X", "path-missing") in named(problem, G_X=known["G_X_residual"], **lines)


def test_a_table_used_again_is_not_transposed_on_the_way_back() -> None:
    """Where no transpose belongs, one too many may stand at either factor."""
    problem = exercise("gpt", 2)
    graph = problem.graph()
    step = graph.steps["G_output"]
    found = [one.swap[step.id].params for one in mistakes_at(graph, step.id) if one.id == "gradient-not-transposed"]
    assert [list(params) for params in found] == [["transpose_a"], ["transpose_b"]]


def test_heads_cut_wrongly_by_habit_are_told_once_where_they_show_first() -> None:
    problem = exercise("encoder_block", 1)
    known = right(problem)

    def cut(name: str) -> Any:
        return known[f"self.{name}"].reshape(2, 3, -1)

    scores = cut("Q") @ np.swapaxes(cut("K"), -1, -2)
    found = marked(problem, self__V_heads=cut("V"), self__scores=scores)
    assert ("self.V_heads", "split-without-transpose") in {(one.step, one.id) for one in found["self.V_heads"].mistakes}
    assert found["self.scores"].verdict == "follow_through"


# --- words that fit the step ---------------------------------------------------------------------------------------------


def words(problem: Problem, **lines: Any) -> tuple[str, str]:
    """What the wrong line is told, and what --hint says."""
    answers = {id.replace("__", "."): as_text(np.atleast_2d(values), PLACES) for id, values in lines.items()}
    found = mark(problem, answers)
    (step,) = (step for step in found.steps if step.verdict == "wrong")
    (hint,) = (verdict for verdict in verdicts(found, reveal="hint") if verdict.sign == "✗")
    language = language_of(found, ENGLISH)
    return " ".join(message.text(language) for message in step.said), " ".join(str(part.text) for part in hint.body)


def verdicts(found: Marked, **how: Any) -> tuple[Any, ...]:
    """The verdicts on a sheet as a student is shown them."""
    return next(block for block in page(found, ENGLISH, **how) if isinstance(block, StepVerdicts)).verdicts


def test_logits_of_a_tied_model_speak_of_the_table_and_not_of_values() -> None:
    square = {
        "E": [[0.5, -1.0], [1.5, 0.25]],
        "W_Q": [[1.0], [0.5]],
        "W_K": [[1.0], [-0.5]],
        "W_V": [[1, 0.5], [-1, 2]],
    }
    inputs = {
        **{id: as_matrix(np.array(rows)) for id, rows in square.items()},
        "T": as_matrix(np.array([1.0, 0.0, 1.0])),
    }
    problem = Problem("gpt", inputs, settings={"tied": True}, decimals=PLACES)
    known = right(problem)
    wrong = known["O"] @ known["E"]
    assert named(problem, logits=wrong) == {("logits", "table-not-transposed")}
    told, hint = words(problem, logits=wrong)
    assert "Eᵀ" in told and "logits use E" in hint and " V" not in told + hint


@pytest.mark.parametrize("scale", ["0.5", "sqrt"])
def test_a_scale_left_out_is_told_by_its_formula(scale: str) -> None:
    problem = exercise("decoder_block", 0, scale=scale)
    known = right(problem)
    told, hint = words(problem, self__scaled=known["self.scores"])
    assert ("√d_k" in told) == ("√d_k" in hint) == (scale == "sqrt")
    assert ("factor" in told) == ("multiplies" in hint) == (scale == "0.5")
    back, _ = words(problem, self__G_scores=known["self.G_scaled"])
    assert ("√d_k" in back) == (scale == "sqrt")


@pytest.mark.parametrize("line", ["rms", "normalised"])
def test_the_norm_without_a_mean_is_not_told_of_one(line: str) -> None:
    problem = exercise("rms_norm", 0, eps="0.05")
    known = right(problem)
    square = known["mean_square"]
    for divisor in (square + 0.05, np.sqrt(square) + 0.05):  # without the root; ε after it
        told, hint = words(problem, **{line: divisor if line == "rms" else known["X"] / divisor})
        assert "variance" not in told + hint and "minus the mean" not in hint
        assert "mean square" in told and "mean square" in hint


def test_what_is_said_more_exactly_is_not_said_vaguely_as_well() -> None:
    problem = exercise("encoder_block", 0)
    known = right(problem)
    bare = known["norm1.G_Y_hidden"]
    assert {id for _, id in named(problem, norm1__G_Y=bare)} == {"path-missing", "residual-path-missing"}
    told, hint = words(problem, norm1__G_Y=bare)
    assert told == "You left out the gradient that goes past the sublayer." and "both ways in full" in hint


def test_a_forgotten_input_comes_before_a_norm_in_another_place() -> None:
    problem = exercise("encoder_block", 0)
    bare = right(problem)["self.output"]
    marks = marked(problem, self__residual=bare)["self.residual"]
    assert [one.id for one in marks.mistakes] == ["residual-missing", "norm-placement"]


def test_a_deviation_without_its_root_is_told_that() -> None:
    problem = exercise("layer_norm", 0, eps="0.05")
    told, _ = words(problem, std=right(problem)["variance"] + 0.05)
    assert told == "You took the variance itself. σ is its square root."


def test_a_mistake_here_or_earlier_is_said_to_be_either() -> None:
    def last(*where: tuple[str, str], said: tuple[str, ...] = ()) -> str:
        named = tuple(Named(*one) for one in where)
        step = StepMark(
            "G_h", "wrong", Fraction(0), Fraction(0), named, said=tuple(Message(text).of("two") for text in said)
        )
        (verdict,) = verdicts(Marked(exercise("layer_norm", 0), None, (step,)))
        said = [str(part.text) for part in verdict.body if isinstance(part, Paragraph)]
        return next(text for text in said if "which you did not write down" in text)

    here, earlier = ("G_h", "gradient-scale-lost"), ("G_Z", "batch-factor-missing")
    assert last(earlier).startswith("This happened at G_Z")
    assert last(here, earlier).startswith("Here, or already at G_Z")
    assert last(here, earlier, said=(TWO_THINGS,)).startswith("One of them happened at G_Z")
