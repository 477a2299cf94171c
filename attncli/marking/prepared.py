"""What is known of a problem before any sheet is read: its numbers, ways and rules, for all passes over its sheets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import round_decimal
from attncli.core.graph import Graph
from attncli.core.matrix import BoolArray, FloatArray
from attncli.marking.chain import BY_HEAD, FULL, Chain, Family, Habit, Lineage, programs
from attncli.marking.explain import Explainer
from attncli.marking.judge import Rules
from attncli.marking.papers import Reader
from attncli.mistakes.routes import routes
from attncli.problems.names import Names
from attncli.problems.problem import Problem

#: Precisions that a problem may say its answers come from.
_PRECISIONS = {"float32": float(np.finfo(np.float32).eps), "float16": float(np.finfo(np.float16).eps)}

#: Ways that are open only to a learner's own wrong numbers.
_OWN_ROUTES = frozenset({"where-fill"})


class Prepared:
    """What is known of a problem before any sheet of it is read.

    Parameters
    ----------
    settled : the places of the problem are those of the sheet, where each cell is judged as it was written
    """

    def __init__(self, problem: Problem, *, settled: bool = False) -> None:
        self.problem = problem
        self.settled = settled or not problem.as_written
        self.graph: Graph = problem.graph()
        self.ids = [*self.graph.inputs, *self.graph.steps]
        self.lineage = Lineage(self.graph, problem.decimals_of)
        self.reads_page = problem.marking.rounding != "printed"
        self.rules = {step_id: _rules(problem, step_id) for step_id in self.ids}
        self.points = problem.points()
        self.full = self.graph.evaluate(FLOATING).numbers
        self.names = Names(self.graph, self.points)
        self.reader = Reader(problem, self.names, self.full)
        self.explainer = Explainer(self.lineage)
        every = list(routes(self.graph))
        #: Other right ways, and those that only a learner's own wrong numbers can tell from the usual one.
        self.routes = [route for route in every if route.id not in _OWN_ROUTES]
        self.own_routes = [route for route in every if route.id in _OWN_ROUTES]
        self.hidden_back = self._hidden_back()
        self._rounded: dict[str, FloatArray] = {}
        self._heads: dict[float | None, Family] = {}

    def head(self, eps: float | None) -> Family:
        """The right calculation whatever is written, by a person or by a program of this precision."""
        if eps not in self._heads:
            self._heads[eps] = Family([Chain(self.lineage, habit) for habit in self._habits(eps)])
        return self._heads[eps]

    def _habits(self, eps: float | None) -> Sequence[Habit]:
        rounding = self.problem.marking.rounding
        eps = _PRECISIONS.get(rounding, eps)
        if eps is not None:
            return programs(eps)
        return BY_HEAD if rounding == "hand" else (FULL,)

    def _hidden_back(self) -> dict[str, BoolArray]:
        """By backward step, where a score is hidden: a program may set its gradient to 0 there, whatever its weight was."""
        found: dict[str, BoolArray] = {}
        for step in self.graph.steps.values():
            if step.op.name != "mask":
                continue
            hidden = np.isneginf(self.full[step.inputs[1]])
            for step_id in (step.id, *step.inputs[:1]):
                part, _, name = step_id.rpartition(".")
                back = f"{part}.G_{name}" if part else f"G_{name}"
                if back in self.graph.steps:
                    found[back] = np.broadcast_to(hidden, self.lineage.shapes[back])
        return found

    def rounded(self, step_id: str) -> FloatArray:
        """The right numbers of a step as they stand on a page."""
        found = self._rounded.get(step_id)
        if found is None:
            found = self._rounded[step_id] = round_decimal(self.full[step_id], self.lineage.places[step_id])
        return found


def _rules(problem: Problem, step_id: str) -> Rules:
    """How answers to a step are read."""
    own = problem.is_as_written(step_id)
    by_person = problem.marking.rounding == "hand"
    return Rules(problem.decimals_of(step_id), by_person, short=not own, as_written=own)
