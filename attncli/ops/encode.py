"""Tokens to their ids in a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, fixed
from attncli.core.matrix import as_matrix
from attncli.core.message import N_
from attncli.core.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Step


def compute(xp: Arithmetic, *, ids: Any, tokens: tuple[str, ...], count: int) -> Value:
    """The ids (token), counted from 0."""
    return xp.enter(as_matrix(ids))


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    return Term("text", step.params["tokens"][index[0]])


OP = Op(
    name="encode",
    compute=compute,
    axes="-> =token:count",
    formula=fixed(r"\operatorname{{id}}(\text{{token}})"),
    terms=terms,
    why=N_("A computer cannot multiply words. Each token gets its number in the vocabulary, counted from 0."),
)
