"""The numbers of our own that claim to be checked against PyTorch, checked against it, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attncli.problems import library
from attncli.problems.matrix_text import parse_matrix

torch = pytest.importorskip("torch")


def tensor(problem: Any, name: str) -> Any:
    return torch.tensor(problem.inputs[name].values, dtype=torch.float64)


def assert_printed(problem: Any, step: str, values: Any) -> None:
    """A published step is what PyTorch computed, rounded."""
    printed = parse_matrix(problem.published[step]).values
    values = np.asarray(values.detach()).reshape(printed.shape)
    assert np.allclose(printed, values, rtol=0, atol=0.0005001), step


@pytest.mark.parametrize("id", ["a4-reading-scores", "a6-weights-sum-to-one", "a9-causal-mask"])
def test_attention(id: str) -> None:
    problem = library.load(id)
    q, k, v = (tensor(problem, name)[None] for name in "QKV")
    options = {
        "is_causal": bool(problem.settings.get("causal")),
        "scale": 1.0 if problem.settings.get("scale") == "none" else None,
    }
    attention = torch.nn.functional.scaled_dot_product_attention
    assert_printed(problem, "O", attention(q, k, v, **options))
    assert_printed(problem, "A", attention(q, k, torch.eye(k.shape[1], dtype=torch.float64)[None], **options))


def test_softmax() -> None:
    problem = library.load("a7-shift-invariance")
    assert_printed(problem, "A", torch.softmax(tensor(problem, "scores"), -1))


def test_full_backward() -> None:
    problem = library.load("b6-full-backward")
    leaves = {name: tensor(problem, name).requires_grad_() for name in ("E", "W_Q", "W_K", "W_V")}
    words = list(problem.settings["vocabulary"])
    ids = torch.tensor([words.index(word) for word in ("我", "喜欢", "数学")])
    nodes = {"X": torch.nn.functional.embedding(ids, leaves["E"])}
    nodes |= {name: nodes["X"] @ leaves[f"W_{name}"] for name in "QKV"}
    nodes["scores"] = nodes["Q"] @ nodes["K"].T
    nodes["scaled"] = nodes["scores"] / 2**0.5
    mask = torch.triu(torch.full((3, 3), -torch.inf, dtype=torch.float64), 1)
    nodes["masked"] = nodes["scaled"] + mask
    nodes["A"] = torch.softmax(nodes["masked"], -1)
    nodes["O"] = nodes["A"] @ nodes["V"]
    for node in nodes.values():
        node.retain_grad()
    loss = (torch.tensor([[1.0, -1], [2, 1], [-1, 3]], dtype=torch.float64) * nodes["O"]).sum()
    loss.backward()

    top = nodes["masked"].amax(-1, keepdim=True)
    power = (nodes["masked"] - top).exp()
    weighted = nodes["A"].grad * nodes["A"]
    row_dot = weighted.sum(-1, keepdim=True)
    values = {"T": ids, "M": mask, "L": loss, "row_max": top, "shifted": nodes["masked"] - top, "exp": power}
    values |= {"row_sum": power.sum(-1), "weighted": weighted, "row_dot": row_dot}
    values |= {"deviation": nodes["A"].grad - row_dot}
    values |= {f"G_X_{name}": nodes[name].grad @ leaves[f"W_{name}"].T for name in "QKV"}
    values |= nodes | {f"G_{name}": node.grad for name, node in (nodes | leaves).items()}
    for step in problem.published:
        assert_printed(problem, step, values[step])
