"""A loss as text: what may be written, the gradient it starts with, and what it says when it cannot be read."""

from __future__ import annotations

import numpy as np
import pytest

from attncli.core.graph import Trace
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, ShapeError
from attncli.problems.problem import Problem, arithmetic_called
from attncli.render.formula import as_text, put_in

O = np.array([[4.8, 6.8], [0.5, 2.0]])  # noqa: E741
FORMS = "Write sum(O), O[1,1] + 2*O[1,2], 1/2*sum((O - target)^2), mse(O, target), or cross_entropy(O, classes)."


def problem(text: str, target: object = None, name: str = "goal") -> Problem:
    matrices = {"A": as_matrix(np.eye(2)), "V": as_matrix(O)}
    extras = {} if target is None else {name: as_matrix(target)}
    return Problem("product", matrices, loss=text, extras=extras)


def trace_of(text: str, target: object = None) -> Trace:
    return problem(text, target).graph().evaluate()


def message(text: str, target: object = None, name: str = "goal") -> str:
    with pytest.raises(InputError) as error:
        problem(text, target, name).graph()
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "upstream"),
    [
        ("O[1,1]", [[1, 0], [0, 0]]),
        ("O[1,1] + 2*O[1,2]", [[1, 2], [0, 0]]),
        ("O[1,1]+2*O[1,2]", [[1, 2], [0, 0]]),
        ("2 * O[1,1] - O[2,2]", [[2, 0], [0, -1]]),
        ("-O[1,1]", [[-1, 0], [0, 0]]),
        ("- 0.5*O[2,1] + O[1,1]", [[1, 0], [-0.5, 0]]),
        ("O[1,1] + O[1,1]", [[2, 0], [0, 0]]),
        ("O[1,1]/2 - O[1,2]/4", [[0.5, -0.25], [0, 0]]),
        ("1/2*O[1,1]", [[0.5, 0], [0, 0]]),
        ("sqrt(4)*O[1,1]", [[2, 0], [0, 0]]),
        ("O[ 1 , 2 ]", [[0, 1], [0, 0]]),
        ("O[1,1] + 2·O[1,2]", [[1, 2], [0, 0]]),
        ("O[1，1] − O[2，2]", [[1, 0], [0, -1]]),
        ("sum(O)", [[1, 1], [1, 1]]),
        (" sum( O ) ", [[1, 1], [1, 1]]),
    ],
)
def test_a_linear_loss_and_the_gradient_read_off_it(text: str, upstream: list[list[float]]) -> None:
    trace = trace_of(text)
    assert trace["G_O"].tolist() == upstream
    np.testing.assert_allclose(trace["L"], [[np.sum(O * upstream)]], rtol=1e-15)
    assert trace.graph.loss == "L"


def test_factors_stay_as_they_were_written() -> None:
    """1/3 of an entry is a third in exact arithmetic, not a float64 near it."""
    sympy = pytest.importorskip("sympy")
    exact = (
        problem("1/3*O[1,1] - O[1,2]/7 + sqrt(2)*O[2,1] + 1/3*O[2,1]")
        .graph()
        .evaluate(arithmetic_called("exact"), until="G_O")
    )
    third = sympy.Rational(1, 3)
    assert exact["G_O"].tolist() == [[third, -sympy.Rational(1, 7)], [sympy.sqrt(2) + third, 0]]


def test_mean_squared_error() -> None:
    goal = np.array([[4.0, 7.0], [0.0, 2.0]])
    trace = trace_of("mse(O, goal)", goal)
    np.testing.assert_allclose(trace["error"], O - goal)
    np.testing.assert_allclose(trace["L"], [[np.mean((O - goal) ** 2)]])
    np.testing.assert_allclose(trace["G_O"], (O - goal) * 2 / 4)
    graph = trace.graph
    assert [graph.node(id).phase for id in ("goal", "error", "L", "G_O")] == [
        "target",
        "forward",
        "forward",
        "backward",
    ]
    assert str(graph.steps["G_O"].why) == (
        "The slope of a square is twice its base, and the mean shares it among 4 entries."
    )  # fmt: skip


