"""Matrix product, either operand transposed: A B, A Bᵀ, Aᵀ B, Aᵀ Bᵀ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Op, Params
from attncli.message import N_, Message
from attncli.names import part_of
from attncli.ops import Mistake, at, pass_on, values_for_gradients, with_operands
from attncli.ops._placement import misplaced_before
from attncli.terms import Index, Term

if TYPE_CHECKING:
    from attncli.core.graph import Graph, Step


def compute(xp: Arithmetic, a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False) -> Value:
    """Rows of op(a) times columns of op(b), over the last two axes; a head axis goes through."""
    if transpose_a:
        a = xp.swapaxes(a, -1, -2)
    if transpose_b:
        b = xp.swapaxes(b, -1, -2)
    return xp.matmul(a, b)


def axes(params: Params) -> str:
    first = "k i" if params.get("transpose_a") else "i k"
    second = "j k" if params.get("transpose_b") else "k j"
    return f"{first}, {second} -> i j"


def formula(params: Params, columns: bool) -> str:
    first = r"{0}^{{\top}}" if params.get("transpose_a") else "{0}"
    second = r"{1}^{{\top}}" if params.get("transpose_b") else "{1}"
    # With tokens as columns every matrix is transposed, and (A B)ᵀ = Bᵀ Aᵀ: the order turns, the marks stay.
    return f"{second} {first}" if columns else f"{first} {second}"


def terms(step: Step, index: Index, values: Mapping[str, Any]) -> Term:
    a, b = step.inputs
    *head, i, j = index
    turned_a, turned_b = step.params.get("transpose_a"), step.params.get("transpose_b")
    width = values[a].shape[-2 if turned_a else -1]
    return Term(
        "sum",
        *(
            Term(
                "product",
                at(values, a, (*head, k, i) if turned_a else (*head, i, k)),
                at(values, b, (*head, j, k) if turned_b else (*head, k, j)),
            )
            for k in range(width)
        ),
    )


def gradient_a(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """op(A) receives G op(B)ᵀ; where A entered transposed, so does its gradient."""
    a, b = step.inputs
    turned_b = bool(step.params.get("transpose_b"))
    if step.params.get("transpose_a"):
        graph.apply(OP, id, b, upstream, transpose_a=turned_b, transpose_b=True, why=_why(a, b, turned=True))
    else:
        graph.apply(
            OP, id, upstream, b, transpose_a=False, transpose_b=not turned_b, why=_why(a, b, turned=not turned_b)
        )


def gradient_b(graph: Graph, step: Step, upstream: str, id: str) -> None:
    """op(B) receives op(A)ᵀ G; where B entered transposed, so does its gradient."""
    a, b = step.inputs
    turned_a = bool(step.params.get("transpose_a"))
    if step.params.get("transpose_b"):
        graph.apply(OP, id, upstream, a, transpose_a=True, transpose_b=turned_a, why=_why(b, a, turned=True))
    else:
        graph.apply(
            OP, id, a, upstream, transpose_a=not turned_a, transpose_b=False, why=_why(b, a, turned=not turned_a)
        )


def _why(operand: str, other: str, *, turned: bool) -> Message:
    """Why a factor's gradient is the arriving gradient times the other factor."""
    if turned:
        return Message(
            N_(
                "{operand} was multiplied by {other}, so a change in it reaches the loss through every result it had a"
                " part in. This product adds up all those ways; the transpose makes each entry meet its own partners again."
            ),
            operand=operand,
            other=other,
        )
    return Message(
        N_(
            "{operand} was multiplied by {other}, so a change in it reaches the loss through every result it had a"
            " part in. This product adds up all those ways."
        ),
        operand=operand,
        other=other,
    )


