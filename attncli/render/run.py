r"""Words that the written formats share: headings, names of heads, the check against finite differences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from attncli.core.gradient import gradient_id
from attncli.core.graph import part_of
from attncli.core.message import N_, Message
from attncli.render.names import printable
from attncli.render.view import Block, Item, View

INPUTS = Message(N_("Inputs"))
NOTES = Message(N_("Notes"))
VERIFICATION = Message(N_("Checked against finite differences"))
GRADIENT = Message(N_("Gradient"))
WORST = Message(N_("Largest relative error"))
VERDICT = Message(N_("Verdict"))

_PHASES = {
    "forward": N_("Forward: from the inputs to the result"),
    "backward": N_("Backward: from the loss back to every input"),
    "update": N_("Update: one step of learning"),
}
#: Given arrays that stand among the steps belong to the part that uses them.
_PART = {"upstream": "backward", "target": "forward"}


def clean(text: str) -> str:
    """Text from a file on one line and without control characters."""
    return printable(" ".join(text.split()))


def parts(view: View) -> Iterator[tuple[Message, list[Item]]]:
    """The steps by part: a heading and its steps, in order."""
    for phase, items in groupby(_with_part(view.steps), key=lambda pair: pair[0]):
        yield Message(_PHASES[phase]), [item for _, item in items]


def _with_part(items: Iterable[Item]) -> Iterator[tuple[str, Item]]:
    for item in items:
        yield _PART.get(item.phase, item.phase), item


def head(block: Block) -> Message:
    """“Head 2”."""
    return Message(N_("Head {number}"), number=block.head)


def ending(view: View) -> tuple[Message, ...]:
    """Notes, what to take away, and warnings of the check."""
    found = view.run.verification
    return (*view.notes, *view.summary, *(found.warnings if found else ()))


def verified(view: View) -> Iterator[tuple[str, str, Message]]:
    """Every checked gradient: its LaTeX symbol, the largest relative error, and whether it agrees."""
    found = view.run.verification
    for entry in found.checked if found else ():
        verdict = Message(N_("agrees")) if entry.ok else Message(N_("differs"))
        yield view.run.graph.symbol(gradient_id(entry.id)), f"{entry.worst:.1e}", verdict


def is_named(view: View, item: Item) -> bool:
    """Whether its rows or columns carry names that were given (tokens), not just numbers."""
    return any(axis.name in view.run.graph.labels for axis in view.run.graph.axes(item.id))


_KNOWN = {
    "self": N_("{part}: the tokens of one sequence look at one another (self-attention)"),
    "cross": N_("{part}: the tokens being written look at the other sequence (cross-attention)"),
    "ffn": N_("{part}: every token works by itself on what it has gathered (feed-forward)"),
    "norm": N_("{part}: every token is brought to the same size, which the next part can rely on (normalisation)"),
    "final": N_("{part}: one more normalisation behind the blocks, before the logits"),
    "loss": N_("{part}: how far what came out is from what should have come out"),
}


def opened_parts(items: tuple[Item, ...]) -> dict[str, Message]:
    """By step id: what to say above it, because a part of the model begins there on the way forward."""
    out: dict[str, Message] = {}
    part = ""
    for item in items:
        own = part_of(item.id)
        if item.phase not in ("forward", "target") or own == part:
            continue
        part = own
        said = _about(own.removesuffix("."))
        if said is not None:
            out[item.id] = said
    return out


def _about(part: str) -> Message | None:
    kind = re.sub(r"[0-9]+$", "", part.rpartition(".")[2])
    if kind not in _KNOWN:
        return None
    return Message(_KNOWN[kind], part=part)
