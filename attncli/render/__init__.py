"""Output formats. Rendering never computes: it says, lays out and prints what was calculated.

A format is a function from a view of a run (view.py) to text or to bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attncli.core.limits import MOST_EXPANDED_CELLS, MOST_EXPANDED_TERMS, MOST_SHOWN_CELLS
from attncli.core.message import LimitError

if TYPE_CHECKING:
    from attncli.problems.problem import Run
    from attncli.render.document import Page
    from attncli.render.view import View


#: By name, the file in this folder and the function there.
_FORMATS: Mapping[str, tuple[str, str]] = {
    "csv": ("data", "csv_text"), "html": ("explorer", "page"), "json": ("data", "json_text"), "latex": ("latex", "document"),
    "markdown": ("markdown", "document"), "npz": ("data", "npz_file"), "svg": ("svg", "picture"), "table": ("terminal", "table_text"),
    "xlsx": ("xlsx", "workbook"),
}  # fmt: skip
#: By the ending of a file, what prints worksheets.
SHEETS: Mapping[str, str] = {
    ".html": "html", ".htm": "html", ".tex": "latex", ".md": "markdown", ".markdown": "markdown", ".txt": "terminal",
}  # fmt: skip


def formats() -> list[str]:
    """The names of all formats."""
    return sorted(_FORMATS)


def printer(name: str) -> Callable[[View], str | bytes]:
    """The function that writes a view in a format."""
    file, function = _FORMATS[name]
    found: Callable[[View], str | bytes] = getattr(importlib.import_module(f"{__name__}.{file}"), function)
    return found


def sheet_printer(ending: str) -> Callable[[Sequence[Page]], str]:
    """What prints worksheets into a file with this ending."""
    found: Callable[[Sequence[Page]], str] = importlib.import_module(f"{__name__}.{SHEETS[ending]}").sheets
    return found


def check_size(run: Run, format: str, *, expand: bool) -> None:
    """Refuse a page that would take minutes to write and longer to read.

    Raises
    ------
    LimitError
        Says what the limit is, and what to ask for instead.
    """
    shown = [run.graph.steps[step_id] for step_id in run.shown]
    given = [given.matrix.values.size for given in run.graph.inputs.values()]
    cells = sum(step.cells for step in shown)
    most = MOST_SHOWN_CELLS.get(format)
    if most is not None and cells + sum(given) > most:
        raise LimitError(
            "{format} of {count} numbers is too much; the limit is {limit}. Choose steps with --step, or a format for programs: json, npz.",
            format=format,
            count=f"{cells + sum(given):,}",
            limit=f"{most:,}",
        )
    if not expand:
        return
    terms = sum(
        step.cells * max(run.graph.shape(operand)[-1:] or (1,)) for step in shown for operand in step.inputs[:1]
    )
    if cells > MOST_EXPANDED_CELLS or terms > MOST_EXPANDED_TERMS:
        raise LimitError(
            "--expand writes out the arithmetic of every cell: {count} cells with about {terms} terms here; the limits are {limit} and {most}. Choose steps with --step, or one cell: attncli why STEP ROW COLUMN.",
            count=f"{cells:,}",
            terms=f"{terms:,}",
            limit=f"{MOST_EXPANDED_CELLS:,}",
            most=f"{MOST_EXPANDED_TERMS:,}",
        )


def render(run: Run, format: str) -> str | bytes:
    """A run in a format: text, or bytes where the format is binary."""
    from attncli.render.view import view

    check_size(run, format, expand=False)
    return printer(format)(view(run))
