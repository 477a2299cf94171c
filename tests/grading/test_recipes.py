"""The recipes for Gradescope and GitHub Classroom, run in a folder laid out as theirs."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import pytest
from classroom import NO_SCALE, RIGHT
from harness import environment

RECIPES = Path(__file__).parent / "recipes"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the recipes are Bash scripts")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def attncli(path: Path) -> None:
    """The command of this environment, as pip would put it there."""
    program(path, f'#!/bin/sh\nexec "{sys.executable}" -m attncli "$@"\n')


def toml_of(answers: dict[str, str]) -> str:
    return "[answers]\n" + "".join(f'{name} = "{text}"\n' for name, text in answers.items())


# Gradescope


@pytest.fixture
def autograder(tmp_path: Path) -> Path:
    """/autograder as Gradescope lays it out: the zip unpacked in source, run_autograder copied beside it."""
    archive = tmp_path / "autograder.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for path in sorted((RECIPES / "gradescope").iterdir()):
            files.write(path, path.name)
    assert {"setup.sh", "run_autograder"} <= set(zipfile.ZipFile(archive).namelist())
    root = tmp_path / "autograder"
    with zipfile.ZipFile(archive) as files:
        files.extractall(root / "source")
    shutil.copy(root / "source" / "run_autograder", root)
    (root / "run_autograder").chmod(0o755)
    (root / "results").mkdir()
    (root / "submission").mkdir()
    attncli(root / "venv" / "bin" / "attncli")
    return root


def marked(root: Path) -> dict[str, Any]:
    done = subprocess.run(
        [root / "run_autograder"], cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    return dict(json.loads((root / "results" / "results.json").read_text("utf-8")))


def test_gradescope(autograder: Path) -> None:
    (autograder / "submission" / "answers.toml").write_text(toml_of(NO_SCALE), "utf-8")
    results = marked(autograder)
    assert results["score"] == 5
    assert [test["status"] for test in results["tests"]] == ["passed", "failed", "passed", "passed"]
    # Handed in again, under another name and in another form.
    (autograder / "submission" / "answers.toml").unlink()
    (autograder / "submission" / "homework 3.json").write_text(json.dumps({"answers": RIGHT}), "utf-8")
    assert marked(autograder)["score"] == 6


def test_gradescope_where_nothing_useful_was_handed_in(autograder: Path) -> None:
    (autograder / "submission" / "photo.jpg").write_bytes(b"\xff\xd8")
    results = marked(autograder)
    assert results["score"] == 0
    assert "no sheet in this folder" in results["output"]


@pytest.mark.parametrize("carried", [False, True])
def test_setup_installs_into_its_own_environment(autograder: Path, tmp_path: Path, carried: bool) -> None:
    """With stand-ins for what would reach for the network; the wheel in the zip goes before the released one."""
    wheel = autograder / "source" / "attncli-0.1.0-py3-none-any.whl"
    if carried:
        wheel.write_bytes(b"")
    said = tmp_path / "said"
    for name in ("apt-get", "python3"):
        program(tmp_path / "bin" / name, f'#!/bin/sh\necho {name} "$@" >> "{said}"\n')
    program(autograder / "venv" / "bin" / "pip", f'#!/bin/sh\necho pip "$@" >> "{said}"\n')
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", autograder / "source" / "setup.sh"], env=environment(PATH=path), check=True)
    assert said.read_text("utf-8").splitlines() == [
        "apt-get update -q",
        "apt-get install -y -q python3 python3-venv",
        f"python3 -m venv {autograder / 'venv'}",
        f"pip install --quiet {wheel if carried else 'attncli'}",
    ]


# GitHub


WORKFLOW = (RECIPES / "github" / "classroom.yml").read_text("utf-8")


def steps() -> dict[str, str]:
    """The commands of the workflow's steps, by name."""
    found = re.findall(r"- name: (.+)\n(?: +id: .+\n)? +run: (?:\|\n((?: {10}.*\n)+)|(.+))", WORKFLOW)
    return {name: textwrap.dedent(block) or line for name, block, line in found}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A student's repository after the checkout."""
    root = tmp_path / "repository"
    (root / ".github" / "workflows").mkdir(parents=True)
    shutil.copy(RECIPES / "github" / "classroom.yml", root / ".github" / "workflows")
    shutil.copy(RECIPES / "github" / "points.py", root / ".github")
    shutil.copy(RECIPES / "github" / "exercise.toml", root)
    attncli(tmp_path / "bin" / "attncli")
    program(tmp_path / "bin" / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    return root


def pushed(root: Path, sheet: str) -> subprocess.CompletedProcess[str]:
    """Run the checking step as a runner does: bash -e, with files for the outputs and the summary."""
    (root / "answers.toml").write_text(sheet, "utf-8")
    for name in ("output", "summary"):
        (root.parent / name).write_text("", "utf-8")
    own = environment(
        PATH=f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        GITHUB_OUTPUT=str(root.parent / "output"),
        GITHUB_STEP_SUMMARY=str(root.parent / "summary"),
    )
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", steps()["Check the sheet"]],
        cwd=root,
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )


