"""The catalogue: every mistake has its words in both languages, and is made somewhere."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from mistake_graphs import graphs
from mistake_ids import SEEN

import attncli
from attncli.arithmetic.hand import Hand
from attncli.core.message import ENGLISH
from attncli.mistakes import CATALOGUE, did, look, mistakes_at, rank, without_vaguer

ROOT = Path(attncli.__file__).parent


def test_the_ids_and_how_often_they_were_seen_are_a_contract() -> None:
    assert {id: CATALOGUE[id].seen for id in SEEN if id in CATALOGUE} == SEEN


def test_every_mistake_is_made_somewhere_and_gives_other_numbers() -> None:
    without = {id for id, entry in CATALOGUE.items() if entry.at}
    with np.errstate(all="ignore"):
        for graph in graphs().values():
            right = graph.evaluate()
            for step in graph.steps:
                for mistake in mistakes_at(graph, step):
                    if mistake.id in without and _differs(graph, right, mistake):
                        without.remove(mistake.id)
            if not without:
                return
    assert not without


def _differs(graph, right, mistake) -> bool:  # type: ignore[no-untyped-def]
    for id, swap in mistake.swap.items():
        try:
            value = swap.op.compute(Hand(12), *(right[i] for i in swap.inputs), **swap.params)
        except (ValueError, IndexError):
            continue
        if value.shape != right[id].shape or not np.allclose(value, right[id], equal_nan=True):
            return True
    return False


#: Mistakes on the way back through softmax and its scale, which every model can make.
THROUGH_SOFTMAX = {
    "softmax-passed-through", "softmax-diagonal-only", "softmax-sign", "row-dot-missing", "upstream-twice",
}  # fmt: skip


def test_the_mistakes_on_the_way_back_are_made_in_every_model() -> None:
    seen = set()
    for name, graph in graphs().items():
        for step in graph.steps.values():
            ids = {mistake.id for mistake in mistakes_at(graph, step.id)}
            if step.op.name == "multiply" and "softmax-passed-through" in ids:
                assert ids >= THROUGH_SOFTMAX
                seen.add(name.rpartition("-")[0])
            if step.op.name == "subtract" and step.id.endswith("deviation"):
                assert {"row-dot-missing", "softmax-sign"} <= ids
            if step.phase == "backward" and step.op.name == "scale" and step.params.get("root") is not None:
                assert "gradient-scale-lost" in ids, (name, step.id)
    assert seen >= {
        "attention",
        "self_attention",
        "multi_head",
        "latent",
        "encoder_block",
        "decoder_block",
        "gpt",
        "transformer",
    }


def test_what_is_never_made_is_a_slip_of_the_pen() -> None:
    assert {id for id, entry in CATALOGUE.items() if not entry.at} == {
        "layout-transposed", "sign", "decimal-point", "cells-exchanged", "rounded-too-early",
    }  # fmt: skip


@pytest.mark.parametrize("id", CATALOGUE)
def test_its_words_are_there_in_both_languages(id: str) -> None:
    from attncli.locale import language

    entry = CATALOGUE[id]
    for words in (entry, *entry.elsewhere.values()):
        for text in (words.did, words.look):
            assert text and language("zh").translate(text) != text
            assert text[0].isupper() and text.endswith((".", "?"))


def test_one_id_has_one_entry() -> None:
    counted = defaultdict(int)
    for path in (ROOT / "mistakes").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "MistakeKind":
                first = node.args[0]
                assert isinstance(first, ast.Constant)
                counted[first.value] += 1
    assert dict(counted) == dict.fromkeys(CATALOGUE, 1)


def test_the_likelier_comes_first() -> None:
    assert rank("softmax-over-columns") < rank("weights-transposed") < rank("norm-placement") < rank("sign")


def test_the_exact_name_makes_the_vague_one_superfluous() -> None:
    assert without_vaguer(["path-missing", "norm-paths-missing"]) == ["norm-paths-missing"]
    assert without_vaguer(["sign", "softmax-sign"]) == ["softmax-sign"]
    assert str(did("no-scale")) == "You left out the division by √d_k."
    assert ENGLISH is not None and str(look("no-scale"))


#: What a mistake may know of, and what an operation may not.
BELOW = ("arithmetic", "core", "ops", "mistakes")


def test_mistakes_know_operations_and_no_operation_knows_a_mistake() -> None:
    for path in (ROOT / "ops").glob("*.py"):
        assert not [name for name in _imported(path) if name.startswith(("mistakes", "marking"))], path
    for path in (ROOT / "mistakes").glob("*.py"):
        assert not [name for name in _imported(path) if not name.startswith(BELOW)], path


def _imported(path: Path) -> list[str]:
    """Modules of this package that a file imports, also for types alone and within functions."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return [name.removeprefix("attncli.") for name in names if name.startswith("attncli.")]
