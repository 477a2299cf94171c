"""Output formats: one a file, found by listing this folder. Rendering never computes.

A format is a function `render(view) -> str | bytes`; `BINARY` marks one that gives bytes. What they
share (names of rows, numbers as text, formulas) is in the files that start with an underscore.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncli.core.limits import MOST_EXPANDED_CELLS, MOST_EXPANDED_TERMS, MOST_SHOWN_CELLS
from attncli.core.message import ENGLISH, N_, Language, LimitError, Message, unknown

if TYPE_CHECKING:
    from attncli.problems.run import Run


def names() -> list[str]:
    """The names of all formats: the files in this folder."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))


def get(name: str) -> Any:
    """The module of a format.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    import importlib

    known = names()
    if name not in known:
        raise unknown(Message(N_("The format")), name, known)
    return importlib.import_module(f"{__name__}.{name}")


def check_size(run: Run, format: str, *, expand: bool) -> None:
    """Refuse a page that would take minutes to write and longer to read.

    Raises
    ------
    LimitError
        Says what the limit is, and what to ask for instead.
    """
    shown = [run.graph.steps[id] for id in run.shown]
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
    terms = sum(step.cells * max(run.graph.shape(id)[-1:] or (1,)) for step in shown for id in step.inputs[:1])
    if cells > MOST_EXPANDED_CELLS or terms > MOST_EXPANDED_TERMS:
        raise LimitError(
            "--expand writes out the arithmetic of every cell: {count} cells with about {terms} terms here; the limits are {limit} and {most}. Choose steps with --step, or one cell: attncli why STEP ROW COLUMN.",
            count=f"{cells:,}",
            terms=f"{terms:,}",
            limit=f"{MOST_EXPANDED_CELLS:,}",
            most=f"{MOST_EXPANDED_TERMS:,}",
        )


def render(run: Run, format: str, language: Language = ENGLISH, **options: Any) -> str | bytes:
    """A run in a format: text, or bytes where the format is binary.

    Parameters
    ----------
    options : expand (show every cell's arithmetic), layout ("rows" or "columns"), width
    """
    from attncli.render._view import view

    check_size(run, format, expand=bool(options.get("expand")))
    result: str | bytes = get(format).render(view(run, language, **options))
    return result
