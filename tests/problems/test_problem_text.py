"""The problem loader and the loss: any bytes and any structure are a problem or an error in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import attncli
from attncli.core.message import InputError
from attncli.problems import file
from attncli.problems.problem import Problem, run
from attncli.problems.source import array_in, matrix_from_file

FUZZ = settings(max_examples=200, deadline=None, derandomize=True, database=None)
TOML = 'model = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'

WORDS = st.sampled_from(
    [
        "attention", "self_attention", "embedding", "softmax", "atention", "rows", "columns", "1 2", "1 0; 0 1", "2 0; 0 4", "x", "", "sum(O)",
        "O[1,1]", "mse(O, T)", "true", "causal", "sqrt", "A", "G_O", "normal", "rounded", "carried", "wrong: why", "0 1", "-inf", "我爱你", "\x1b",
    ]
)  # fmt: skip
LEAVES = st.one_of(
    WORDS,
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.floats(),
    st.text(max_size=8),
    st.just([[1, 2]]),
    st.just(10**400),
)
KEYS = st.sampled_from(
    [
        "schema", "id", "model", "decimals", "source", "layout", "title", "prompt", "hint", "notice", "inputs", "labels", "settings", "gradient",
        "published", "published_how", "shapes", "contrast", "marking", "Q", "K", "V", "X", "E", "T", "text", "scores", "A", "O", "W_Q", "G_O",
        "loss", "causal", "mask", "keep", "scale", "softcap", "window", "eta", "vocabulary", "default", "en", "zh", "points", "query", "key",
        "random", "shape", "seed", "steps", "nonsense",
    ]
)  # fmt: skip
DATA = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=20,
)
PROBLEMS = st.dictionaries(KEYS, DATA, max_size=6).map(
    lambda extra: {"model": "attention", "inputs": {"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}} | extra
)


def loads(text: str, *, json: bool = False) -> Problem | None:
    """The problem, calculated if it can be; or None where it is refused in words."""
    try:
        problem = file.parse(text, json=json)
        run(problem)
    except InputError as error:
        assert 5 < len(str(error)) < 1500
        return None
    return problem


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    Path("fuzz.toml").write_bytes(data)
    with pytest.raises(InputError, match=r"^fuzz\.toml: "):
        attncli.load("fuzz.toml")


@FUZZ
@given(st.one_of(DATA, PROBLEMS))
def test_any_structure(data: object) -> None:
    try:
        problem = file.from_data(data)
        run(problem)
    except InputError as error:
        assert 5 < len(str(error)) < 1500
    if isinstance(data, dict) and data.get("nonsense") is None:
        loads(json.dumps(data), json=True)


@FUZZ
@given(st.lists(st.one_of(st.sampled_from([*TOML.splitlines(), "[settings]", "[gradient]", "[[inputs]]", "causal = true", "a.b = 1", 'G_O = "1 2"', 'loss = "sum(O)"', "[labels]", "key = [", "]", "{", '"""', "1 = 2", "= 1", "decimals = 0x10", "mask = [[0, -inf]]"]), st.text(max_size=12)), max_size=10).map("\n".join))  # fmt: skip
def test_any_lines(text: str) -> None:
    loads(text)


def test_a_good_problem_still_loads() -> None:
    problem = loads(TOML)
    assert problem is not None
    assert problem.decimals == 3


def test_numbers_of_files_keep_their_decimals() -> None:
    problem = file.parse(TOML.replace('"1 2"', "[[0.50, 2.0]]"))
    assert problem.inputs["Q"].decimals is not None
    assert problem.inputs["Q"].decimals.tolist() == [[2, 1]]
    problem = file.parse('{"model": "attention", "inputs": {"Q": [[0.50, "1/3"]]}}')
    assert problem.inputs["Q"].decimals is not None
    assert problem.inputs["Q"].decimals.tolist() == [[2, -1]]


def test_a_file_may_be_completed_by_options() -> None:
    """What a file lacks is said when it is calculated, not when it is read."""
    problem = file.parse('model = "attention"\ndecimals = { A = 2 }\n[inputs]\nQ = "1 2"\n')
    with pytest.raises(InputError, match="needs K"):
        attncli.forward(problem)


LOSS_PIECES = st.sampled_from(
    [
        *"+-*/[](),. 0123", "O", "A", "sum", "mse", "sum(O)", "mse(O, T)", "O[1,1]", "O[2,2]", "O[9,9]", "2*", "1/3*", "sqrt(2)*", "e^-1*",
        "inf*", "1/0*", "cross_entropy(", "T", "−", "×", "９", "²", "\x00", "L", "error", "__import__('os')",
    ]
)  # fmt: skip


@FUZZ
@given(st.one_of(st.text(max_size=30), st.lists(LOSS_PIECES, max_size=12).map("".join)))
@example("O[" + "1" * 5000 + ",1]")
@example("1" * 9000 + "*O[1,1]")
@example("O[1,1]+" * 1400)
@example("(" * 9000)
@example("+" * 9000)
@example("mse(O, L)")
def test_any_loss(loss: str) -> None:
    problem = attncli.problem(inputs={"Q": "1 2; 3 4", "K": "1 0; 0 1", "V": "2 0; 0 4"}, gradient={"G_O": "1 2; 3 4"})
    problem = problem.changed(upstream=None, loss=loss, extras={"T": problem.inputs["Q"]})
    try:
        result = attncli.backward(problem)
    except InputError as error:
        assert len(str(error)) < 500
    else:
        assert np.isfinite(result["G_Q"]).all()


@pytest.fixture(autouse=True)
def _there(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.getbasetemp())


@FUZZ
@given(st.binary(max_size=120), st.integers(0, 140), st.booleans())
def test_damaged_arrays(noise: bytes, at: int, zipped: bool) -> None:
    """A good file with noise somewhere in it is an array, or is refused."""
    name = "damaged.npz" if zipped else "damaged.npy"
    (np.savez if zipped else np.save)(name, np.arange(6.0).reshape(2, 3))
    data = bytearray(Path(name).read_bytes())
    data[at : at + len(noise)] = noise
    Path(name).write_bytes(data)
    try:
        assert array_in(name)[1] is not None
        matrix_from_file(name)
    except InputError as error:
        assert len(str(error)) < 500


FEED = {"X": "1 2", "W_1": "1 0; 0 1", "W_2": "1 0; 0 1"}
BARE = {"E": "1 2; 0 1; 1 1", "T": "0 1", "W_Q": "1; 0", "W_K": "0; 1", "W_V": "1; 1", "W_out": "1 0 2"}


@pytest.mark.parametrize(
    ("model", "inputs", "step"),
    [
        ("feed_forward", FEED, "slope"),
        ("feed_forward", FEED, "G_hidden"),
        ("gpt", BARE, "weighted"),
        ("gpt", BARE, "W_out_new"),
        ("gpt", BARE, "E_new"),
        ("attention", {"Q": "1 2", "K": "1 2; 0 1", "V": "1; 0"}, "L"),
    ],
)
def test_a_file_without_a_gradient_may_name_what_comes_back(model: str, inputs: dict[str, str], step: str) -> None:
    """The gradient or the loss comes from the command line; every step that it brings has a name already."""
    data = {"model": model, "inputs": inputs, "decimals": {"default": 3, step: 4}}
    assert file.from_data(data, check=True).decimals_of(step) == 4
    with pytest.raises(InputError, match="the step"):
        file.from_data({**data, "decimals": {"default": 3, f"{step}s": 4}}, check=True)