def test_where_the_gradient_comes_from_is_said() -> None:
    graph = problem("O[1,1] + 2*O[1,2]").graph()
    assert str(graph.inputs["G_O"].why) == (
        "Read off the loss L = O[1,1] + 2*O[1,2]: the number in front of each entry of O."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", f"The loss is empty. {FORMS}"),
        ("  ", f"The loss is empty. {FORMS}"),
        ("O", f"The loss “O” cannot be read from “O” on. {FORMS}"),
        ("O[1,1] + 3", f"The loss “O[1,1] + 3” cannot be read from “+ 3” on. {FORMS}"),
        ("O[1,1] O[1,2]", f"The loss “O[1,1] O[1,2]” cannot be read from “O[1,2]” on. {FORMS}"),
        ("O[1,1] * O[1,2]", f"The loss “O[1,1] * O[1,2]” cannot be read from “* O[1,2]” on. {FORMS}"),
        ("V[1,1]", f"The loss names “V”, but the output here is O. {FORMS}"),
        ("sum(V)", f"The loss names “V”, but the output here is O. {FORMS}"),
        ("mse(V, O)", f"The loss names “V”, but the output here is O. {FORMS}"),
        ("sum(O, O)", f"sum takes one matrix. {FORMS}"),
        ("mse(O)", f"mse takes the output and a target. {FORMS}"),
        ("msa(O, T)", f"The loss “msa(…)” is not known here. Did you mean mse? {FORMS}"),
        ("hinge(O)", f"The loss “hinge(…)” is not known here. {FORMS}"),
        ("O[0,1]", "The loss names O[0,1], but O is 2×2: rows and columns are counted from 1."),
        ("O[1,3]", "The loss names O[1,3], but O is 2×2: rows and columns are counted from 1."),
        ("O[1]", "The loss names O[1], but O is 2×2: rows and columns are counted from 1."),
        ("O[1,1]/0", "The loss “O[1,1]/0” has a factor that is not finite. Write ordinary numbers."),
        ("inf*O[1,1]", "The loss “inf*O[1,1]” has a factor that is not finite. Write ordinary numbers."),
        (
            "mse(O, goal)",
            "The loss names the target “goal”, which is not given. Give it beside the loss, in [gradient] of the"
            ' problem file (goal = "…") or with --set goal="…".',
        ),
        ("O[1,1]" * 2000, "The loss has 12000 characters; the limit is 10000."),
    ],
    ids=lambda value: value[:24],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    assert message(text) == said


def test_a_target_of_another_shape() -> None:
    with pytest.raises(ShapeError) as error:
        problem("mse(O, goal)", [[1.0, 2.0]]).graph()
    assert str(error.value) == (
        "The target goal is 1×2, but the output O is 2×2. Give one target number for each entry."
    )  # fmt: skip


@pytest.mark.parametrize("name", ["V", "O"])
def test_a_target_needs_a_name_of_its_own(name: str) -> None:
    assert message(f"mse(O, {name})", O, name) == (
        f"The loss names “{name}” as its target, but that is part of this calculation already. Give the target a name"
        " of its own, like target: mse(O, target)."
    )


def test_nothing_is_evaluated_as_code() -> None:
    said = message("__import__('os').getcwd()*O[1,1]")
    assert "is not known here" in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sum(O)", "Σ O"),
        ("O[1,1] + 2*O[1,2]", "O[1,1] + 2 · O[1,2]"),
        ("−O[1,1]-0.5·O[2,2]", "-O[1,1] - 0.5 · O[2,2]"),
        ("1/3*O[1,1] - √2*O[1,2]/2", "1 / 3 · O[1,1] - √2 / 2 · O[1,2]"),
        # No short sum: the coefficients stand in G_O.
        ("exp(2)*O[1,1]", "Σ G_O ⊙ O"),
        ("+".join(9 * ["O[1,1]"]), "Σ G_O ⊙ O"),
    ],
)
def test_the_loss_is_shown_as_it_was_written(text: str, shown: str) -> None:
    graph = problem(text).graph()
    step = graph.steps["L"]
    formula = put_in(step.formula(False), list(map(graph.symbol, step.inputs)))
    assert as_text(formula) == shown
