"""The printed page, as a browser makes a PDF of it: one or two pages of A4 for every variant, and no table is cut."""

import os
import re
import shutil
import subprocess

import pytest

from attncli.cli.main import main


def browser():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pages(place):
    """Pages of the PDF that a browser prints."""
    pdf = place.with_suffix(".pdf")
    words = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-pdf-header-footer",
        f"--print-to-pdf={pdf}",
    ]
    subprocess.run([*words, str(place)], capture_output=True, timeout=120, check=True)
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@pytest.mark.slow
def test_every_variant_takes_one_or_two_pages(tmp_path):
    if browser() is None and not os.environ.get("ATTNCLI_SKIP_NOTHING"):
        pytest.skip("needs a browser: apt-get install chromium")
    longest = tmp_path / "embedded-backward.html"
    assert main(["worksheet", "embedded-backward", "-o", str(longest)]) == 0
    assert pages(longest) == 2
    folder = tmp_path / "set"
    assert main(["worksheet", "attention", "--variants", "3", "--lang", "zh", "-o", str(folder)]) == 0
    assert pages(folder / "sheets.html") == 3, "each begins on a page of its own"


def test_a_table_is_never_cut(tmp_path):
    place = tmp_path / "sheet.html"
    assert main(["worksheet", "a1", "-o", str(place)]) == 0
    page = place.read_text(encoding="utf-8")
    assert re.search(r"figure \{[^}]*break-inside: avoid", page)
    assert page.count("<figure>") == page.count("<table>") == page.count("</figure>")