def mistakes(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Operands the wrong way round, and what belongs to the product's place: projection, scores, output, gradient."""
    a, b = step.inputs
    yield with_operands("operands-swapped", step, OP, (b, a), step.params)
    if step.phase == "backward":
        yield from _mistakes_of_gradient(graph, step)
    elif step.id.rpartition(".")[2] == "scores":
        yield with_operands("key-not-transposed", step, OP, (a, b), {})
    elif b.rpartition(".")[2].startswith("W_"):
        yield with_operands("weight-transposed", step, OP, (a, b), {"transpose_b": not step.params.get("transpose_b")})
        for other in _weights_beside(graph, b):
            if graph.shape(other) == graph.shape(b):
                yield with_operands("wrong-weight", step, OP, (a, other), step.params)
        yield from without_positions(graph, step)
        yield from of_other_sequence(graph, step)
        yield from misplaced_before(graph, step)
        if b.rpartition(".")[2] == "W_O":
            yield with_operands("no-output-projection", step, pass_on.OP, (a,), {})
    elif step.params.get("transpose_b"):
        # A table that is used again: the logits of a model that is tied.
        yield with_operands("table-not-transposed", step, OP, (a, b), {})
    else:
        yield from _mistakes_of_output(graph, step)


def without_positions(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Keys and values of the bare embeddings, where positions were added to them; both by habit, or this alone."""
    added = graph.steps.get(step.inputs[0])
    part, _, name = step.id.rpartition(".")
    if added is None or added.op.name != "add_positions" or name not in ("K", "V"):
        return
    ids = [f"{part}.{one}" if part else one for one in "KV"]
    both = [graph.steps[id] for id in ids if id in graph.steps and graph.steps[id].inputs[0] == added.id]
    bare = {
        one.id: with_operands("positions-on-queries-only", one, one.op, (added.inputs[0], *one.inputs[1:]), one.params)
        for one in both
    }
    if len(bare) > 1:
        swap = {id: made for one in bare.values() for id, made in one.swap.items()}
        yield Mistake("positions-on-queries-only", swap)
    if step.id in bare:
        yield bare[step.id]


def of_other_sequence(graph: Graph, step: Step) -> Iterator[Mistake]:
    """Across two sequences, queries, keys or values of the wrong one; keys and values together by habit."""
    part, _, name = step.id.rpartition(".")
    beside = {one: graph.steps.get(f"{part}.{one}" if part else one) for one in "QKV"}
    if name not in beside or any(one is None or one.op.name not in ("product", "affine") for one in beside.values()):
        return
    query, key, value = (one for one in beside.values() if one is not None)
    asking, asked = query.inputs[0], key.inputs[0]
    if asking == asked or value.inputs[0] != asked or graph.axes(asking)[-1].size != graph.axes(asked)[-1].size:
        return

    def swapped(one: Step, source: str) -> Mistake:
        return with_operands("other-sequence", one, one.op, (source, *one.inputs[1:]), one.params)

    if name == "Q":
        yield swapped(query, asked)
        return
    own = key if name == "K" else value
    yield Mistake("other-sequence", {**swapped(key, asking).swap, **swapped(value, asking).swap})
    yield swapped(own, asking)


def _weights_beside(graph: Graph, id: str) -> Iterator[str]:
    """The other weight matrices of the same part of a model: W_K and W_V for W_Q, self.W_K for self.W_Q."""
    part = part_of(id)
    for other in graph.inputs:
        if other != id and other.startswith(f"{part}W_") and "." not in other.removeprefix(part):
            yield other


def _mistakes_of_output(graph: Graph, step: Step) -> Iterator[Mistake]:
    from attncli.ops import rotate

    a, b = step.inputs
    yield with_operands("weights-transposed", step, OP, (a, b), {"transpose_a": True})
    yield with_operands("value-transposed", step, OP, (a, b), {"transpose_b": True})
    weights = graph.steps.get(a)
    source = weights.closed.source if weights is not None and weights.closed is not None else None
    while source is not None:
        yield with_operands("scores-for-weights", step, OP, (source, b), {})
        before = graph.steps.get(source)
        source = before.inputs[0] if before is not None and before.op is not OP else None
    yield from rotate.values_turned(graph, step)


def _mistakes_of_gradient(graph: Graph, step: Step) -> Iterator[Mistake]:
    a, b = step.inputs
    flags = [name for name in ("transpose_a", "transpose_b") if step.params.get(name)]
    if flags:
        yield with_operands("gradient-not-transposed", step, OP, (a, b), {})
    else:
        # Where no transpose belongs, one too many is the same confusion.
        for one in ("transpose_a", "transpose_b"):
            yield with_operands("gradient-not-transposed", step, OP, (a, b), {one: True})
    for wrong in values_for_gradients(graph, step):
        yield with_operands("value-for-gradient", step, OP, wrong, step.params)
    for other in graph.steps.values():
        if other is not step and other.op is OP and other.phase == "backward" and _are_partners(step, other):
            yield with_operands("gradients-swapped", step, OP, other.inputs, other.params)


def _are_partners(step: Step, other: Step) -> bool:
    """Gradients of the same kind: G_Q and G_K, G_W_Q and G_W_V, G_X_Q and G_X_K."""
    kinds = [_KIND.sub(r"\1", one.id) for one in (step, other)]
    return kinds[0] == kinds[1]


#: What is left of a gradient's id when its projection (Q, K, V; their heads) is taken off: self.G_W_Q leaves self.G_W_.
_KIND = re.compile(r"(G_(?:[A-Z]+_)?)[QKV](?:_heads|_shared|_all|_rotated)?$")


OP = Op(
    name="product",
    compute=compute,
    axes=axes,
    formula=formula,
    terms=terms,
    why=N_("Row times column: multiply entry by entry and add up."),
    backward=(gradient_a, gradient_b),
    mistakes=mistakes,
)
