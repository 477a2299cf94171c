"""The READMEs: their set-up commands, and each as complete as the other. Outputs and picture: .ci/run, which runs the
scripts beside this file."""

from __future__ import annotations

import re

import outputs
import pytest

from attncli.cli.main import COMMANDS


def text(name: str) -> str:
    return (outputs.ROOT / name).read_text(encoding="utf-8")


def test_set_up_is_two_commands_and_the_same_in_both() -> None:
    blocks = [re.findall(r"^```sh\n(.*?)^```$", text(name), re.MULTILINE | re.DOTALL) for name in outputs.READMES]
    assert blocks[0] == blocks[1]
    first, second = blocks[0][0].splitlines()
    assert first.endswith('attncli forward -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"')
    assert second.endswith("pytest -n auto")


def test_both_are_equally_complete() -> None:
    english, chinese = (text(name) for name in outputs.READMES)
    for pattern in (r"^(#+) ", r"^```(\w+)", r"^(\|) ", r"^- "):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE)
    commands = [re.findall(r"^(?:\$|>>>) (.*)", body, re.MULTILINE) for body in (english, chinese)]
    # What is in quotes may be in the language of the reader.
    commands = [[re.sub(r"'[^']*'|\"[^\"]*\"", "", command) for command in found] for found in commands]
    assert commands[0] == commands[1]


def test_files_that_are_linked_are_there() -> None:
    for name in outputs.READMES:
        for target in re.findall(r"\]\(([^)#]+)\)", text(name)):
            assert (outputs.ROOT / target).exists(), target


@pytest.mark.parametrize("name", outputs.READMES)
def test_every_command_is_shown(name: str) -> None:
    shown = text(name)
    parts = [f"examples {part}" for part in ("list", "run", "show", "verify")]
    assert [command for command in (*COMMANDS, *parts) if f"attncli {command}" not in shown] == []


class TestChecker:
    """What the checker takes for the same, and what not."""

    def test_left_out_lines(self) -> None:
        assert outputs.agrees("a\n…\nd\n", "a\nb\nc\nd\n")
        assert outputs.agrees("…\nd\n", "d\n")
        assert not outputs.agrees("a\n…\nd\n", "a\nb\nc\n")
        assert not outputs.agrees("a\nb\n", "a\nb\nc\n")

    def test_rounding_left_over(self) -> None:
        assert outputs.agrees("error 4.8e-12\n", "error 5.1e-11\n")
        assert not outputs.agrees("error 4.8e-12\n", "error 0.3\n")

    def test_update_keeps_what_is_left_out(self) -> None:
        assert outputs.refreshed("one\n…\nthree\n", "one!\ntwo\nthree!\n") == "one!\n…\nthree!\n"
        assert outputs.refreshed("one\n…\n", "one!\ntwo\n") == "one!\n…\n"
        assert outputs.refreshed("one\n", "one!\ntwo\n") == "one!\ntwo\n"

    def test_blocks_are_replayed(self) -> None:
        old = "```console\n$ echo one\n$ echo two; false\nTWO\n```\n\n```pycon\n>>> 1 + 1\n3\n>>> for x in 'ab':\n...     print(x)\n```\n"
        new = "```console\n$ echo one\none\n$ echo two; false\ntwo\n```\n\n```pycon\n>>> 1 + 1\n2\n>>> for x in 'ab':\n...     print(x)\na\nb\n```\n"
        assert outputs.replayed(old, "en_US.UTF-8") == new
        assert outputs.replayed(new, "en_US.UTF-8") == new
