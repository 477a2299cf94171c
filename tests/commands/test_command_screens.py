"""Terminals, pipes, colours, and text that looks like markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Ran, elsewhere, on_terminal, once, run
from rich.cells import cell_len
from typed import A1, SELF

from attncli.render import formats

FORWARD = ("forward", *SELF, "--causal", "--step", "A")
#: Foreground or background colours, as opposed to bold, italic or dim.
COLOURED = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
BACKGROUND = re.compile(r"\x1b\[(?:[0-9]+;)*4[0-8][0-9;]*m")


def plain(text: str) -> str:
    """Without escape sequences and the spaces before them at line ends."""
    return "\n".join(line.rstrip() for line in COLOUR.sub("", text).split("\n"))


def test_pipe_has_no_escape_sequences() -> None:
    assert "\x1b" not in once(*FORWARD).out


def test_force_color_in_a_pipe() -> None:
    text = once(*FORWARD, FORCE_COLOR=1).out
    assert COLOURED.search(text)
    assert plain(text) == once(*FORWARD).out


def test_weights_are_shaded_by_size() -> None:
    lines = {line for line in once(*FORWARD, FORCE_COLOR=1).out.splitlines() if BACKGROUND.search(line)}
    assert len(lines) == 3
    third = next(line for line in lines if "0.503" in line)
    shades = re.findall(r"(\x1b\[[0-9;]*m)(?:0\.248|0\.503)", third)
    assert len(shades) == 3 and shades[0] == shades[1] != shades[2]
    assert not BACKGROUND.search(once("forward", *A1, "--step", "O", FORCE_COLOR=1).out)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_terminal_gives_width_and_colour(columns: int) -> None:
    done = on_terminal("forward", *A1, columns=columns)
    assert done.status == 0
    assert COLOURED.search(done.out)
    assert plain(done.out) == once("forward", *A1, COLUMNS=columns).out
    assert max(cell_len(line) for line in plain(done.out).splitlines()) <= columns


def test_columns_stands_above_the_terminal() -> None:
    assert plain(on_terminal("forward", *A1, columns=120, COLUMNS=50).out) == once("forward", *A1, COLUMNS=50).out


def test_no_color_on_a_terminal() -> None:
    done = on_terminal(*FORWARD, NO_COLOR=1)
    assert not COLOURED.search(done.out)
    assert plain(done.out) == once(*FORWARD).out


def test_dumb_terminal() -> None:
    done = on_terminal(*FORWARD, TERM="dumb")
    assert "\x1b" not in done.out
    assert done.out == once(*FORWARD).out


@pytest.mark.parametrize("columns", ["0", "-3", "wide", "", "²", "1" * 400])
def test_a_width_that_is_none(columns: str) -> None:
    done = once(*FORWARD, COLUMNS=columns)
    assert done.status == 0
    if len(columns) < 9:
        assert done.stdout == once(*FORWARD).stdout


def test_terminal_without_a_size() -> None:
    assert plain(on_terminal(*FORWARD, columns=0).out) == once(*FORWARD).out


def test_npz_is_written_into_a_pipe() -> None:
    assert once(*FORWARD, "--format", "npz").stdout.startswith(b"PK")


def test_a_message_goes_to_standard_error_alone() -> None:
    done = once("forward", "-Q", "1 x", "-K", "1 0", "-V", "1")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("attncli: ") and done.err.count("\n") == 1


def test_markup_is_only_text(tmp_path: Path) -> None:
    title, tokens = "[bold]Who[/bold] [1,2] :smile: [link=x]", ("[red]a[/red]", "[0]", "\\[b]")
    names = ", ".join(f"'{token}'" for token in tokens)
    (tmp_path / "marked.toml").write_text(
        f"schema = 1\nmodel = 'attention'\n[title]\nen = '{title}'\n"
        "[inputs]\nQ = '1 2; 3 4; 5 6'\nK = '1 0; 0 1; 1 1'\nV = '2; 3; 4'\n"
        f"[labels]\nquery = [{names}]\nkey = [{names}]\n",
        encoding="utf-8",
    )
    for changes in ({}, {"FORCE_COLOR": 1}):
        done = once("forward", "marked.toml", folder=tmp_path, **changes)
        assert done.status == 0, done.err
        text = plain(done.out)
        assert text.startswith(title)
        assert all(f"│ {token}" in text for token in tokens)


@pytest.fixture(scope="module")
def of_other_processes() -> list[list[Ran]]:
    """Every format, from two processes with other orders of sets."""
    typed = [("backward", "b6-full-backward", "--format", format) for format in formats()]
    return [elsewhere(*typed, PYTHONHASHSEED=seed, SOURCE_DATE_EPOCH=None) for seed in (1, 2)]


@pytest.mark.parametrize("format", formats())
def test_two_runs_give_the_same_bytes(format: str, of_other_processes: list[list[Ran]], tmp_path: Path) -> None:
    first, again = (found[formats().index(format)] for found in of_other_processes)
    assert first.status == 0 and first.stdout
    assert first.stdout == again.stdout
    file = tmp_path / f"trace.{format}"
    assert run("backward", "b6-full-backward", "--format", format, "-o", file).status == 0
    assert file.read_bytes() == first.stdout
