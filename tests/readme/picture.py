"""The picture in the READMEs: the terminal view of the first exercise, as it is shown today.

python tests/readme/picture.py            # draw .github/terminal.svg
python tests/readme/picture.py --check    # exit status 1 if it is not what would be drawn
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from outputs import ROOT, environment

PICTURE = ROOT / ".github" / "terminal.svg"
COMMAND = ["attncli", "forward", "a11-causal-self-attention", "--step", "scaled", "--step", "A", "--step", "O"]


def drawn() -> bytes:
    """The picture, 80 characters wide."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "terminal.svg"
        subprocess.run(
            [*COMMAND, "-o", str(target)], env=environment("en_US.UTF-8", Path(folder)), check=True, timeout=60
        )
        return target.read_bytes()


def main(words: list[str]) -> int:
    """Draw the picture, or check it."""
    if "--check" not in words:
        PICTURE.write_bytes(drawn())
        return 0
    same = PICTURE.read_bytes() == drawn()
    print(f"{PICTURE.name}: {'up to date' if same else 'out of date; draw it: python tests/readme/picture.py'}")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
