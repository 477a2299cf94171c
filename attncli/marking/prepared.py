"""What is known of a problem before any sheet is read: its numbers, ways and rules, for all passes over its sheets."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import round_decimal
from attncli.core.graph import Graph
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import Message
from attncli.marking.chain import Chain, Family, Lineage
from attncli.marking.explain import Explainer
from attncli.marking.habits import BY_HEAD, FROM_THE_PAGE, FULL, Habit, Program, programs
from attncli.marking.judge import Line, Rules
from attncli.marking.papers import Reader
from attncli.marking.parts import parts_wrong
from attncli.marking.seeds import carried_hull
from attncli.mistakes.mistake import instead
from attncli.mistakes.routes import OTHER_CONSTANT, Route, other_constants, routes
from attncli.problems.names import Names
from attncli.problems.problem import Problem

#: Steps worked out for other right ways to one line, those that are gone alone first.
MOST_STEPS_OF_ROUTES = 1600

#: Precisions that a problem may say its answers come from.
_PRECISIONS = {"float32": float(np.finfo(np.float32).eps), "float16": float(np.finfo(np.float16).eps)}

#: Ways that are open only to a learner's own wrong numbers.
_OWN_ROUTES = frozenset({"where-fill"})


class Prepared:
    """What is known of a problem before any sheet of it is read, and what all passes over sheets ask.

    Parameters
    ----------
    settled : the places of the problem are those of the sheet, where each cell is judged as it was written
    """

    def __init__(self, problem: Problem, *, settled: bool = False) -> None:
        self.problem = problem
        self.settled = settled or not problem.as_written
        self.graph: Graph = problem.graph()
        self.ids = [*self.graph.inputs, *self.graph.steps]
        self.shapes = {step_id: self.graph.shape(step_id) for step_id in self.ids}
        self.lineage = Lineage(self.graph, problem.decimals_of)
        self.rounding = problem.marking.rounding
        self.reads_page = self.rounding != "printed"
        by_person = self.rounding == "hand"
        self.rules = {step_id: _rules(problem, step_id, by_person) for step_id in self.ids}
        self.points = problem.points()
        self.full = self.graph.evaluate(FLOATING).numbers
        self.names = Names(self.graph, self.points)
        self.reader = Reader(problem, self.names, self.full)
        self._rounded: dict[str, FloatArray] = {}
        self._heads: dict[float | None, Family] = {}
        self.explainer = Explainer(self.graph, self.lineage)
        every = list(routes(self.graph))
        self.routes = [route for route in every if route.id not in _OWN_ROUTES]
        self._own_routes = [route for route in every if route.id in _OWN_ROUTES]
        self.hidden_back = self._hidden_back()

    def head(self, eps: float | None) -> Family:
        """The right calculation whatever is written, by a person or by a program of this precision."""
        if eps not in self._heads:
            self._heads[eps] = Family([Chain(self.lineage, habit) for habit in self._habits(eps)])
        return self._heads[eps]

    def _habits(self, eps: float | None) -> Sequence[Habit | Program]:
        if self.rounding in _PRECISIONS:
            return programs(_PRECISIONS[self.rounding])
        if eps is not None:
            return programs(eps)
        return BY_HEAD if self.rounding == "hand" else (FULL,)

    def from_page(self, eps: float | None, head: Family) -> Family:
        """The same for those who go on with what stands on their page: nothing yet."""
        return Family(
            [chain.fork() for chain in head.chains if isinstance(chain.habit, Program) or chain.habit in FROM_THE_PAGE]
        )

    def ways_to(self, step_id: str, written: Sequence[str], gone: Sequence[Route]) -> list[Route]:
        """Other right ways through steps that were not written down before this one, beside those that were gone already;
        then two of them together."""
        swap = {at: one for route in gone for at, one in route.swap.items()}
        moved = frozenset[str]().union(*(route.moved for route in gone))
        near = {step_id, *self.open_steps(step_id, written)}
        done = {other for other in written if other != step_id}
        at_hand = {step_id, *self.graph.steps[step_id].inputs}
        fresh = [
            route
            for route in self.routes
            if (near & at_hand if route.at_hand else near).intersection(route.swap)
            and not set(route.swap) & ({*swap} | (done - self.lineage[step_id]))
            and not route.moved & moved
            and route.is_open(swap)
        ]
        pairs = [
            Route(one.id, {**one.swap, **other.swap}, other.said, moved=one.moved | other.moved)
            for i, one in enumerate(fresh)
            for other in fresh[i + 1 :]
            if not set(one.swap) & set(other.swap) and not one.moved & other.moved
        ]
        open_steps = sorted(near)
        costs = [self.explainer.steps_between(way.swap, step_id, open_steps) for way in (*fresh, *pairs)]
        afford = int(np.searchsorted(np.cumsum(costs), MOST_STEPS_OF_ROUTES, side="right"))
        return [*fresh, *pairs][: max(afford, 1)]

    def own_routes(self, step_id: str) -> Iterator[Route]:
        """Other ways that only a learner's own wrong numbers can tell from the usual one."""
        return (
            route
            for route in self._own_routes
            if any(step_id == at or step_id in self.lineage[at] for at in route.swap)
        )

    def open_steps(self, step_id: str, written: Iterable[str]) -> list[str]:
        """Unwritten steps that lead to this one without passing a written one."""
        closed = set(written)
        found, waiting = set[str](), [step_id]
        while waiting:
            step = self.graph.steps.get(waiting.pop())
            for source in () if step is None else step.inputs:
                if source in self.graph.steps and source not in found and source not in closed:
                    found.add(source)
                    waiting.append(source)
        return [step for step in self.graph.steps if step in found]

    def own_constants(
        self, step_id: str, row: int, line: Line, entries: Container[str], right: Callable[[float | None], Family]
    ) -> Iterator[Route]:
        """The ways of a sheet that took another constant away from its scores, if this line of it shows that.

        Parameters
        ----------
        row : of the sheet among those that `right` is worked out for
        entries : what stands on the sheet
        """
        step = self.graph.steps[step_id]
        shifted = self.graph.steps.get(step.inputs[0]) if step.op.name == "exp" else step
        if (
            shifted is None
            or step.phase != "forward"
            or shifted.op.name != "subtract"
            or not shifted.params.get("column")
        ):
            return
        if line.blank is not None or (shifted is not step and shifted.id in entries):
            return
        unit, chains = 10.0 ** -self.lineage.places[step_id], right(line.eps).chains
        carried = [chain.fork(rows=np.array([row])).carried(shifted.inputs[0])[0] for chain in chains]
        sources = [*zip(carried, carried, strict=True), carried_hull(chains[0], row, shifted.inputs[0], shifted.id)]
        for taken in other_constants(sources, line.values[0], unit, step is not shifted):
            swap = instead(shifted, partial(_without, taken), shifted.inputs[0])
            yield Route("other-constant", dict(swap), Message(OTHER_CONSTANT))

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
                    found[back] = np.broadcast_to(hidden, self.shapes[back])
        return found

    def parts_wrong(self, step_id: str, line: Line, chain: Chain) -> tuple[Message, ...]:
        """What a wrong part of a sum says about one sheet's line."""
        return parts_wrong(self.graph, chain, step_id, line, self.rules[step_id])

    def rounded(self, step_id: str) -> FloatArray:
        """The right numbers of a step as they stand on a page."""
        found = self._rounded.get(step_id)
        if found is None:
            found = self._rounded[step_id] = round_decimal(self.full[step_id], self.lineage.places[step_id])
        return found


def _rules(problem: Problem, step_id: str, by_person: bool) -> Rules:
    """How answers to a step are read."""
    own = problem.is_as_written(step_id)
    return Rules(problem.decimals_of(step_id), by_person, short=not own, as_written=own)


def _without(taken: FloatArray, xp: Arithmetic, scores: Value) -> Value:
    """Every line of scores minus its own constant."""
    return xp.subtract(scores, taken)
