"""One small example in every text format, as it is written; and every format twice the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rendering import written
from syrupy.assertion import SnapshotAssertion

from attncli import api
from attncli.render import formats, printer
from attncli.render.view import View, view

#: Formats that are no text; all others are.
BINARY = {"npz", "xlsx"}
TEXTS = [name for name in formats() if name not in BINARY]
FORMATS = ("csv", "html", "latex", "markdown")


@pytest.mark.parametrize("format", FORMATS)
def test_small_example(format: str, seen: Callable[..., View], snapshot: SnapshotAssertion) -> None:
    # Calculated by hand: rounded numbers are the same on every machine, to the last bit.
    text = printer(format)(seen("by_hand", expand=True))
    if format == "html":
        text = text.partition("<style>\n/*")[0] + text.rpartition("</style>")[2]  # the style has its own tests
    assert text == snapshot


@pytest.mark.parametrize("format", formats())
def test_same_run_same_bytes(format: str, name: str, seen: Callable[..., View]) -> None:
    if format == "xlsx" and name in ("exact", "by_hand"):
        pytest.skip("a spreadsheet calculates in full precision")
    first, again = (printer(format)(seen(name)) for _ in range(2))
    assert first == again
    assert isinstance(first, bytes) == (format in BINARY)


@pytest.mark.parametrize("format", TEXTS)
def test_text_ends_with_one_newline(format: str, shown: View) -> None:
    text = written(format, shown)
    assert text.endswith("\n") and not text.endswith("\n\n")


@pytest.mark.parametrize("format", TEXTS)
def test_no_control_character_reaches_a_terminal(format: str) -> None:
    problem = api.problem(
        model="embedding",
        inputs={"text": "a\x1bb", "E": "1 0; 0 1; 1 1"},
        settings={"vocabulary": ["a", "\x1b", "b"]},
        title={"en": "x\x1b[31m\x07 y\u202e"},
    )
    text = printer(format)(view(api.forward(problem), expand=True))
    assert not set("\x1b\x07\u202e") & set(text)
    assert "\N{REPLACEMENT CHARACTER}" in text or format in ("latex", "json")
