"""Skills: the kinds of lines that a person learns to write, told from a step's operation and its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from attncli.core.graph import Graph, Step, part_of
from attncli.core.message import N_

#: What each skill is called, in the order of the curriculum.
SKILLS: Mapping[str, str] = {
    "dot-products": N_("dot products"),
    "scale": N_("scaling by √d_k"),
    "mask": N_("masks"),
    "softmax": N_("softmax, row by row"),
    "weighted-average": N_("weighted averages"),
    "loss": N_("losses"),
    "product-gradient": N_("gradients of a product"),
    "softmax-gradient": N_("the way back through softmax"),
    "scale-gradient": N_("the way back through the scale"),
    "paths": N_("sums over paths"),
    "look-up": N_("looking up tokens"),
    "look-up-gradient": N_("gradients of the embedding table"),
    "update": N_("steps of learning"),
    "heads": N_("heads"),
    "positions": N_("positions"),
    "norm": N_("normalisation"),
    "norm-gradient": N_("the way back through normalisation"),
    "feed-forward": N_("feed-forward layers"),
    "other": N_("other lines"),
}

_OPS: Mapping[str, str] = {
    "scale": "scale", "softcap": "scale", "mask": "mask", "row_max": "softmax", "subtract": "softmax", "exp": "softmax",
    "row_sum": "softmax", "divide": "softmax", "encode": "look-up", "look_up": "look-up", "split_heads": "heads",
    "merge_heads": "heads", "repeat_kv": "heads", "to_heads": "heads", "head_mean": "heads", "sinusoid": "positions",
    "angle": "positions", "rotate": "positions", "add_positions": "positions", "row_mean": "norm", "centre": "norm",
    "row_mean_square": "norm", "root_eps": "norm", "standardise": "norm", "scale_shift": "norm", "activation": "feed-forward",
    "affine": "feed-forward", "residual": "paths", "weighted_sum": "loss", "weighted_total": "loss", "log_loss": "loss",
    "pick": "loss", "negative_log": "loss", "average": "loss", "logarithm": "loss", "square_sum": "loss", "mean_square": "loss",
}  # fmt: skip
_BACK: Mapping[str, str] = {
    "product": "product-gradient", "scatter_add": "look-up-gradient", "sum_paths": "paths", "scale": "scale-gradient",
    "split_heads": "heads", "merge_heads": "heads", "sum_kv_groups": "heads", "activation_slope": "feed-forward",
    "class_error": "loss", "log_slope": "loss",
}  # fmt: skip


def skill_of(graph: Graph, line: str) -> str:
    """The skill that a line of a calculation takes."""
    step = graph.steps[line]
    if step.phase == "update":
        return "update"
    if step.phase == "backward":
        return _on_the_way_back(graph, step)
    if step.op.name == "product":
        return "weighted-average" if _is_weights(graph, step.inputs[0]) else "dot-products"
    return _OPS.get(step.op.name, "other")


def _on_the_way_back(graph: Graph, step: Step) -> str:
    part = part_of(step.id)
    around = [other for other in graph.steps.values() if part_of(other.id) == part and other.phase == "forward"]
    if step.op.name != "product" and any(other.op.name == "standardise" for other in around):
        return "norm-gradient"
    if step.op.name in _BACK:
        return _BACK[step.op.name]
    return "softmax-gradient" if any(other.op.name == "exp" for other in around) else "other"


def _is_weights(graph: Graph, operand: str) -> bool:
    step = graph.steps.get(operand)
    return operand == "A" if step is None else step.is_attention


#: The stage at which every line is asked for.
LAST_STAGE = 4


def asked_at(graph: Graph, asked: Sequence[str], stage: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a stage asks, and what it neither asks nor shows: the lines inside a group of which only the end is asked.

    Stage 1 shows everything but the last line; stage 2 asks for half of the groups, from the end, stage 3 for three quarters;
    stage 4 asks for everything. Lines of one skill that follow one another are a group: softmax is one thing to do.
    """
    if stage >= LAST_STAGE:
        return tuple(asked), ()
    groups = [list(lines) for _, lines in groupby(asked, key=lambda line: skill_of(graph, line))]
    count = 1 if stage == 1 else -(-len(groups) * stage // LAST_STAGE)
    chosen = groups[-count:]
    return tuple(lines[-1] for lines in chosen), tuple(line for lines in chosen for line in lines[:-1])


def stage_of(graph: Graph, asked: Sequence[str], line: str) -> int:
    """The first stage that asks for a line."""
    return next((stage for stage in range(1, LAST_STAGE) if line in asked_at(graph, asked, stage)[0]), LAST_STAGE)
