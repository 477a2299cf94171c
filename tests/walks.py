"""The three ways through the house of CONTRIBUTING.md: which files a command passes through.

python tests/walks.py
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from types import FrameType
from unittest import mock

from attncli.cli.main import main

ROOT = Path(__file__).parents[1]
#: A heading of CONTRIBUTING.md, and the command whose way it tells.
WALKS = {
    "From the command line to the table": ("forward", "-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4"),
    "From an answer to its verdict": ("check", "a1", "A=0.269 0.731"),
    "From the loss to a gradient": ("why", "b6", "G_K", "1", "1"),
}


def passed(words: tuple[str, ...]) -> dict[str, int]:
    """Files of attncli in the order in which a command comes to them, and how many of their functions it calls."""
    functions: dict[tuple[str, str], None] = {}

    def called(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT / "attncli"):
            functions.setdefault((file.relative_to(ROOT).as_posix(), frame.f_code.co_qualname))

    _run(words)  # what happens while files are imported is no part of the way
    sys.setprofile(called)
    try:
        _run(words)
    finally:
        sys.setprofile(None)
    files = [file for file, _ in functions]
    return {file: files.count(file) for file in files}


def _run(words: tuple[str, ...]) -> None:
    with mock.patch.object(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8")):
        main(words)


def told(heading: str) -> list[str]:
    """The files that CONTRIBUTING.md names on a way."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(f"### {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `(attncli/[\w/]+\.py)`", section, re.MULTILINE)


if __name__ == "__main__":
    for heading, words in WALKS.items():
        files = passed(words)
        print(
            f"{heading}: {len(told(heading))} files to open; passed through: {len(files)}, {sum(files.values())} functions"
        )
        for file, count in files.items():
            print(f"  {'→' if file in told(heading) else ' '} {file} ({count})")
