"""-o, of every command that has it: its own file is written again, an input never, somebody else's only with --force."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from harness import on_terminal, refused, run

FORWARD = ("forward", "-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4")
#: A command, the same with other numbers, and the endings it writes.
COMMANDS = {
    "forward": (FORWARD, ("forward", "-Q", "2 1", *FORWARD[3:]), "json md tex csv npz html svg txt xlsx"),
    "backward": ((*FORWARD, "--upstream", "1 2")[1:], (*FORWARD, "--upstream", "2 1")[1:], "json md txt"),
    "examples": (("run", "a1-pronoun"), ("run", "a1-pronoun", "--decimals", "5"), "json md html txt"),
    "why": (("a1-pronoun", "O", "1", "2"), ("a1-pronoun", "O", "1", "2", "--depth", "1"), "txt"),
    "check": (("a1-pronoun", "--answer", "A=1 2"), ("a1-pronoun", "--answer", "A=0.330 0.670"), "json md txt"),
    "compare": (("mha", "mqa"), ("mha", "gqa"), "json md csv txt"),
    "lab": (("softmax",), ("softmax", "--seed", "2"), "json md csv txt"),
    "train": (("abab", "--steps", "2"), ("abab", "--steps", "3"), "json md csv txt"),
}
CASES = [(name, ending) for name, (_, _, endings) in COMMANDS.items() for ending in endings.split()]
FOREIGN = b"notes of my own\n" * 3


def words(name: str, which: int, target: Path, *more: str) -> list[str]:
    given = [word for word in COMMANDS[name][which] if word != name]
    format = (
        ["--format", {"json": "json", "md": "markdown", "txt": "table"}[target.suffix[1:]]] if name == "check" else []
    )
    return [name, *given, *format, "-o", str(target), *more]


@pytest.mark.parametrize(("name", "ending"), CASES)
def test_its_own_file_again_and_nobody_elses(name: str, ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"out.{ending}"
    for which in (0, 1, 0):
        ran = run(*words(name, which, target))
        assert (ran.status in (0, 1), ran.out, ran.err) == (True, "", "")
    first = target.read_bytes()
    target.write_bytes(FOREIGN)
    refused(words(name, 0, target), f"out.{ending}: a file is there that attncli did not write", "--force")
    assert target.read_bytes() == FOREIGN
    assert run(*words(name, 0, target, "--force")).status in (0, 1)
    assert target.read_bytes() == first
    target.write_bytes(b"")  # nothing is lost there
    assert run(*words(name, 0, target)).status in (0, 1)


def test_what_was_written_for_something_else_is_not_written_over(tmp_path: Path) -> None:
    saved, arrays = tmp_path / "saved.npz", tmp_path / "arrays.npz"
    assert run("train", "abab", "--steps", "2", "--save", str(saved)).status == 0
    assert run("train", "abab", "--steps", "3", "--save", str(saved)).status == 0
    refused([*FORWARD, "-o", str(saved)], "saved.npz")
    np.savez(arrays, A=np.eye(2))
    refused([*FORWARD, "-o", str(arrays)], "arrays.npz")
    refused(["train", "abab", "--steps", "2", "--save", str(arrays)], "--save", "arrays.npz")
    assert run(*FORWARD, "-o", str(tmp_path / "run.npz")).status == 0
    refused(["train", "abab", "--steps", "2", "--save", str(tmp_path / "run.npz")], "--save", "run.npz")


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    problem = 'model = "attention"\nschema = 1\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'
    Path("p.toml").write_text(problem, "utf-8")
    Path("q.txt").write_text("1 2", "utf-8")
    Path("a.json").write_text('{"answers": {"A": "1 2"}}', "utf-8")
    np.savez("q.npz", Q=np.array([[1.0, 2.0]]))
    assert run("train", "abab", "--steps", "2", "--save", "t.npz").status == 0
    os.link("p.toml", "hard.toml")
    Path("soft.toml").symlink_to("p.toml")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    for target in ("p.toml", "./p.toml", "hard.toml", "soft.toml", str(tmp_path / "p.toml")):
        refused(["forward", "p.toml", "--format", "table", "-o", target, *force], "one of the inputs")
        refused(["check", "p.toml", "a.json", "-o", target, *force], "one of the inputs")
    inputs = {
        "a.json": ["check", "p.toml", "a.json"],
        "q.txt": ["forward", "-Q", "@q.txt", *FORWARD[3:]],
        "q.npz": ["forward", "--set", "Q=@q.npz:Q", *FORWARD[3:]],
        "t.npz": ["train", "--load", "t.npz", "--steps", "1", "--format", "csv"],
    }
    for target, argv in inputs.items():
        refused([*argv, "-o", target, *force], "one of the inputs")
    refused(["train", "--load", "t.npz", "--steps", "1", "--save", "t.npz", *force], "--save", "one of the inputs")
    refused(["generate", "t.npz", "a", "-o", "t.npz", "--format", "csv", *force], "one of the inputs")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_fault_of_ours_is_one_line_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("<object at 0x7f0012ab>")

    monkeypatch.setattr("attncli.problems.request.run", fail)
    monkeypatch.setattr("attncli.problems.request.calculated", fail)
    said = refused(
        FORWARD, "a fault of attncli itself", "KeyError", "test_outputs.py:", "Version", "attncli forward -Q '1 2'"
    )
    assert "0x7f" not in said
    with pytest.raises(KeyError):
        run("--debug", *FORWARD)


def test_what_cannot_be_read_is_not_said_to_be_unwritable(tmp_path: Path) -> None:
    said = refused(["forward", str(tmp_path)], "folder")
    assert "written" not in said


@pytest.mark.parametrize(
    "words", [("check", "a1-pronoun", "A=0.269 0.731"), ("compare",), ("why", "a1-pronoun", "O", 1, 1)]
)
def test_a_file_has_no_colours_though_the_screen_has(words: tuple[object, ...], tmp_path: Path) -> None:
    here, there = tmp_path / "on-terminal.txt", tmp_path / "in-a-pipe.txt"
    on_terminal(*words, "-o", here, columns=60)
    run(*words, "-o", there)
    assert here.read_bytes() == there.read_bytes() and b"\x1b" not in here.read_bytes()
