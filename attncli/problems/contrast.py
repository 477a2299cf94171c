"""The second run of a worked example, shown beside the first: what changes when one thing changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attncli import models
from attncli.core.message import AttnError
from attncli.problems.problem import Problem
from attncli.problems.settings import matrix_of


def contrast(problem: Problem) -> Problem | None:
    """The problem with the settings and inputs of its contrast; None where it has none.

    Raises
    ------
    InputError
        An input of the contrast cannot be read.
    """
    if problem.contrast is None:
        return None
    model = models.get(problem.model)
    given: Mapping[str, Any] = problem.contrast.get("inputs", {})
    kinds = {name: argument.kind for name in given if (argument := model.argument(name)) is not None}
    texts = {name: str(value) for name, value in given.items() if kinds.get(name) == "text"}
    matrices = {name: _matrix(name, value) for name, value in given.items() if name not in texts}
    return problem.changed(
        inputs={**problem.inputs, **matrices},
        texts={**problem.texts, **texts},
        settings={**problem.settings, **problem.contrast.get("settings", {})},
        contrast=None,
    )


def _matrix(name: str, value: Any) -> Any:
    try:
        return matrix_of(value)
    except AttnError as error:
        raise error.at(f"contrast.inputs.{name}") from None
