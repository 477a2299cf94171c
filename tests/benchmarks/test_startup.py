"""Whole processes against importing the libraries they need."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attncli

A1 = ["forward", "-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4"]


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """As pip leaves a package: its byte code beside it."""
    compileall.compile_dir(Path(attncli.__file__).parent, quiet=1)


def process(*words: str):  # type: ignore[no-untyped-def]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *words]

    def run() -> None:
        status = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode
        assert status in (0, 1), command  # 1: check found a mistake

    return run


def test_forward_on_the_first_exercise(ratio) -> None:  # type: ignore[no-untyped-def]
    imports = process("-c", "import numpy, typer, rich.table, rich.console")
    ratio(process("-m", "attncli", *A1), imports, limit=1.15, rounds=30)


@pytest.mark.parametrize(
    ("example", "answer", "limit"),
    [
        ("a1-pronoun", "A=0.330 0.670", 1.25),
        ("a1-pronoun", "A=0.269 0.731", 1.25),  # a mistake, by name
        ("b6-full-backward", "L=8.809", 1.25),
        ("b6-full-backward", "G_K=0 0; 0 0; 0 0", 2.2),  # looked for everywhere, and none found
    ],
)
def test_a_sheet_is_marked_in_the_time_of_forward(example: str, answer: str, limit: float, ratio) -> None:  # type: ignore[no-untyped-def]
    check, forward = (process("-m", "attncli", *words) for words in (("check", example, answer), ("forward", example)))
    ratio(check, forward, limit=limit, rounds=30)


def test_version(ratio) -> None:  # type: ignore[no-untyped-def]
    ratio(process("-m", "attncli", "--version"), process("-c", "import typer"), limit=1.2, rounds=30)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["forward", "--help"], ["examples", "--help"], []])
def test_what_a_light_command_does_not_import(words: list[str]) -> None:
    code = (
        "import sys; from attncli.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'numpy', 'sympy', 'pydantic', 'rich.console', 'zipfile'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_forward_imports_neither_pydantic_nor_sympy() -> None:
    code = (
        "import sys; from attncli.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'pydantic', 'sympy'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *A1], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
