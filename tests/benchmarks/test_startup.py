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
    return lambda: subprocess.run([sys.executable, *words], env=environment, check=True, stdout=subprocess.DEVNULL)


def test_forward_on_the_first_exercise(ratio) -> None:  # type: ignore[no-untyped-def]
    imports = process("-c", "import numpy, typer, rich.table, rich.console")
    ratio(process("-m", "attncli", *A1), imports, limit=1.15, rounds=30)


def test_version(ratio) -> None:  # type: ignore[no-untyped-def]
    ratio(process("-m", "attncli", "--version"), process("-c", "import typer"), limit=1.2, rounds=30)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["forward", "--help"], ["examples", "--help"], []])
def test_what_a_light_command_does_not_import(words: list[str]) -> None:
    code = (
        "import sys; from attncli.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'numpy', 'sympy', 'pydantic', 'rich.console'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else 0)"
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
