"""The worked examples that come with attncli: problem files, found by listing their folder.

Nothing heavy is imported to list them, because shell completion lists them while a key is held down.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from attncli.message import N_, Message, unknown

if TYPE_CHECKING:
    from attncli.problems.problem import Problem

_NAME = "worked_examples"
_PARTS = re.compile(r"\d+|\D+")


def folder() -> Path:
    """The folder of the worked examples: the checkout's, or the one installed inside the package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    # Beside pyproject.toml it is the source tree; an editable install may have left an older copy in the package.
    if (checkout / "pyproject.toml").is_file() and (checkout / _NAME).is_dir():
        return checkout / _NAME
    return package / _NAME


def ids() -> list[str]:
    """The ids of all worked examples, in teaching order: a1 … a11, b1 …, then what other people published."""
    return list(_paths())


def path(id: str) -> Path:
    """The file of the worked example `id`.

    Raises
    ------
    InputError
        There is none; the likely one is suggested.
    """
    paths = _paths()
    if id not in paths:
        raise unknown(Message(N_("The worked example")), id, list(paths))
    return paths[id]


def load(id: str) -> Problem:
    """The worked example `id`.

    Raises
    ------
    InputError
        There is none, or its file cannot be read.
    """
    from attncli.problems import file

    return file.load(path(id), check=False)


def _paths() -> dict[str, Path]:
    root = folder()
    found = sorted(root.rglob("*.toml"), key=lambda file: (len(file.relative_to(root).parts), _natural(file.stem)))
    return {file.stem: file for file in found}


def _natural(name: str) -> list[tuple[int, str]]:
    """a2 before a10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _PARTS.findall(name)]
