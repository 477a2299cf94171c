"""The command line in this process, with real byte streams for standard input, output and error."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import NamedTuple
from unittest import mock

from attncli.cli.main import main


class Ran(NamedTuple):
    """Exit status and what was written."""

    status: int
    out: str
    err: str


class _Keeping(io.BytesIO):
    """Bytes that survive the closing of the text stream around them."""

    def close(self) -> None:
        pass


def run(*argv: str, stdin: bytes | None = b"") -> Ran:
    """Run `attncli argv…`; stdin None: closed."""
    out, err = _Keeping(), _Keeping()
    with (
        mock.patch.object(sys, "stdin", None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True)),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True)),
        mock.patch.dict("os.environ", {"ATTNCLI_LANG": "en", "COLUMNS": "100"}),
    ):
        status = main(list(argv))
    return Ran(status, out.getvalue().decode(), err.getvalue().decode())


def refused(argv: Sequence[str], *words: str, stdin: bytes | None = b"") -> str:
    """Assert that this is refused as bad input, in one message with these words; the message."""
    status, out, err = run(*argv, stdin=stdin)
    assert status == 2, (status, out, err)
    assert out == ""
    one_message(err)
    for word in words:
        assert word in err, (word, err)
    return err


def one_message(err: str) -> None:
    """Assert that this is one line for a person."""
    assert err.startswith("attncli: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.count("attncli: ") == 1
    assert "Traceback" not in err
    assert err[:-1].isprintable()
    assert len(err) < 2500
