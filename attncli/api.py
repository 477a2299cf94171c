"""attncli from Python: problem, load, forward, backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.core.message import AttnError, InputError, LimitError, ShapeError
from attncli.problems.problem import Problem, Run, run

if TYPE_CHECKING:
    from attncli.marking.feedback import Marked


def problem(
    model: str = "attention",
    inputs: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    gradient: Mapping[str, Any] | None = None,
    **keys: Any,
) -> Problem:
    """A problem from matrices: text, nested lists, or NumPy arrays.

    Parameters
    ----------
    model : a name from `attncli models`
    inputs : matrices by name, like {"Q": "1 2", "K": [[1, 0], [0, 1]], "V": array}
    settings : the model's own, like {"causal": True}
    gradient : {"G_O": matrix} or {"loss": "sum(O)"}; turns the backward steps on
    **keys : any other key of a problem file (decimals, labels, title, …)

    Raises
    ------
    InputError
        Names the key, what was given, and what to write.
    """
    from attncli.problems.file import from_data

    return from_data(
        {
            "model": model,
            "inputs": dict(inputs or {}),
            "settings": dict(settings or {}),
            "gradient": dict(gradient or {}),
            **keys,
        },
        check=True,
    )


def load(path: Any) -> Problem:
    """The problem in a TOML or JSON file."""
    from attncli.problems.file import load as load_file

    return load_file(path)


def forward(problem: Problem, **options: Any) -> Run:
    """The forward steps. Options: arithmetic ("floating", "hand", "exact"), decimals, rounding, steps."""
    return run(problem, backward=False, **options)


def backward(problem: Problem, **options: Any) -> Run:
    """The forward steps and every gradient. Options as for `forward`, and check=True for finite differences."""
    return run(problem, backward=True, **options)


def mark(problem: Problem, answers: Mapping[str, Any], student: str | None = None) -> Marked:
    """A marked sheet, the object behind `attncli check`.

    Parameters
    ----------
    answers : what was written, by step id: text, nested lists, or NumPy arrays (judged at their own precision)

    Returns
    -------
    Marked
        `.score`, `.max_score`, `.first_wrong`, `.steps` with verdict, points, mistakes and cells.
    """
    from attncli.marking.mark import Marker
    from attncli.problems.answers import Sheet, answer

    return Marker(problem).mark(Sheet(student, {name: answer(value) for name, value in answers.items()}))


__all__ = [
    "AttnError",
    "InputError",
    "LimitError",
    "Problem",
    "Run",
    "ShapeError",
    "backward",
    "forward",
    "load",
    "mark",
    "problem",
]
