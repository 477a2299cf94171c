"""A real Chromium for the page that can be explored; without one these tests are skipped with a word, in the CI never."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from opened import Opened

#: Set where a missing browser is a failure.
REQUIRED = "ATTNCLI_SKIP_NOTHING"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WORDS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def missing(what: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what}, but {REQUIRED} is set")
    pytest.skip(f"{what}: the page is not tried out")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of a process."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    program = os.environ.get("ATTNCLI_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing("there is no Chromium here (on Debian and Ubuntu: apt install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=WORDS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def context(browser: Any) -> Callable[..., Any]:
    """A context of the browser for each kind of screen; a new one takes longer than most tests."""
    return cache(lambda **how: browser.new_context(**how))


@pytest.fixture
def open_page(context: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a page's text as a file of its own, and afterwards asserts that nothing went wrong in it."""
    pages: list[Opened] = []

    def opener(
        text: str, link: str = "", *, width: int = 1280, height: int = 900, quiet: bool = True, **how: Any
    ) -> Opened:
        file = tmp_path / f"trace{len(pages)}.html"
        file.write_text(text, encoding="utf-8")
        tab = context(**how).new_page()
        tab.set_viewport_size({"width": width, "height": height})
        pages.append(Opened(tab, f"{file.as_uri()}{link}", quiet=quiet))
        return pages[-1]

    yield opener
    for page in pages:
        page.page.close()
    for page in pages:
        page.assert_nothing_went_wrong()
