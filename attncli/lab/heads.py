"""What heads attend to: the weights of several heads for one sentence, how far they differ, what their average loses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from attncli.core.axes import Axis
from attncli.core.graph import Graph, Step
from attncli.core.matrix import FloatArray, as_matrix
from attncli.core.message import N_, InputError, Listed, Message
from attncli.core.record import Record
from attncli.core.report import Column, Maps, Report, ReportPart, Table
from attncli.lab import Experiment, Option, Settings
from attncli.lab.softmax import entropy
from attncli.problems.problem import Problem

#: Tokens of a sentence.
_MOST_TOKENS = 16
_MOST_HEADS = 16
#: What an average may take off the largest weights without blurring them.
_HARDLY = 0.01
#: Attentions of further layers that are shown.
_MOST_FURTHER = 8


class HeadWeights(Record):
    """The weights of all heads (head query key), with names of the queries and the keys."""

    weights: FloatArray
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def run(seed: int, settings: Settings) -> Report:
    """The heads of a problem, or of seeded weights for a sentence, side by side."""
    problem: Problem | None = settings["problem"]
    graph = (problem or _seeded(seed, settings)).graph(backward=False)
    step, *further = _weights_with_heads(graph)
    seen = _seen(graph, step)
    several = len(seen.weights) > 1
    maps = [(_head(head), weights) for head, weights in enumerate(seen.weights)]
    if several:
        maps.append((Message("average"), seen.weights.mean(0)))
    title = Message("Who looks at whom: a line is a token that looks, a number the token it looks at")
    parts = (
        _about_seeds(seed, settings, seen) if problem is None else _about(problem, step, seen),
        Maps(title, seen.queries, tuple(maps)),
        *_further(graph, step, further),
        _favourites(seen),
        *((*_differences(seen), _average(seen)) if several else (_ONLY_ONE,)),
    )
    shown = {**settings, "problem": None if problem is None else problem.id or problem.model}
    return Report("heads", Message("What heads attend to"), seed, shown, parts)


_ONLY_ONE = Message("There is one head, so there is nothing to compare. Try --heads 4.")


def _head(head: int) -> Message:
    return Message("Head {number}", number=head + 1)


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text, or its characters where there are no spaces.

    Raises
    ------
    InputError
        Fewer than two of them, or too many.
    """
    found = tuple(text.split())
    if len(found) == 1:
        found = tuple(found[0])
    if not 2 <= len(found) <= _MOST_TOKENS:
        raise InputError(
            "--text: tokens found: {count}, needed: 2 to {most}. Write words with spaces, or Chinese without.",
            count=len(found),
            most=_MOST_TOKENS,
        )
    return found


def _seeded(seed: int, settings: Settings) -> Problem:
    """Random embeddings, one for each different token, and random weights."""
    names, heads, width = tokens(settings["text"]), settings["heads"], settings["d_model"]
    if width % heads:
        raise InputError(
            "--heads {heads} does not divide --d-model {width}: every head gets the same number of columns. Write --d-model {fitting}.",
            heads=heads,
            width=width,
            fitting=heads * math.ceil(width / heads),
        )
    random = np.random.default_rng(seed)
    different = tuple(dict.fromkeys(names))
    # The weights come first, so that they are the same for every sentence.
    weights = {f"W_{name}": random.standard_normal((width, width)) / math.sqrt(width) for name in "QKVO"}
    table = random.standard_normal((len(different), width))
    inputs = {"X": table[[different.index(name) for name in names]], **weights}
    return Problem(
        model="multi_head",
        inputs={name: as_matrix(values) for name, values in inputs.items()},
        settings={"heads": heads, "causal": settings["causal"]},
        labels={"token": names},
    )


def _about_seeds(seed: int, settings: Settings, seen: HeadWeights) -> Message:
    heads, width = settings["heads"], settings["d_model"]
    return Message(
        "Heads: {heads}, tokens: {count}. The weights of the heads and the tokens' vectors (width {width}, so {d_k} for each head)"
        " are random (seed {seed}): nothing is learned yet, and where they look says nothing about the sentence. But it shows"
        " that each head has a view of its own; training gives the views their sense. There are no positions here, so equal"
        " tokens look alike.",
        heads=heads,
        count=len(seen.queries),
        width=width,
        d_k=width // heads,
        seed=seed,
    )


