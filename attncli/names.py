"""What parts, symbols, axes and shapes are called: the words that operations and the graph share."""

from __future__ import annotations

from collections.abc import Sequence

from attncli.message import N_, Message
from attncli.record import Record


class Axis(Record):
    """One axis of an array: its name ("query", "d_k"), its length, and the operand that set it."""

    name: str
    size: int
    setter: str


def part_of(id: str) -> str:
    """The part of a model that an id belongs to, with its dot: "layer2.ffn." for layer2.ffn.hidden, "" for scores."""
    return id[: id.rfind(".") + 1]


def default_symbol(id: str) -> str:
    """The LaTeX symbol of an id or an axis: W_Q is W_Q, G_W_Q is G_{W_Q}, K_past is K_{past}, d_model d_{model}."""
    head, _, tail = id.rpartition(".")[2].partition("_")
    if not tail:
        return head
    return f"{head}_{{{tail}}}" if len(tail) > 1 else f"{head}_{tail}"


def show_shape(shape: Sequence[int]) -> str:
    """3×2; the shape of a single number is 1."""
    return "×".join(map(str, shape)) if shape else "1"


def count_axes(count: int) -> Message:
    """“2 axes”."""
    return Message(N_("1 axis")) if count == 1 else Message(N_("{count} axes"), count=count)
