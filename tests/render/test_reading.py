"""What a reader needs to follow a stack: whose operand it is, what a part is for, the loss at the end, no line of words that is untrue."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from attncli.core.graph import part_of
from attncli.core.matrix import as_matrix
from attncli.core.message import ENGLISH, Listed, Message
from attncli.locale import language
from attncli.problems import library
from attncli.problems.lesson import check
from attncli.problems.problem import Problem, run
from attncli.problems.reading import of_json, of_toml
from attncli.render.run import _digits, opened_parts
from attncli.render.summary import summary
from attncli.render.text import operands
from attncli.render.view import view

STACKS = ("e8-encoder-block", "e9-decoder-block", "e10-transformer", "f1-bare-gpt", "f2-gpt-block")
_OWN = "Our own numbers, calculated by attncli, whose steps are tested against PyTorch"
OURS = [id for id in library.ids() if library.load(id).source["en"] == _OWN]
ZH = language("zh")


@pytest.mark.parametrize("id", STACKS)
def test_no_formula_has_two_operands_of_one_name(id: str) -> None:
    """R = Y + Y says nothing; one of them says which part it comes from."""
    graph = library.load(id).graph()
    operand = operands(graph)
    for step in graph.steps.values():
        names = {one: operand(one, step.id) for one in step.inputs}
        assert len(set(names.values())) == len(names), (step.id, names)


def test_an_operand_of_the_own_part_stays_short() -> None:
    shown = {item.id: item.formula_text for item in view(run(library.load("e8-encoder-block"))).steps}
    assert shown["self.Q"] == "X W_Q"
    assert shown["ffn.residual"] == "Y_norm1 + Y"
    assert shown["ffn.G_W_1"] == "Y_norm1ᵀ G_H"
    assert shown["ffn.G_residual_centred"] == "G_C,norm2"


@pytest.mark.parametrize("id", STACKS)
def test_every_part_is_said_once_where_it_begins(id: str) -> None:
    items = view(run(library.load(id))).steps
    forward = [item.id for item in items if item.phase in ("forward", "target")]
    said = opened_parts(items)
    assert all(part_of(step) != part_of(before) for before, step in pairwise(["", *forward]) if step in said)
    texts = [message.text() for message in said.values()]
    assert texts, "a stack has parts"
    assert len(set(texts)) == len(texts)


def test_a_plain_attention_has_no_parts() -> None:
    assert opened_parts(view(run(library.load("a1-pronoun"))).steps) == {}


def test_the_summary_ends_with_the_loss() -> None:
    """The logits of a training step are not what one wants to know of it."""
    shown = run(library.load("f1-bare-gpt"))
    last = list(summary(shown))[-1]
    assert last.text() == f"Loss: L = {shown['L'].item():.3f}"
    assert last.text(ZH).startswith("损失：L = 2.")
    assert not any(m.template.startswith("Loss") for m in summary(run(library.load("b4-matrix-rule"))))


@pytest.mark.parametrize("id", OURS)
def test_our_own_printed_numbers_are_those_on_the_screen(id: str) -> None:
    """0.3125 shown as 0.313 and printed as 0.312 would both be right, and still confuse; so would −0."""
    problem = library.load(id)
    digits = {item.id: _digits(item) for item in view(run(problem)).steps}
    for one in check(problem):
        if one.how == "rounded" and one.step in digits:
            assert " ".join(one.printed.split()) == digits[one.step], one.step


def test_a_gradient_is_never_called_a_share_of_its_row() -> None:
    """The words of softmax's last line stood under every division on the way back."""
    for id in ("e3-layer-norm", "e4-rms-norm", "e8-encoder-block"):
        for item in view(run(library.load(id))).steps:
            if item.phase == "backward" and item.why is not None:
                assert "adds up to exactly 1" not in item.why.text(), item.id
                assert item.why.text() != "Add up each row.", item.id


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_heads_are_told_as_many_as_there_are(heads: int) -> None:
    width = 2 * heads
    square = as_matrix([[float(i + j) for j in range(width)] for i in range(width)])
    problem = Problem(
        model="multi_head",
        inputs=dict.fromkeys(("X", "W_Q", "W_K", "W_V", "W_O"), square),
        settings={"heads": heads},
    )
    texts = {item.id: item.why.text() for item in view(run(problem)).steps if item.why is not None}
    for id in ("Q_heads", "concat"):
        named = {int(number) for number in re.findall(r"head (\d+)", texts[id])}
        assert named <= set(range(1, heads + 1)), texts[id]
        assert "up to head 1" not in texts[id]
        assert (heads > 1) == bool(named), texts[id]


def test_positions_are_named_as_they_are_counted() -> None:
    item = view(run(library.load("e2-positions"))).steps[-1]
    assert item.panels[0].rows == ("p=0", "p=1", "p=2")


def test_a_list_has_the_comma_of_its_language() -> None:
    listed = Listed(["float16", Message("{words}", words="float32"), "a {brace}"])
    assert listed.text(ENGLISH) == "float16, float32, a {brace}"
    assert listed.text(ZH) == "float16、float32、a {brace}"
    assert Listed([]).text(ZH) == ""


@pytest.mark.parametrize("text", ["a", "a=", "a=[1", 'a="x', "[a", "a=1\na=2", "[t]\n[t]", "a=1 b=2", "=1", "a={b=1", 'a="\\q"', "a={b=1,}", "a='x"])  # fmt: skip
def test_what_is_wrong_with_a_toml_file_is_said_in_both_languages(text: str) -> None:
    import tomllib

    with pytest.raises(tomllib.TOMLDecodeError) as error:
        tomllib.loads(text)
    said = of_toml(error.value)
    assert str(error.value).partition(" (at")[0] not in said.text()
    assert re.search(r"[一-鿿]", said.text(ZH).partition("（")[0])


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a":', '{"a":1', "[1 2]", '"x', '"\\q"', '"\x01"', "1 2"])
def test_what_is_wrong_with_a_json_file_is_said_in_both_languages(text: str) -> None:
    import json

    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(text)
    said = of_json(error.value.msg)
    assert error.value.msg not in said.text()
    assert re.search(r"[一-鿿]", said.text(ZH))


def test_a_trace_in_python_is_printed_the_way_its_problem_is_written() -> None:
    found = run(library.load("a1-pronoun"))
    rows, columns = (str(found.changed(problem=found.problem.changed(layout=layout))) for layout in ("rows", "columns"))
    assert "1×2" in rows and "2×1" not in rows
    assert "2×1" in columns and "1×2" not in columns
