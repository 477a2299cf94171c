"""A graph's numbers, each worked out when it is asked for and kept.

Marking asks for the same chain many times with one number replaced: a learner's own value, or a step
done wrongly. A fork shares everything that does not follow from the replaced step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attncli.arithmetic import Arithmetic, Value
from attncli.graph import Graph, Step, Swap

Settle = Callable[[str, Value], Value]


class Chain:
    """Numbers of one evaluation.

    Parameters
    ----------
    followers : for every id, the steps that are computed from it, directly or not
    settle : what is carried on after a step, by its id
    given : numbers that stand in for a step; swap : another op in a step's place
    """

    def __init__(
        self,
        graph: Graph,
        arithmetic: Arithmetic,
        followers: Mapping[str, frozenset[str]],
        settle: Settle,
        given: Mapping[str, Value] | None = None,
        swap: Mapping[str, Swap] | None = None,
        known: Mapping[str, Value] | None = None,
    ) -> None:
        self.graph = graph
        self.arithmetic = arithmetic
        self.followers = followers
        self.settle = settle
        self.given = dict(given or {})
        self.swap = dict(swap or {})
        self._raw: dict[str, Value] = dict(known or {})
        self._carried: dict[str, Value] = {}

    def fork(self, given: Mapping[str, Value] | None = None, swap: Mapping[str, Swap] | None = None) -> Chain:
        """The same chain with some steps given or swapped."""
        changed = set(given or ()) | set(swap or ())
        stale = changed.union(*(self.followers[id] for id in changed)) if changed else changed
        fork = Chain(self.graph, self.arithmetic, self.followers, self.settle)
        fork.given = {**self.given, **(given or {})}
        fork.swap = {**self.swap, **(swap or {})}
        fork._raw = {id: value for id, value in self._raw.items() if id not in stale}
        fork._carried = {id: value for id, value in self._carried.items() if id not in stale}
        return fork

    def raw(self, id: str) -> Value:
        """What a step comes out as, before anybody rounds it."""
        found = self._raw.get(id)
        if found is None:
            found = self._raw[id] = self._computed(id)
        return found

    def carried(self, id: str) -> Value:
        """What the next steps work with: the given number, or the result and what rounding can do to it."""
        found = self._carried.get(id)
        if found is None:
            if id in self.given:
                found = self.given[id]
            elif id in self.graph.inputs:
                found = self.raw(id)
            else:
                found = self.settle(id, self.raw(id))
            self._carried[id] = found
        return found

    def _computed(self, id: str) -> Any:
        if id in self.graph.inputs:
            return self.arithmetic.enter(self.graph.inputs[id].matrix)
        doing: Step | Swap = self.swap.get(id) or self.graph.steps[id]
        return doing.op.compute(self.arithmetic, *[self.carried(i) for i in doing.inputs], **doing.params)


def followers(graph: Graph) -> dict[str, frozenset[str]]:
    """For every id, the steps that are computed from it, directly or not."""
    found: dict[str, set[str]] = {id: set() for id in (*graph.inputs, *graph.steps)}
    for step in reversed(list(graph.steps.values())):
        sources = step.inputs if step.closed is None else (*step.inputs, step.closed.source)
        for source in sources:
            found[source] |= {step.id} | found[step.id]
    # A swapped step may read inputs its own op does not; it then depends on everything before it.
    return {id: frozenset(steps) for id, steps in found.items()}