def _about(problem: Problem, step: Step, seen: HeadWeights) -> Message:
    return Message(
        "The weights {step} of {problem}. Heads: {heads}, queries: {queries}, keys: {keys}.",
        step=step.id,
        problem=problem.id or problem.model,
        heads=len(seen.weights),
        queries=len(seen.queries),
        keys=len(seen.keys),
    )


def _further(graph: Graph, first: Step, further: list[Step]) -> Iterator[ReportPart]:
    """Maps of the attentions of further layers, and that what follows is about the first one."""
    for step in further[:_MOST_FURTHER]:
        seen = _seen(graph, step)
        maps = tuple(
            (Message("{step}, head {number}", step=step.id, number=number), weights)
            for number, weights in enumerate(seen.weights, start=1)
        )
        yield Maps(Message("And in {step}", step=step.id), seen.queries, maps)
    left = Listed(step.id for step in further[_MOST_FURTHER:])
    if len(further) > _MOST_FURTHER:
        yield Message("Not shown: {steps}. The tables below are about {step}.", steps=left, step=first.id)
    elif further:
        yield Message("The tables below are about {step}.", step=first.id)


def _seen(graph: Graph, step: Step) -> HeadWeights:
    """The weights of a step with the names of their rows and columns.

    Raises
    ------
    InputError
        Too many heads or tokens for a map.
    """
    _, queries, keys = step.axes
    if max(queries.size, keys.size) > _MOST_TOKENS or step.axes[0].size > _MOST_HEADS:
        raise InputError(
            "{step} has {heads} heads, {queries} queries and {keys} keys; at most {most_heads} heads and {most} tokens fit here.",
            step=step.id,
            heads=step.axes[0].size,
            queries=queries.size,
            keys=keys.size,
            most_heads=_MOST_HEADS,
            most=_MOST_TOKENS,
        )
    weights = graph.evaluate(until=step.id)[step.id]
    return HeadWeights(weights, _names(graph, queries, "q"), _names(graph, keys, "k"))


def _weights_with_heads(graph: Graph) -> list[Step]:
    found = [step for step in graph.steps.values() if step.is_attention and len(step.axes) == 3]
    if found:
        return found
    raise InputError(
        "The model {model} has no weights with heads here. Give a problem of multi_head, like d1-two-heads, or a training with --heads 2, or nothing.",
        model=graph.model,
    )


def _names(graph: Graph, axis: Axis, letter: str) -> tuple[str, ...]:
    named = graph.labels.get(axis.name) or graph.labels.get("token", ())
    return named if len(named) == axis.size else tuple(f"{letter}{i}" for i in range(1, axis.size + 1))


def _favourites(seen: HeadWeights) -> Table:
    """For every token, what each head looks at most."""
    columns = [Column("token", Message("who looks"), seen.queries)]
    for head, weights in enumerate(seen.weights):
        most = [seen.keys[key] for key in weights.argmax(-1)]
        columns.append(Column(f"head_{head + 1}", _head(head), most))
        columns.append(Column(f"weight_{head + 1}", Message("weight"), weights.max(-1).tolist(), 3, joined=True))
    return Table("favourites", Message("The token that each head looks at most"), tuple(columns))


def distance(one: FloatArray, other: FloatArray) -> FloatArray:
    """For every query, half the sum of |a − b|: 0 for equal weights, 1 for weights on wholly different keys."""
    found: FloatArray = np.abs(one - other).sum(-1) / 2
    return found


def _differences(seen: HeadWeights) -> tuple[ReportPart, ...]:
    apart = distance(seen.weights[:, None], seen.weights)
    between = apart.mean(-1)
    heads = range(len(between))
    table = Table(
        "distances",
        Message("How far the heads differ"),
        (
            Column("head", Message("head"), [_head(head) for head in heads]),
            *(Column(f"head_{head + 1}", _head(head), between[:, head].tolist(), 3) for head in heads),
        ),
    )
    meaning = Message(
        "Two heads differ by 0 if they look the same way, and by 1 if they look at entirely different tokens: half the sum of the absolute differences of their weights, averaged over the tokens."
    )
    return _widest(seen, apart), table, meaning, _pairs(between)