def reported(root: Path) -> dict[str, Any]:
    """What the reporter reads: base64 of JSON in the step's output."""
    name, _, value = (root.parent / "output").read_text("utf-8").strip().partition("=")
    assert name == "result"
    return dict(json.loads(base64.b64decode(value)))


@pytest.mark.parametrize(("answers", "points"), [(RIGHT, 6), (NO_SCALE, 5)])
def test_github(repository: Path, answers: dict[str, str], points: int) -> None:
    done = pushed(repository, toml_of(answers))
    assert done.returncode == 0, done
    result = reported(repository)
    assert result["max_score"] == 6
    assert sum(test["score"] for test in result["tests"]) == points
    assert result["status"] == ("pass" if points == 6 else "fail")
    assert {test["status"] for test in result["tests"]} <= {"pass", "fail"}
    summary = (repository.parent / "summary").read_text("utf-8")
    assert f"**Points: {points} of 6**" in summary
    assert "0.707" not in summary  # a hint, no answers
    suite = ET.parse(repository / "marks.xml").getroot()[0]
    assert suite.get("failures") == ("0" if points == 6 else "1")


@pytest.mark.parametrize("sheet", ["", "[answers]\n"])
def test_github_passes_on_an_empty_sheet(repository: Path, sheet: str) -> None:
    done = pushed(repository, sheet)
    assert done.returncode == 0
    # The exercise's author is told once what its numbers cannot tell apart; nothing else is said.
    assert all(line.startswith("attncli: For the author") for line in done.stderr.splitlines())
    assert sum(test["score"] for test in reported(repository)["tests"]) == 0
    assert "**Points: 0 of 6**" in (repository.parent / "summary").read_text("utf-8")


def test_github_stops_at_a_sheet_that_cannot_be_read(repository: Path) -> None:
    done = pushed(repository, "answers = [")
    assert done.returncode != 0
    assert "not valid TOML" in done.stderr


def test_the_workflow_is_named_as_classroom_wants_it() -> None:
    """Classroom reads points only from a workflow of this name with this one job."""
    assert re.search(r"^name: Autograding Tests$", WORKFLOW, re.MULTILINE)
    assert re.search(r"^  run-autograding-tests:$", WORKFLOW, re.MULTILINE)
    runner = re.search(r"runners: (\w+)", WORKFLOW)
    assert runner is not None
    assert f"{runner[1].upper()}_RESULTS: ${{{{ steps.{runner[1]}.outputs.result }}}}" in WORKFLOW
    assert f"id: {runner[1]}\n" in WORKFLOW
    assert steps()["Install attncli"] == "pip install --quiet attncli"
