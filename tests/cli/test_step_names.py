"""What people call a step: the id that is meant, or an error that lists the steps; never a guess."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from harness import refused, run
from hypothesis import given
from hypothesis import strategies as st

from attncli.core.message import InputError
from attncli.problems import library
from attncli.problems.names import WORDS, Names, means_gradient

ATTENTION = Names(library.load("a1-pronoun").graph())
EMBEDDED = Names(library.load("b6-full-backward").graph())
DECODER = Names(library.load("e9-decoder-block").graph())
GPT = Names(library.load("f2-gpt-block").graph())
NORM = Names(library.load("e3-layer-norm").graph())


@pytest.mark.parametrize(
    ("names", "written", "id"),
    [
        (ATTENTION, "scores S s SCORES Scores attn_scores 得分 分数 注意力得分 1 step_1 第1步 #1", "scores"),
        (ATTENTION, "scaled S_scaled S_{scaled} 缩放 缩放后的得分 2", "scaled"),
        (
            ATTENTION,
            "A a P weights Weights attention_weights attn-weights attn_probs 权重 注意力权重 权重矩阵 7 7.",
            "A",
        ),
        (ATTENTION, "O o output Output 输出 context ctx 8", "O"),
        (ATTENTION, "row_max m RowMax 最大值 3", "row_max"),
        (EMBEDDED, "G_A g_a dA dP ∂L/∂A dL/dA A.grad grad_A G_{A} A的梯度 权重的梯度 ∇A", "G_A"),
        (EMBEDDED, "G_W_Q G_{W_Q} dW_Q W_Q.grad g_w_q", "G_W_Q"),
        (EMBEDDED, "G_scores dS dscores 得分的梯度", "G_scores"),
        (EMBEDDED, "embedding_table 嵌入表", "E"),
        (DECODER, "self.A SELF.A self_weights self/weights 自注意力权重", "self.A"),
        (DECODER, "cross.G_A cross.dA 交叉注意力权重的梯度", "cross.G_A"),
        (DECODER, "ffn.hidden hidden 隐藏层", "ffn.hidden"),
        (GPT, "A weights 权重 layer1.self.weights", "layer1.self.A"),
        (GPT, "loss L 损失", "L"),
        (NORM, "mean μ mu 均值", "mean"),
        (NORM, "variance σ² \\sigma^2 方差", "variance"),
        (NORM, "std σ 标准差", "std"),
    ],
)
def test_a_step_under_every_name(names: Names, written: str, id: str) -> None:
    assert {
        word: names.find(word.replace("/", " ") if "self/" in word else word) for word in written.split()
    } == dict.fromkeys(written.split(), id)


@pytest.mark.parametrize(
    ("names", "word", "ids"),
    [
        (DECODER, "weights", ["self.A", "cross.A"]),
        (DECODER, "得分", ["self.scores", "cross.scores"]),
        (DECODER, "output", ["self.output", "cross.output", "norm3.Y"]),
        (GPT, "softmax", ["layer1.self.A", "loss.P"]),
    ],
)
def test_what_may_mean_several_lists_them(names: Names, word: str, ids: list[str]) -> None:
    assert names.find(word) is None
    with pytest.raises(InputError) as error:
        names.resolve(word)
    assert str(error.value) == f"The step “{word}” may mean {', '.join(ids)}. Write one of them."


def test_what_is_asked_for_decides_between_several() -> None:
    graph = library.load("a9-causal-mask").graph()
    assert Names(graph).find("掩码") is None
    assert Names(graph, ["M", "A"]).find("掩码") == "M"
    assert Names(graph, ["masked"]).find("mask") == "masked"


@pytest.mark.parametrize(
    "word", ["", " ", "foo", "d_k", "99", "0", "掩码", "G_A", "dA", "A A", "{}", "的", "x" * 500, "step"]
)
def test_what_means_nothing_lists_the_steps(word: str) -> None:
    assert ATTENTION.find(word) is None
    with pytest.raises(InputError) as error:
        ATTENTION.resolve(word)
    for id in ATTENTION.graph.steps:
        assert id in str(error.value)
    assert len(str(error.value)) < 400


@given(st.text(max_size=12))
def test_any_text_means_a_step_or_nothing(word: str) -> None:
    for names in (ATTENTION, DECODER):
        assert set(names.meant(word)) <= {*names.graph.steps, *names.graph.inputs}


def test_every_id_and_every_symbol_of_one_step_means_it() -> None:
    for id in library.ids():
        names = Names(library.load(id).graph())
        every = [*names.graph.steps, *names.graph.inputs]
        assert [names.find(one) for one in every] == every
        for one in every:
            symbol = names.graph.symbol(one)
            assert symbol in every or one in names.meant(symbol)
            lower = one.lower()  # m is the symbol of row_max, whatever M is
            assert one in names.meant(lower) or lower in (*every, *map(names.graph.symbol, every))


def test_words_stand_once_for_a_step() -> None:
    for words in WORDS.values():
        every = words.split(", ")
        assert len(set(every)) == len(every)


def test_what_is_written_as_a_gradient() -> None:
    assert all(map(means_gradient, ["G_A", "self.G_A", "dA", "∂L/∂A", "A.grad", "A 的梯度", "grad A"]))
    assert not any(map(means_gradient, ["A", "deviation", "scores", "dots", "d_k", "G", "得分"]))


def test_step_and_why_take_them_too() -> None:
    given = ("-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4")
    for name in ("weights", "权重", "a", "P", "7", "step 7"):
        assert run("forward", *given, "--step", name) == run("forward", *given, "--step", "A")
        assert run("why", name, "1", "2", *given) == run("why", "A", "1", "2", *given)
    refused(["forward", *given, "--step", "foo"], "scores, scaled, row_max, shifted, exp, row_sum, A, O")
    refused(["forward", *given, "--step", "dA"], "this is a gradient", "attncli backward")
    refused(["why", "foo", "1", "2", *given], "scores, scaled, row_max")
    refused(["why", "e9-decoder-block", "weights", "1", "1"], "may mean self.A, cross.A")


def test_a_sheet_names_them_as_it_likes() -> None:
    right = run("check", "a1-pronoun", "--answer", "A=0.330 0.670", "--format", "json")
    for name in ("weights", "权重", "a", "7"):
        ran = run("check", "a1-pronoun", "--answer", f"{name}=0.330 0.670", "--format", "json")
        assert ran.status == right.status == 0
        assert '"id": "A", "verdict": "correct"' in ran.out
    twice = run("check", "a1-pronoun", "--answer", "A=0.330 0.670", "--answer", "weights=0.330 0.670")
    assert twice.status == 1
    assert "“weights” is answered twice" in twice.out
    unknown = run("check", "a1-pronoun", "--answer", "foo=1")
    assert unknown.status == 1
    assert "scores, scaled, row_max, shifted, exp, row_sum, A, O" in " ".join(unknown.out.split())


def test_why_takes_brackets_names_of_rows_and_a_single_number() -> None:
    for words in (["A[1,2]"], ["A", "它", "书包"], ["A", "1", "书包"], ["weights[它，书包]"], ["A[1 2]"]):
        assert run("why", "a1", *words) == run("why", "a1", "A", "1", "2")
    assert run("why", "b6", "G_E[3,1]", "--depth", "1") == run("why", "b6", "G_E", "3", "1", "--depth", "1")
    assert run("why", "b6", "G_E", "我", "1", "--depth", "1") == run("why", "b6", "G_E", "3", "1", "--depth", "1")
    assert run("why", "b6", "L").out.startswith("L[1,1] = ")
    refused(["why", "a1", "A", "它", "它"], "“它” is neither a number nor a name there: A has 苹果, 书包.")
    refused(["why", "a1", "A"], "Which number of A? It is 1×2", "Write attncli why a1 A 1 2.")
    refused(["why", "a1", "A[1,3]"], "A[1,3] does not exist")
    refused(["why", "a1", "A[1,2"], "The step “A[1,2”")
    refused(["why", "nosuch", "A", "1", "2"], "nosuch")
    assert run("why", "A", "2", "I", "--text", "I tea tea") == run("why", "A", "2", "1", "--text", "I tea tea")
    refused(["why", "A", "tea", "1", "--text", "I tea tea"], "“tea” occurs several times in A: at 2, 3.")
    refused(["why", "A", "sugar", "1", "--text", "I tea tea"], "A has I, tea, tea.")


@pytest.mark.parametrize(
    "words",
    [
        ("b6", "G_E", "3", "1", "--carry", "--decimals", "2"),
        ("A[1,2]", "-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4", "--set", "softcap=2", "--exact"),
    ],
)
def test_why_ends_with_the_command_for_another_cell(words: tuple[str, ...]) -> None:
    *_, command = run("why", *words, COLUMNS=30).out.splitlines()
    attncli, *again = shlex.split(command)
    assert attncli == "attncli"
    ran = run(*again)
    assert ran.status == 0 and not ran.err
    options = {word for word in words if word.startswith("-")}
    assert options == {word for word in again if word.startswith("-")}


def test_why_goes_three_steps_back_and_says_how_to_go_on(tmp_path: Path) -> None:
    plain, deep = run("why", "b6", "G_E", "3", "1").out, run("why", "b6", "G_E", "3", "1", "--depth", "3").out
    assert plain.startswith(deep)
    assert "3 steps back. Further: --depth 6 (or all)" in plain
    assert "Further" not in deep
    assert len(run("why", "b6", "G_E", "3", "1", "--depth", "all").out) > len(plain)
    assert "Further" not in run("why", "a1", "scores", "1", "1").out  # nothing is left out
    refused(["why", "a1", "A", "1", "2", "--depth", "deep"], "--depth")
    file = tmp_path / "why.txt"
    assert run("why", "b6", "G_E", "3", "1", "-o", str(file)).out == ""
    assert file.read_text("utf-8").startswith("G_E[3,1] = ")
