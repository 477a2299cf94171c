"""The parts of a stack (self., layer2.ffn., loss.): what each is there for, said where it begins."""

from __future__ import annotations

import re

from attncli.core.graph import part_of
from attncli.core.message import N_, Message
from attncli.render._view import Item

_KNOWN = {
    "self": N_("{part}: the tokens of one sequence look at one another (self-attention)"),
    "cross": N_("{part}: the tokens being written look at the other sequence (cross-attention)"),
    "ffn": N_("{part}: every token works by itself on what it has gathered (feed-forward)"),
    "norm": N_("{part}: every token is brought to the same size, which the next part can rely on (normalisation)"),
    "final": N_("{part}: one more normalisation behind the blocks, before the logits"),
    "loss": N_("{part}: how far what came out is from what should have come out"),
}


def opened(items: tuple[Item, ...]) -> dict[str, Message]:
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
