"""Good input of every kind works: being strict with bad input must not break it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run

import attncli

Q, K, V = ["-Q", "1 2"], ["-K", "1 0; 0 1"], ["-V", "2 0; 0 4"]
QKV = [*Q, *K, *V]
TOML = 'model = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'


def good(*argv: str, stdin: bytes = b"") -> str:
    """Standard output of a command that works."""
    status, out, err = run(*argv, stdin=stdin)
    assert (status, err) == (0, ""), err
    return out


def steps(*argv: str, stdin: bytes = b"") -> dict[str, Any]:
    """The values of all steps, by id."""
    return {step["id"]: step["value"] for step in json.loads(good(*argv, "--format", "json", stdin=stdin))["steps"]}


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["1 2", "1,2", "1, 2", "[1,2]", "[[1,2]]", "1 2;", "1 2\n", " 1   2 ", "[1 2]", "[[1,2],]", r"\begin{bmatrix}1&2\end{bmatrix}", r"\begin{pmatrix} 1 & 2 \\ \end{pmatrix}", "$1 2$", "１，２", "1.0 2.0", "1e0 2E0", "2/2 √4", "+1 +2", "1 (1+1)", "1\t2", "\ufeff1 2"],
)  # fmt: skip
def test_every_notation(text: str) -> None:
    assert steps("forward", "-Q", text, *K, *V)["scores"] == [[1.0, 2.0]]


def test_every_source() -> None:
    row = np.array([[1.0, 2.0]])
    np.save("q.npy", row)
    np.save("q32.npy", row.astype(np.float32))
    np.save("whole.npy", row.astype(np.int64))
    np.save("fortran.npy", np.asfortranarray(row))
    np.savez("two.npz", Q=row, K=np.eye(2))
    np.savez("one.npz", row)
    np.savez_compressed("packed.npz", row)
    contents = {
        "q.txt": "1 2\n", "q.csv": "1,2\n", "quoted.csv": '"1","2"\n', "spaces.csv": "1 2\n", "q.json": "[[1, 2]]", "flat.json": "[1, 2]",
        "text.json": '"1 2"', "entries.json": '[["1", "sqrt(4)"]]', "bom.txt": "\ufeff1 2", "latex.tex": r"\begin{bmatrix}1&2\end{bmatrix}",
        "windows.csv": "1,2\r\n", "plain": "1 2", "q.TXT": "1 2",
    }  # fmt: skip
    for name, content in contents.items():
        Path(name).write_text(content, "utf-8", newline="")
    for name in ("q.npy", "q32.npy", "whole.npy", "fortran.npy", "two.npz:Q", "one.npz", "packed.npz", *contents):
        assert steps("forward", "-Q", f"@{name}", *K, *V)["scores"] == [[1.0, 2.0]], name
    assert steps("forward", "-Q", "-", *K, *V, stdin=b"1 2\n")["scores"] == [[1.0, 2.0]]
    assert steps("forward", *Q, "-K", "@two.npz:K", *V)["scores"] == [[1.0, 2.0]]


def test_negative_numbers_after_every_option() -> None:
    assert steps("forward", "-Q", "-1.5", "-K", "-2", "-V", "-1")["scores"] == [[3.0]]
    assert steps("forward", *QKV, "--mask", "-1.5 2")["masked"]
    assert steps("forward", "--set", "scores=-1.5 2", "--model", "softmax")["A"]
    assert steps("backward", *QKV, "--upstream", "-1.5 1")["G_V"]
    assert steps("forward", *QKV, "--scale", "-0.5")["scaled"] == [[-0.5, -1.0]]


@pytest.mark.parametrize(
    "setting",
    ["keep=1 0", "keep=true false", "keep=[true, false]", "keep=TRUE no", "keep=[[1, 0]]", "hide=0 1", "hide=false yes", "mask=0 -inf", "window=[1, 0]", "window=0, 0", "causal=true", "causal=yes", "causal=on"],
)  # fmt: skip
def test_ways_to_hide_the_second_key(setting: str) -> None:
    assert steps("forward", *QKV, "--set", setting)["A"] == [[1.0, 0.0]]


def test_settings() -> None:
    assert steps("forward", *QKV, "--set", "scale=none")["A"] == steps("forward", *QKV, "--scale", "none")["A"]
    assert steps("forward", *QKV, "--set", "scale=1/2")["scaled"] == [[0.5, 1.0]]
    assert steps("forward", *QKV, "--scale", "sqrt(4)")["scaled"] == [[2.0, 4.0]]
    assert "capped" in steps("forward", *QKV, "--set", "softcap=2.5")
    assert "masked" in steps("forward", *QKV, "--causal")
    assert steps("forward", *QKV, "--set", "causal=false")
    assert steps("forward", *QKV, "--mask", "0 0")
    assert steps("forward", *QKV, "--set", "max_over=all")
    assert steps("forward", *QKV, "--set", "window=-1 -1")
    assert steps("forward", *QKV, "--set", "window=[100000000000000000000, 0]")
    Path("marks.txt").write_text("true false")
    np.save("marks.npy", np.array([[True, False]]))
    Path("marks.json").write_text("[true, false]")
    Path("mask.txt").write_text("0 -inf")
    for name in ("marks.txt", "marks.npy", "marks.json"):
        assert steps("forward", *QKV, "--set", f"keep=@{name}")["A"] == [[1.0, 0.0]], name
    assert steps("forward", *QKV, "--mask", "@mask.txt")["A"] == [[1.0, 0.0]]
    assert steps("forward", *QKV, "--mask", "-", stdin=b"0 -inf")["A"] == [[1.0, 0.0]]
    assert steps("forward", *QKV, "--set", "keep=-", stdin=b"true false")["A"] == [[1.0, 0.0]]


def test_the_model_is_found_by_the_inputs() -> None:
    assert "O" in steps("forward", *QKV)
    own = ["--set", "X=1 2; 3 4", "--set", "W_Q=1 0; 0 1", "--set", "W_K=1 0; 0 1", "--set", "W_V=1 0; 0 1"]
    assert steps("forward", *own)["Q"] == [[1.0, 2.0], [3.0, 4.0]]
    assert list(steps("forward", "--set", "scores=1 2"))[-1] == "A"
    assert steps("forward", "--set", "A=0.5 0.5", "--set", "V=2; 4")["O"] == [[3.0]]
    assert steps("forward", "--set", "E=1 2; 3 4", "--set", "T=1 0 1")["X"] == [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    assert "O" in steps("forward", *own[2:], "--set", "E=1 2; 3 4", "--set", "T=1 0")
    assert steps("forward", "-Q", "1 | 2", "-K", "1 | 1", "-V", "3 | 4")["O"] == [[[3.0]], [[4.0]]]


@pytest.mark.parametrize("vocabulary", ["我爱你", "我 爱 你", " 我爱你 "])
def test_text_with_a_vocabulary(vocabulary: str) -> None:
    table = ["forward", "--set", "E=1 2; 3 4; 5 6"]
    assert steps(*table, "--set", "text=你我", "--set", f"vocabulary={vocabulary}")["X"] == [[5.0, 6.0], [1.0, 2.0]]


def test_text_with_a_corpus_and_words() -> None:
    table = ["forward", "--set", "E=1 2; 3 4; 5 6"]
    assert steps(*table, "--set", "text=你我", "--set", "corpus=我爱你我")["X"] == [[5.0, 6.0], [1.0, 2.0]]
    assert steps(*table, "--set", "text=b a", "--set", "vocabulary=a b c", "--set", "split=words")["X"] == [
        [3.0, 4.0],
        [1.0, 2.0],
    ]
    assert steps(*table, "--set", "text=我x", "--set", "vocabulary=我爱?", "--set", "unknown=?")["X"] == [
        [1.0, 2.0],
        [5.0, 6.0],
    ]


def test_losses_and_gradients() -> None:
    backward = ["backward", *QKV]
    ones = steps(*backward, "--upstream", "1 1")
    assert steps(*backward, "--loss", "sum(O)")["G_V"] == ones["G_V"]
    assert steps(*backward, "--loss", "O[1,1] + O[1,2]")["G_V"] == ones["G_V"]
    assert steps(*backward, "--loss", "O[1，1] ＋ 1*O[1,2]")["G_V"] == ones["G_V"]
    for loss in (
        "-O[1,1]",
        "− O[1,1]",
        "1/3*O[1,1] - √2*O[1,2]",
        "O[1,1]/3",
        "(1+2)*O[1,1]",
        "1e-3*O[1,1]",
        "e^-1*O[1,2]",
    ):
        assert steps(*backward, "--loss", loss)["G_Q"]
    assert steps(*backward, "--loss", "mse(O, target)", "--set", "target=1 2")["L"]
    assert steps(*backward, "--loss", "mse( O , Y )", "--set", "Y=1 2")["L"]
    table = ["backward", "--set", "E=1 2; 3 4", "--set", "T=1 0", "--set", "eta=1/2", "--upstream", "1 1; 1 1"]
    assert steps(*table)["E_new"] == [[0.5, 1.5], [2.5, 3.5]]
    note = "The gradients were checked before rounding"
    assert note not in good(*backward, "--loss", "sum(O)", "--verify")
    assert note in " ".join(good(*backward, "--loss", "sum(O)", "--verify", "--carry").split())


@pytest.mark.parametrize("command", ["forward", "backward"])
def test_an_example_with_options(command: str) -> None:
    upstream = ["--upstream", "1 2"] if command == "backward" else []
    plain = steps(command, "a1-pronoun", *upstream)
    assert plain["scores"] == [[1.0, 2.0]]
    assert steps(command, "a1-pronoun", "-Q", "2 1", *upstream)["scores"] == [[2.0, 1.0]]
    assert steps(command, "a1-pronoun", "--set", "K=0 1; 1 0", *upstream)["scores"] == [[2.0, 1.0]]
    assert steps(command, "a1-pronoun", "--causal", *upstream)["A"] == [[1.0, 0.0]]
    assert "scaled" not in steps(command, "a1-pronoun", "--scale", "none", *upstream)
    assert good(command, "a1-pronoun", "--decimals", "5", "--carry", "--rounding", "even", *upstream)
    assert good(
        command, "a1-pronoun", "--layout", "columns", "-Q", "1; 2", *(["--upstream", "1; 2"] if upstream else [])
    )
    for format in ("table", "json", "markdown", "latex", "csv", "html", "svg"):
        assert good(command, "a1-pronoun", "--format", format, *upstream)


def test_why_with_problems() -> None:
    assert good("why", "A", "1", "2", *QKV)
    assert good("why", "a1-pronoun", "A", "1", "2")
    assert good("why", "a1-pronoun", "O", "1", "1", "-Q", "2 1", "--depth", "2")
    assert good("why", "G_Q", "1", "1", *QKV, "--loss", "sum(O)")
    assert good("why", "G_K", "2", "1", "--upstream", "1 2", *QKV)
    Path("p.toml").write_text(TOML)
    assert good("why", "p.toml", "A", "1", "2")


def test_problem_files() -> None:
    Path("p.toml").write_text(TOML)
    assert steps("forward", "p.toml")["scores"] == [[1.0, 2.0]]
    assert steps("forward", "-", stdin=TOML.encode())["scores"] == [[1.0, 2.0]]
    data = {"schema": 1, "model": "attention", "inputs": {"Q": [[1, "2"]], "K": [[1, 0], [0, 1]], "V": "2 0; 0 4"}}
    Path("p.json").write_text(json.dumps(data))
    Path("noending").write_text(json.dumps(data))
    assert steps("forward", "p.json")["scores"] == steps("forward", "noending")["scores"] == [[1.0, 2.0]]
    assert steps("forward", "-", stdin=json.dumps(data).encode())["scores"] == [[1.0, 2.0]]
    # A file that needs options to be whole.
    Path("part.toml").write_text('model = "attention"\n[inputs]\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n')
    assert steps("forward", "part.toml", *Q)["scores"] == [[1.0, 2.0]]
    extra = "decimals = { default = 2, A = 4, G_Q = 5 }\n" + TOML
    extra += '[settings]\ncausal = true\nkeep = [[true, true]]\nwindow = [5, -1]\nsoftcap = 2.5\nscale = "1/2"\n'
    extra += '[published]\nA = "1.0 ?"\n[published_how]\nA = "rounded"\n[shapes]\nO = "1×2"\n[marking]\npoints = { A = 2, G_K = 1 }\n'
    extra += '[labels]\nquery = ["it"]\nkey = ["apple", "bag"]\n'
    Path("full.toml").write_text(extra)
    assert good("forward", "full.toml")
    Path("loss.toml").write_text(TOML + '[gradient]\nloss = "mse(O, target)"\ntarget = [1, 2]\n')
    assert steps("backward", "loss.toml")["L"]
    Path("upstream.toml").write_text(
        TOML + "[gradient]\nG_O = [[1, 2]]\n[marking]\npoints = { G_Q = 1, weighted = 1 }\n"
    )
    assert steps("backward", "upstream.toml")["G_Q"]
    assert (
        steps("backward", "upstream.toml", "--loss", "sum(O)")["G_V"]
        == steps("backward", *QKV, "--upstream", "1 1")["G_V"]
    )


def test_random_inputs_of_a_file() -> None:
    text = TOML.replace('"1 2"', '{ random = "normal", shape = [3, 2], seed = 1 }')
    Path("r.toml").write_text(text)
    assert len(steps("forward", "r.toml")["scores"]) == 3


def test_outputs() -> None:
    for name in (
        "t.md",
        "t.json",
        "t.tex",
        "t.csv",
        "t.npz",
        "t.html",
        "t.svg",
        "t.txt",
        "t.unknown",
        "plain",
        "ü 1.md",
    ):
        assert good("forward", *QKV, "-o", name) == ""
        assert Path(name).stat().st_size, name
    Path("link.md").symlink_to("target.md")
    assert good("forward", *QKV, "-o", "link.md") == ""
    assert Path("link.md").is_symlink()
    assert Path("target.md").read_bytes() == Path("t.md").read_bytes()
    assert good("forward", *QKV, "-o", "/dev/null") == ""
    long = "x" * 250 + ".md"
    assert good("forward", *QKV, "-o", long) == ""
    assert not list(Path().glob(".attncli-*"))


def test_options_that_may_be_given_several_times() -> None:
    assert list(steps("forward", *QKV, "--step", "A", "--step", "O")) == ["A", "O"]
    assert good("forward", *QKV, "--causal", "--causal")
    assert good("--lang", "en", "forward", *QKV)


def test_python_takes_arrays_lists_and_text() -> None:
    for value in ("1 2", [1, 2], [[1, 2]], [[1.0, "2"]], ((1, 2),), np.array([[1, 2]]), np.array([[1, 2]], dtype=np.float32), [np.array([1, 2])]):  # fmt: skip
        problem = attncli.problem(inputs={"Q": value, "K": np.eye(2), "V": "2 0; 0 4"}, settings={"causal": np.True_})
        assert attncli.forward(problem)["scores"].tolist() == [[1.0, 2.0]]
    problem = attncli.problem(
        inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"keep": np.array([[True, False]]), "softcap": np.float64(2), "window": (3, 4), "scale": np.int64(2)},
    )
    assert attncli.forward(problem)["A"].tolist() == [[1.0, 0.0]]
