"""The worked examples that come with attncli: problem files, found by listing their folder.

Nothing heavy is imported to list them, because shell completion lists them while a key is held down.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from attncli.core.message import N_, InputError, Listed

if TYPE_CHECKING:
    from attncli.problems.problem import Problem

_NAME = "worked_examples"
#: Ids that an error names.
_MOST_NEAR = 8
_PIECES = re.compile(r"\d+|\D+")

#: Parts of the worked examples, by the letter that their ids begin with; what other people published has none.
PARTS = {
    "a": N_("A. Attention, from the scores to the output"),
    "b": N_("B. The way back: gradients of attention"),
    "c": N_("C. Tokens and their embeddings"),
    "d": N_("D. Many heads, shared and compressed"),
    "e": N_("E. The Transformer around it"),
    "f": N_("F. A small GPT: loss and learning"),
    "": N_("Printed by others, and calculated again"),
}
_OURS = re.compile(r"([a-z])[0-9]+-")
#: Where somebody new may begin, and go on: ids as they may be typed.
PATH = (("a2", "a1", "a8", "a9", "a11"), ("b1", "b2", "b4", "b6"), ("c3", "c6", "d1", "e3", "e6", "f1"))


def folder() -> Path:
    """The folder of the worked examples: the checkout's, or the one installed inside the package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent
    # Beside pyproject.toml it is the source tree; an editable install may have left an older copy in the package.
    if (checkout / "pyproject.toml").is_file() and (checkout / _NAME).is_dir():
        return checkout / _NAME
    return package / _NAME


def ids() -> list[str]:
    """The ids of all worked examples, in small letters, in teaching order: a1 … a11, b1 …, then what other people published."""
    return list(_paths())


def part_of(example_id: str) -> str:
    """The letter of the part that an example belongs to; nothing for what other people printed."""
    found = _OURS.match(example_id)
    return found[1] if found is not None and found[1] in PARTS else ""


def find(name: str) -> str | None:
    """The id that is meant: written as it is, in any case, or up to a dash, like a2 for a2-first-by-hand; else None."""
    return _meant(name, _paths())


def _meant(name: str, known: Collection[str]) -> str | None:
    word = name.strip().casefold()
    near = [word] if word in known else [example_id for example_id in known if example_id.startswith(f"{word}-")]
    return near[0] if word and len(near) == 1 else None


def path(example_id: str) -> Path:
    """The file of the worked example `example_id`, or of the only one whose id begins like that."""
    paths = _paths()
    found = _meant(example_id, paths)
    if found is not None:
        return paths[found]
    near = _near(example_id.casefold()[:100], list(paths))
    if not near:
        raise InputError(
            "The worked example “{id}” does not exist. All of them: attncli examples list.", id=example_id[:100]
        )
    raise InputError(
        "The worked example “{id}” does not exist. Did you mean {likely}? All of them: attncli examples list.",
        id=example_id[:100],
        likely=Listed.first([f"“{one}”" for one in near], _MOST_NEAR),
    )


def _near(word: str, known: list[str]) -> list[str]:
    """Those that begin with the word as a whole (a1 for a1-pronoun), else with its letters, else hold it, else look like it."""
    from difflib import get_close_matches

    if not word.strip():
        return []
    return (
        [example_id for example_id in known if example_id.startswith(f"{word}-")]
        or [example_id for example_id in known if example_id.startswith(word)]
        or [example_id for example_id in known if len(word) > 2 and word in example_id]
        or get_close_matches(word, known, n=3, cutoff=0.65)
    )


def of_model(name: str) -> list[str]:
    """The ids of the worked examples that this model calculates, in teaching order; the files are only searched."""
    line = re.compile(rf'^model = "{re.escape(name)}"$', re.MULTILINE)
    return [example_id for example_id, file in _paths().items() if line.search(file.read_text(encoding="utf-8"))]


def load(example_id: str) -> Problem:
    """The worked example `example_id`."""
    from attncli.problems import file

    return file.load(path(example_id), check=False)


def _paths() -> dict[str, Path]:
    root = folder()
    found = sorted(root.rglob("*.toml"), key=lambda file: (len(file.relative_to(root).parts), _natural(file.stem)))
    return {file.stem: file for file in found}


def _natural(name: str) -> list[tuple[int, str]]:
    """a2 before a10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _PIECES.findall(name)]
