"""The board in the READMEs: the page of an exercise with one number pointed at, as a browser shows it today.

python tests/readme/board.py              # draw .github/board.png; needs playwright and a Chromium
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from outputs import ROOT, environment

PICTURE = ROOT / ".github" / "board.png"
COMMAND = ["attncli", "examples", "run", "b6-full-backward"]
#: The view, the number that is pointed at, and the size of the screen.
LINK, WIDTH, HEIGHT = "#view=board&cell=A[3,2]", 1280, 900


def draw(target: Path) -> None:
    """Write the page, open it, take its picture."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("ATTNCLI_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise SystemExit("There is no Chromium here. Install it, or name it in ATTNCLI_CHROMIUM.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "trace.html"
        subprocess.run(
            [*COMMAND, "-o", str(page)], env=environment("en_US.UTF-8", Path(folder)), check=True, timeout=60
        )
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(page.as_uri() + LINK)
        tab.screenshot(path=str(target))
        browser.close()


if __name__ == "__main__":
    draw(PICTURE)
    sys.exit(0)
