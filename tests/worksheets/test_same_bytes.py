"""The numbers of a seed stay what they are: on every Python, with every NumPy, until the generator's version is counted up."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attncli.worksheets import recipes
from attncli.worksheets.folder import problem_text
from attncli.worksheets.generator import VERSION, draw

#: Of the problem files of two seeds. The same were drawn by Python 3.11, 3.12 and 3.13, with NumPy 2.4 and 2.5.
DRAWN_BY_VERSION_1 = {
    "attention": "c7a5e633bdb6a954", "attention-backward": "6ee43800ebde0600", "attention-causal": "2624c6d4662772f4",
    "embedded-backward": "5d48dc07791bc518", "embedding": "cd23d660d3744347", "layer-norm": "edc54b382f2252a3",
    "layer-norm-backward": "380e564d8c0c6603", "multi-head": "14dbde3453fb2d96", "self-attention": "09ceb1df088635b7",
    "self-attention-backward": "eb5631b691b1c8ce", "self-attention-causal": "1b46321439bf873f",
    "softmax": "19b68b1cc04be372", "softmax-backward": "566fd106f7817a0d",
}  # fmt: skip
LONG = {"embedded-backward", "multi-head", "self-attention", "self-attention-backward"}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] if one in LONG else []) for one in DRAWN_BY_VERSION_1])  # fmt: skip
def test_what_a_seed_draws_is_pinned(name):
    text = "".join(problem_text(draw(recipes.load(name), f"pinned/{number}")[0]) for number in range(2))
    assert VERSION == 1, "whoever changes what is drawn counts the version up, and writes down the new sums"
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DRAWN_BY_VERSION_1[name]


def test_every_recipe_is_pinned():
    assert sorted(DRAWN_BY_VERSION_1) == recipes.names()


def another_python():
    """An interpreter of another version that attncli supports, the newest there is; None where there is none."""
    kept = Path.home() / ".pyenv" / "versions"
    found = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    found += [str(one) for one in sorted(kept.glob("3.*/bin/python"))] if kept.is_dir() else []
    ask = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    versions = {}
    for one in filter(None, found):
        done = subprocess.run([one, "-c", ask], capture_output=True, text=True)
        if done.returncode == 0 and (version := tuple(map(int, done.stdout.split()))) >= (3, 11):
            versions[version] = one
    versions.pop(sys.version_info[:2], None)
    return versions[max(versions)] if versions else None


@pytest.mark.slow
def test_another_python_writes_the_same_folder(tmp_path):
    python = another_python()
    if python is None:
        pytest.skip("needs another Python from 3.11 on, with venv")
    own = tmp_path / "own" / "bin" / "python"
    subprocess.run([python, "-m", "venv", str(own.parents[1])], check=True)
    words = [str(own), "-m", "pip", "install", "-q", "numpy>=2", "typer", "rich<16", "pydantic<3"]
    if subprocess.run(words, capture_output=True, timeout=180).returncode:
        pytest.skip("needs a way to PyPI")
    command = ["-m", "attncli", "worksheet", "attention", "--variants", "2", "--seed", "s", "--lang", "zh", "-o"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    files = []
    for interpreter, name in ((sys.executable, "here"), (str(own), "there")):
        folder = tmp_path / name
        subprocess.run([interpreter, *command, str(folder)], env=environment, check=True, capture_output=True)
        files.append({str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()})
    assert files[0] == files[1] and len(files[0]) == 11
