"""What users install, killed in the middle: the wheel goes on as the checkout does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the built wheel in it and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True, capture_output=True)
    (wheel,) = folder.glob("attncli-*.whl")
    subprocess.run([*pip, "install", "-q", "--no-deps", "--target", folder / "site", wheel], check=True)
    return folder / "site"


def test_killed_and_continued(installed: Path, tmp_path: Path) -> None:
    sheets = [{"student": f"s{i}", "answers": {"A": "0.330 0.670", "O": f"0.6{i % 10}0 2.680"}} for i in range(400)]
    (tmp_path / "class.jsonl").write_text("".join(json.dumps(sheet) + "\n" for sheet in sheets), "utf-8")
    own = {**os.environ, "PYTHONPATH": str(installed), "ATTNCLI_LANG": "en", "OPENBLAS_NUM_THREADS": "1"}
    where = subprocess.check_output(
        [sys.executable, "-P", "-c", "import attncli; print(attncli.__file__)"], env=own, cwd=tmp_path
    )
    assert str(installed) in where.decode()
    words = [sys.executable, "-P", "-m", "attncli", "grade", "a1-pronoun", "class.jsonl", "-o"]
    part, whole = tmp_path / "part.csv", tmp_path / "whole.csv"
    with subprocess.Popen([*words, part], env=own, cwd=tmp_path) as running:
        until = time.monotonic() + 60
        while (
            running.poll() is None and time.monotonic() < until and not (part.is_file() and part.stat().st_size > 9000)
        ):
            time.sleep(0.001)
        running.kill()
    for out in (part, whole):
        assert subprocess.run([*words, out], env=own, cwd=tmp_path, check=False).returncode == 0
    assert part.read_bytes() == whole.read_bytes()
    assert whole.read_bytes().count(b"\n") == 401
