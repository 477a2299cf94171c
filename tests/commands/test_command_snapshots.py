"""Commands as a user sees them, at several widths and in both languages.

After a change that is meant: pytest tests/commands --snapshot-update, and read the difference.
"""

from __future__ import annotations

import re

import pytest
from harness import Ran, once
from rich.cells import cell_len
from saved import SAVED, path
from syrupy.assertion import SnapshotAssertion
from typed import EVERYWHERE, WIDTHS, WIDTHS_IN_CHINESE

from attncli import models
from attncli.problems import library

SHOWN = [(name, width, "en") for name in EVERYWHERE for width in WIDTHS] + [
    (name, width, "zh") for name in EVERYWHERE for width in WIDTHS_IN_CHINESE
]

#: Lists of what there is have no snapshot: another example or model is no change of the screen.
LISTS = {"examples-list": library.ids, "models": models.names}


def shown(name: str, width: int, language: str) -> Ran:
    words = EVERYWHERE[name]
    # In the folder of the file, so that no path of this machine is shown.
    folder = path().parent if SAVED in words else None
    return once(*words, folder=folder, COLUMNS=width, ATTNCLI_LANG=language)


@pytest.mark.parametrize(("name", "width", "language"), [case for case in SHOWN if case[0] not in LISTS])
def test_snapshot(name: str, width: int, language: str, snapshot: SnapshotAssertion) -> None:
    assert str(shown(name, width, language)) == snapshot


#: A command and a line of a sheet stay whole, so that they can be copied.
COPIED = re.compile(r" *attncli \w|\w+ = \"[? ;]+\"$")


@pytest.mark.parametrize(("name", "width", "language"), SHOWN)
def test_no_line_is_wider_than_the_screen_or_ends_in_spaces(name: str, width: int, language: str) -> None:
    done = shown(name, width, language)
    for line in done.out.splitlines():
        assert cell_len(line) <= width or COPIED.match(line), line
        assert line == line.rstrip(), repr(line)
    assert done.out.endswith("\n") or not done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_complete_and_in_order(name: str) -> None:
    for width in WIDTHS:
        text = shown(name, width, "en").out.rpartition("\n\n")[0]
        # The heading of a part may go on in a second line.
        text = re.sub(r"^[A-Z].*(\n[a-z ]+$)?", "", text, flags=re.MULTILINE)
        listed = re.findall(r"^([a-z]\S*)(?= |$)", text, re.MULTILINE)
        assert listed == LISTS[name]()


@pytest.mark.parametrize("name", [name for name in EVERYWHERE if not name.startswith("wrong")])
def test_language_is_all_of_it(name: str) -> None:
    """English has Chinese only in the data; Chinese says everything in Chinese."""
    english, chinese = (shown(name, 80, language).out for language in ("en", "zh"))
    assert re.search(r"[一-鿿]", chinese) or name == "why"
    for sentence in re.findall(r"(?:[A-Z][a-z]+ (?:[a-z,]+ ){3,}[a-z]+[.:])", english):
        assert sentence not in chinese


@pytest.mark.parametrize("name", ["forward", "examples-list"])
def test_lang_says_the_same_as_the_environment(name: str) -> None:
    for language, locale in (("en", "en_US.UTF-8"), ("zh", "zh_CN.UTF-8")):
        other = {"en": "zh_CN.UTF-8", "zh": "en_US.UTF-8"}[language]
        asked = once(*EVERYWHERE[name], "--lang", language, LANG=other)
        assert asked.stdout == once(*EVERYWHERE[name], LANG=locale).stdout
        assert asked.stdout == once(*EVERYWHERE[name], LANG=other, ATTNCLI_LANG=language).stdout