def _pairs(between: FloatArray) -> Message:
    """What stands out in the table: the nearest pair and the farthest."""
    pairs = sorted(combinations(range(len(between)), 2), key=lambda pair: between[pair])
    near, far = pairs[0], pairs[-1]
    if near == far:
        return Message("These two differ by {far}.", far=float(between[far]))
    return Message(
        "The nearest pair here, {a} and {b}, differs by {near}; the farthest, {c} and {d}, by {far}.",
        a=near[0] + 1,
        b=near[1] + 1,
        near=float(between[near]),
        c=far[0] + 1,
        d=far[1] + 1,
        far=float(between[far]),
    )


def _widest(seen: HeadWeights, apart: FloatArray) -> Message:
    """The token about which two heads differ most, and where they look instead."""
    pairs = list(combinations(range(len(apart)), 2))
    found = np.array([apart[pair] for pair in pairs])
    pair, row = np.unravel_index(int(found.argmax()), found.shape)
    a, b = pairs[int(pair)]
    one, other = seen.weights[a, row], seen.weights[b, row]
    return Message(
        "They differ most about “{token}”: both give most to “{one}”, but head {a} {weight_one} and head {b} {weight_other}."
        if one.argmax() == other.argmax()
        else "They differ most about “{token}”: head {a} gives most to “{one}” ({weight_one}), head {b} to “{other}” ({weight_other}).",
        token=seen.queries[int(row)],
        a=a + 1,
        one=seen.keys[int(one.argmax())],
        weight_one=float(one.max()),
        b=b + 1,
        other=seen.keys[int(other.argmax())],
        weight_other=float(other.max()),
    )


def _average(seen: HeadWeights) -> Message:
    weights, average = seen.weights, seen.weights.mean(0)
    largest, largest_average = float(weights.max(-1).mean()), float(average.max(-1).mean())
    lost = int((weights.argmax(-1) != average.argmax(-1)).sum())
    return Message(
        "What if one head took the average of all? A head's largest weight is {largest} on average, the average's only"
        " {largest_average}; the entropy rises from {entropy} to {entropy_average} nats (the most would be ln {keys} = {most})."
        " In {lost} of {all} cases the token a head looks at most is not the average's. The average blurs what the heads saw: that"
        " is why each head mixes its own values first, and W_O joins them afterwards."
        if lost or largest > largest_average + _HARDLY
        else "What if one head took the average of all? Here hardly anything would be lost: a head's largest weight is {largest} on"
        " average, the average's {largest_average}, and in {lost} of {all} cases the token a head looks at most is not the"
        " average's. These heads look the same way; several heads pay where they differ.",
        largest=largest,
        largest_average=largest_average,
        entropy=float(entropy(weights).mean()),
        entropy_average=float(entropy(average).mean()),
        keys=len(seen.keys),
        most=math.log(len(seen.keys)),
        lost=lost,
        all=len(weights) * len(seen.queries),
    )


EXPERIMENT = Experiment(
    "heads",
    N_("What heads attend to: weight maps side by side, how far they differ, what the average loses."),
    (
        Option("problem", N_("A problem file or example with heads, like d1-two-heads, or a saved training (.npz), instead of seeded weights."), "problem", "[PROBLEM]", replaces=("text", "heads", "d_model", "causal")),
        Option("text", N_("A sentence: words with spaces, or Chinese without."), "text", "TEXT", Message("The cat drank its milk")),
        Option("heads", N_("How many heads, 1 to 16."), "count", "N", 4, 1, _MOST_HEADS),
        Option("d_model", N_("Width of a token's vector, 1 to 512; the heads share it."), "count", "N", 16, 1, 512),
        Option("causal", N_("A token sees only itself and what came before."), "flag"),
    ),
    run,
)  # fmt: skip
