"""Where a report goes, of whatever command: the screen, standard output, or a file."""

from __future__ import annotations

import sys
from typing import Any

from attncli.cli._output import format_of, language_of, write_file
from attncli.cli._say import Say
from attncli.core.outputs import REPORT

FORMATS = ("table", "json", "markdown", "csv")


def report_format(format: str | None, output: str | None) -> str:
    """The format that is asked for, or that the file's ending means.

    Raises
    ------
    InputError
        Reports do not come in it.
    """
    return format_of(format, output, FORMATS)


def write_report(say: Say, report: Any, format: str, output: str | None, *, force: bool) -> None:
    """Write what an experiment, a training or a continuation has found."""
    from attncli.cli._terminal import width
    from attncli.render.report import RENDERERS

    to_file = output is not None
    encoding = "utf-8" if to_file else (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    text = RENDERERS[format](report, language_of(say, to_file=to_file), width=width(to_file=to_file), encoding=encoding)
    write_text(say, text, output, force=force)


def write_text(say: Say, text: str, output: str | None, *, force: bool) -> None:
    """Write a text that is complete."""
    if output is None:
        say.out(text)
    else:
        write_file(say, output, text.encode("utf-8"), REPORT, force=force)
