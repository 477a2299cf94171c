"""Where a report goes: the screen, standard output, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attncli.cli._lab import _write as write_report
from attncli.cli._say import Say
from attncli.message import N_, Message, unknown

FORMATS = ("table", "json", "csv", "markdown")
_ENDINGS = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}


def format_of(format: str | None, output: str | None) -> str:
    """The format that is asked for, or that the file's ending means."""
    if format is None:
        format = _ENDINGS.get(Path(output).suffix.lower(), "table") if output else "table"
    if format not in FORMATS:
        raise unknown(Message(N_("The format")), format, list(FORMATS))
    return format


def write(say: Say, report: Any, format: str, output: str | None) -> None:
    write_report(say, report, format, output)
