"""The wheel: what is in it, and that it works in an environment of its own, far from the checkout.

Builds and installs for real, so it is slow and needs a way to the package index; without one these tests fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def call(*words: str | Path, folder: Path, **variables: str) -> str:
    """What a program prints, run in a folder and an environment that know nothing of the checkout."""
    keep = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "http", "no_"))
    }
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8", **keep, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that has the wheel in it, with the extra for exact results."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", with_pip=False)
    programs = folder / "venv" / "bin"
    call(
        sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q", f"attncli[exact] @ {wheel.as_uri()}",
        folder=folder,
    )  # fmt: skip
    return programs


def test_holds_what_it_needs_and_no_more(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    inside = {name for name in names if not name.startswith(f"attncli-{PROJECT['version']}.dist-info/")}
    assert all(name.startswith("attncli/") for name in inside)
    expected = {file.relative_to(ROOT).as_posix() for file in (ROOT / "attncli").rglob("*.py")}
    expected |= {f"attncli/{file.relative_to(ROOT).as_posix()}" for file in (ROOT / "worked_examples").rglob("*.toml")}
    expected |= {"attncli/py.typed"}
    expected |= {f"attncli/render/{name}" for name in ("page.css", "explorer.css", "explorer.js")}
    expected |= {file.relative_to(ROOT).as_posix() for file in (ROOT / "attncli" / "locale").rglob("*.mo")}
    assert expected <= inside
    assert "attncli/locale/zh/LC_MESSAGES/attncli.mo" in inside
    assert not [name for name in inside if "__pycache__" in name or name.endswith(".pyc")]


def test_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        info = f"attncli-{PROJECT['version']}.dist-info"
        metadata = Parser().parsestr(opened.read(f"{info}/METADATA").decode())
        assert "attncli = attncli.cli.main:entry" in opened.read(f"{info}/entry_points.txt").decode()
        assert f"{info}/licenses/LICENSE" in opened.namelist()
    assert metadata["Name"] == "attncli"
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert str(metadata.get_payload()).startswith("# attncli")
    extras = set(metadata.get_all("Provides-Extra"))
    assert extras == set(PROJECT["optional-dependencies"])


def test_works_far_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    attncli = installed / "attncli"
    assert call(attncli, "--version", folder=tmp_path) == f"attncli {PROJECT['version']}\n"
    verified = call(attncli, "examples", "verify", folder=tmp_path)
    count = len(list((ROOT / "worked_examples").rglob("*.toml")))
    assert verified.count("✓") == count
    where = call(installed / "python", "-c", "import attncli; print(attncli.__file__)", folder=tmp_path).strip()
    assert str(ROOT) not in where
    assert (Path(where).parent / "py.typed").is_file()
    assert "结果：O = 0.660 2.679" in call(attncli, "forward", "a1-pronoun", folder=tmp_path, ATTNCLI_LANG="zh")
    assert "e^(√2/2)" in call(attncli, "forward", "a1-pronoun", "--exact", folder=tmp_path)
    call(attncli, "forward", "a1-pronoun", "-o", "trace.html", folder=tmp_path)
    assert (tmp_path / "trace.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_killed_in_the_middle_it_goes_on(installed: Path, tmp_path: Path) -> None:
    sheets = [{"student": f"s{i}", "answers": {"A": "0.330 0.670", "O": f"0.6{i % 10}0 2.680"}} for i in range(400)]
    (tmp_path / "class.jsonl").write_text("".join(json.dumps(sheet) + "\n" for sheet in sheets), "utf-8")
    own = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
    words = [str(installed / "attncli"), "grade", "a1-pronoun", "class.jsonl", "-o"]
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
