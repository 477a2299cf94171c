"""Writing on: one token after another, with the keys and values of earlier ones kept in a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attncli.graph import Graph
from attncli.matrix import FloatArray, Matrix, as_matrix
from attncli.message import InputError
from attncli.problems.problem import Problem
from attncli.record import Record
from attncli.run import Run, run
from attncli.training.trainer import State


class Choice(Record):
    """How a token is chosen from its probabilities.

    Parameters
    ----------
    temperature : 0: the likeliest; 1: as the probabilities are; larger: bolder
    top : only so many of the likeliest may be chosen; 0: all
    seed : of the draw
    """

    temperature: float = 0.0
    top: int = 0
    seed: int = 0


class Token(Record):
    """A token that was written.

    Parameters
    ----------
    id, text : which
    probabilities : of the whole vocabulary, as the model gives them
    run : the calculation it comes from: of the whole prompt first, later of a single token
    cached : tokens whose keys and values came from the cache
    """

    id: int
    text: str
    probabilities: FloatArray
    run: Run
    cached: int


def written(state: State, prompt: Sequence[int], length: int, choice: Choice) -> Iterator[Token]:
    """So many tokens after the prompt.

    Raises
    ------
    InputError
        Learned positions end where the training's context ended.
    """
    spec = state.spec
    if spec.positions == "learned" and len(prompt) + length - 1 > spec.context:
        raise InputError(
            "Positions were learned for {context} tokens only, but prompt and continuation need {count}. Write a shorter"
            " prompt, or a smaller --length.",
            context=spec.context,
            count=len(prompt) + length - 1,
        )
    random = np.random.default_rng(choice.seed)
    caches: dict[str, FloatArray] = {}
    seen: list[int] = []
    tokens = list(prompt)
    for _ in range(length):
        step = run(_problem(state, tokens, caches, seen), backward=False)
        probabilities = softmax(np.asarray(step["logits"])[-1])
        id = chosen(probabilities, choice, random)
        yield Token(id, spec.tokens[id], probabilities, step, len(seen))
        seen += tokens
        caches = kept(step.graph, step)
        tokens = [id]


def without_cache(state: State, ids: Sequence[int]) -> FloatArray:
    """The logits of the last of these tokens, everything worked out anew: what the cache must come to."""
    logits: FloatArray = np.asarray(run(_problem(state, ids, {}), backward=False)["logits"])[-1]
    return logits


def _problem(state: State, ids: Sequence[int], caches: dict[str, FloatArray], past: Sequence[int] = ()) -> Problem:
    inputs: dict[str, Any] = {"T": as_matrix([float(id) for id in ids])}
    inputs |= {name: Matrix(values) for name, values in {**state.numbers, **caches}.items()}
    names = tuple(state.spec.tokens[id] for id in (*past, *ids))
    labels = {"token": names[len(past) :], "past_key": names[: len(past)], "key": names} if past else {}
    return Problem("gpt", inputs, settings=state.spec.settings(), labels=labels)


def kept(graph: Graph, trace: Any) -> dict[str, FloatArray]:
    """Keys and values that the next token needs, by the names of the caches: as they enter scores and output."""
    found = {}
    for step in graph.steps.values():
        part, _, name = step.id.rpartition(".")
        if name in ("scores", "O"):
            source = step.inputs[1]
            if graph.steps[source].op.name == "share_heads":
                source = graph.steps[source].inputs[0]
            cache = "K_past" if name == "scores" else "V_past"
            found[f"{part}.{cache}" if part else cache] = np.asarray(trace[source])
    return found


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities of a row of logits, with the maximum taken away first."""
    powers = np.exp(logits - logits.max())
    shares: FloatArray = powers / powers.sum()
    return shares


def chosen(probabilities: FloatArray, choice: Choice, random: np.random.Generator) -> int:
    """The id of the next token: the likeliest (the first of equals), or one that is drawn."""
    if choice.temperature == 0:
        return int(probabilities.argmax())
    with np.errstate(divide="ignore"):
        scores = np.log(probabilities) / choice.temperature
    if 0 < choice.top < len(scores):
        scores[np.argsort(-scores, kind="stable")[choice.top :]] = -np.inf
    shares = softmax(scores)
    return int(
        np.searchsorted(np.cumsum(shares), random.random() * shares.sum(), side="right").clip(0, len(shares) - 1)
    )
