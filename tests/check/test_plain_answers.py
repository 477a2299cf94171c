"""Plain numbers are read by a short way; it comes to what the grammar of matrices comes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attncli.arithmetic.expression import entry_text, parse_entry
from attncli.core.message import AttnError
from attncli.problems.answers import _short, answer
from attncli.problems.matrix_text import by_grammar


def parts(matrix: Any) -> list[Any]:
    """Everything a matrix holds, to be compared to the last bit."""
    return [
        matrix.values.shape,
        matrix.values.dtype,
        matrix.values.tobytes(),
        matrix.decimals.tolist(),
        matrix.decimals.dtype,
        matrix.entries,
        matrix.blank,
    ]


@given(
    st.lists(st.sampled_from(["0.330", "-1", "-inf", "inf", ";", " ; ", " ", "  ", "1.", "007"])).map(" ".join)
    | st.text("0123456789.- ;", max_size=40)
    | st.text(" ;.-019", max_size=12)
)
@example("0.330 0.670; -1 2")
@example("0.330 -inf ;-1 inf")
@example("-inf")
@example("--inf 1")
@example(" 1  2 ; 3  4 ")
@example("-0.000")
@example("1;2;")
@example(";1")
@example("1 2; 3")
@example("1 2;; 3 4")
@example("1. .5 -.5 00.10")
@example("--1")
@example("1-2")
@example("9" * 400)
@example("0." + "3" * 60)
def test_the_short_way_is_the_grammar(text: str) -> None:
    found = answer(text)
    if not text.strip():
        assert found.matrix is not None and found.matrix.blank is not None
        return
    try:
        expected = by_grammar(text, blanks=True)
    except AttnError as error:
        assert found.matrix is None
        assert found.error == error.message
        return
    assert found.matrix is not None
    assert parts(found.matrix) == parts(expected)


@pytest.mark.parametrize("text", ["0.330 0.670", "1 2; 3 4"])
def test_the_short_way_is_taken(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def grammar(*args: Any, **more: Any) -> Any:
        raise AssertionError("the grammar was asked")

    monkeypatch.setattr("attncli.problems.matrix_text.by_grammar", grammar)
    _short.cache_clear()
    found = answer(text).matrix
    assert found is not None
    assert answer(text).matrix is found
    assert not found.values.flags.writeable
    assert np.isfinite(found.values).all()


NUMBERS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,3})?", fullmatch=True)
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["e", "inf"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "^"]), inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})")
        | inner.map(lambda text: f"-({text})")
        | inner.map(lambda text: f"√({text})")
        | inner.map(lambda text: f"exp({text})")
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
@example("-(1)^(2)")
@example("(-(1))^(2)")
@example("(1)-((2)-(3))")
@example("(6)/((2)*(3))")
@example("(2)^((3)^(2))")
@example("((2)^(3))^(2)")
@example("-(-(1))")
def test_an_expression_as_text_is_that_expression(text: str) -> None:
    try:
        value, _, entry = parse_entry(text)
    except AttnError:
        return
    again, _, same = parse_entry(entry_text(entry).replace("−", "-"))  # as the text of a matrix is read
    assert same == entry or entry_text(same) == entry_text(entry)
    assert again == value
