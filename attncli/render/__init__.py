"""Output formats: one a file, found by listing this folder. Rendering never computes.

A format is a function `render(view) -> str | bytes`; `BINARY` marks one that gives bytes. What they
share (names of rows, numbers as text, formulas) is in the files that start with an underscore.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncli.message import ENGLISH, N_, Language, Message, unknown

if TYPE_CHECKING:
    from attncli.run import Run


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


def render(run: Run, format: str, language: Language = ENGLISH, **options: Any) -> str | bytes:
    """A run in a format: text, or bytes where the format is binary.

    Parameters
    ----------
    options : expand (show every cell's arithmetic), layout ("rows" or "columns"), width
    """
    from attncli.render._view import view

    result: str | bytes = get(format).render(view(run, language, **options))
    return result
