"""Sheets of one problem, marked one by one or many at once, by the same rules: a sheet is a batch of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.rounding import round_decimal
from attncli.core.graph import Graph, Swap
from attncli.core.matrix import BoolArray, FloatArray
from attncli.core.message import N_, Message
from attncli.marking.chain import MISFITS, Chain, Family, Setting
from attncli.marking.explain import Explainer, Named
from attncli.marking.feedback import Feedback
from attncli.marking.habits import BY_HEAD, FROM_THE_PAGE, FULL, Habit, Program, programs
from attncli.marking.judge import CUT, Line, Rules, judge
from attncli.marking.marked import RIGHT, Marked, StepMark
from attncli.marking.own_pass import OwnPass
from attncli.marking.papers import Paper, Reader
from attncli.marking.parts import parts_wrong
from attncli.marking.right_pass import RightPass
from attncli.marking.seeds import carried_hull
from attncli.marking.verdict import Verdicts
from attncli.mistakes.entry import instead
from attncli.mistakes.routes import OTHER_CONSTANT, Route, other_constant, routes
from attncli.problems.answers import Answer, Sheet
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.question import points_of

#: Steps worked out for other right ways to one line, those that are gone alone first.
MOST_STEPS_OF_ROUTES = 1600

#: Sheets that `Marker.mark_many` takes up at once.
CHUNK = 256

#: Verdicts of lines that are right.
_WITH_CREDIT = frozenset({"correct", "route", "imprecise"})

#: Matrices that must be written with tokens as columns before the whole sheet is taken to be.
_TURNED = 2

_COLUMNS = N_("The whole sheet is written with tokens as columns. That is right too; it was read that way.")

#: Precisions that a problem may say its answers come from.
_PRECISIONS = {"float32": float(np.finfo(np.float32).eps), "float16": float(np.finfo(np.float16).eps)}

#: Ways that are open only to a learner's own wrong numbers.
_OWN_ROUTES = frozenset({"where-fill"})


class Marker:
    """Marks sheets of one problem. Made once, used for a whole class; of a sheet it keeps nothing.

    Parameters
    ----------
    settled : the places of the problem are those of the sheet, where each cell is judged as it was written
    """

    def __init__(self, problem: Problem, *, settled: bool = False) -> None:
        self.problem = problem
        self.settled = settled or not problem.as_written
        self.graph: Graph = problem.graph()
        self.ids = [*self.graph.inputs, *self.graph.steps]
        self.shapes = {id: self.graph.shape(id) for id in self.ids}
        self.setting = Setting(self.graph, problem.decimals_of)
        self.rounding = problem.marking.get("rounding", "hand")
        self.reads_page = self.rounding != "printed"
        by_person = self.rounding == "hand"
        self.rules = {id: _rules(problem, id, by_person) for id in self.ids}
        self.points = points_of(problem, self.graph.steps)
        self.full = self.graph.evaluate(FLOATING).numbers
        self.reader = Reader(self.shapes, self.full, self.setting.places, problem.is_as_written, self.rounding)
        self.names = Names(self.graph, self.points)
        self._rounded: dict[str, FloatArray] = {}
        self._heads: dict[float | None, Family] = {}
        self.explainer = Explainer(self.graph, self.setting)
        every = list(routes(self.graph))
        self.routes = [route for route in every if route.id not in _OWN_ROUTES]
        self._own_routes = [route for route in every if route.id in _OWN_ROUTES]
        self.hidden_back = self._hidden_back()
        self.feedback = Feedback(self)

    # What all passes share.

    def head(self, eps: float | None) -> Family:
        """The right calculation whatever is written, by a person or by a program of this precision."""
        if eps not in self._heads:
            self._heads[eps] = Family([Chain(self.setting, habit) for habit in self._habits(eps)])
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

    def ways_to(self, id: str, written: Sequence[str], gone: Mapping[str, Swap]) -> list[Route]:
        """Other right ways through steps that were not written down before this one; then two of them together."""
        near = {id, *self.open_steps(id, written)}
        done = {other for other in written if other != id}
        fresh = [
            route
            for route in self.routes
            if near.intersection(route.swap)
            and not set(route.swap) & ({*gone} | (done - self.setting[id]))
            and route.is_open(gone)
        ]
        pairs = [
            Route(one.id, {**one.swap, **other.swap}, other.said)
            for i, one in enumerate(fresh)
            for other in fresh[i + 1 :]
            if not set(one.swap) & set(other.swap)
        ]
        open_steps = sorted(near)
        costs = [self.explainer.steps_between(way.swap, id, open_steps) for way in (*fresh, *pairs)]
        afford = int(np.searchsorted(np.cumsum(costs), MOST_STEPS_OF_ROUTES, side="right"))
        return [*fresh, *pairs][: max(afford, 1)]

    def own_routes(self, id: str) -> Iterator[Route]:
        """Other ways that only a learner's own wrong numbers can tell from the usual one."""
        return (route for route in self._own_routes if any(id == at or id in self.setting[at] for at in route.swap))

    def open_steps(self, id: str, written: Iterable[str]) -> list[str]:
        """Unwritten steps that lead to this one without passing a written one."""
        closed = set(written)
        found, waiting = set[str](), [id]
        while waiting:
            step = self.graph.steps.get(waiting.pop())
            for source in () if step is None else step.inputs:
                if source in self.graph.steps and source not in found and source not in closed:
                    found.add(source)
                    waiting.append(source)
        return [step for step in self.graph.steps if step in found]

    def own_constant(self, first: RightPass, id: str, row: int) -> Route | None:
        """The way of a sheet that took another constant away from its scores, if this line shows it."""
        step = self.graph.steps[id]
        shifted = self.graph.steps.get(step.inputs[0]) if step.op.name == "exp" else step
        if (
            shifted is None
            or step.phase != "forward"
            or shifted.op.name != "subtract"
            or not shifted.params.get("column")
        ):
            return None
        line = first.lines[id].of([row])
        if line.blank is not None or (shifted is not step and shifted.id in first.papers[row].entries):
            return None
        source = carried_hull(first.right(line.eps).chains[0], row, shifted.inputs[0], shifted.id)
        taken = other_constant(source, line.values[0], 10.0 ** -self.setting.places[id], step is not shifted)
        if taken is None:
            return None
        swap = instead(shifted, partial(_without, taken), shifted.inputs[0])
        return Route("other-constant", dict(swap), Message(OTHER_CONSTANT))

    def _hidden_back(self) -> dict[str, BoolArray]:
        """By backward step, where a score is hidden: a program may set its gradient to 0 there, whatever its weight was."""
        found: dict[str, BoolArray] = {}
        for step in self.graph.steps.values():
            if step.op.name != "mask":
                continue
            hidden = np.isneginf(self.full[step.inputs[1]])
            for id in (step.id, *step.inputs[:1]):
                part, _, name = id.rpartition(".")
                back = f"{part}.G_{name}" if part else f"G_{name}"
                if back in self.graph.steps:
                    found[back] = np.broadcast_to(hidden, self.shapes[back])
        return found

    def parts_wrong(self, id: str, line: Line, chain: Chain) -> tuple[Message, ...]:
        """What a wrong part of a sum says about one sheet's line."""
        return parts_wrong(self.graph, chain, id, line, self.rules[id])

    def rounded(self, id: str) -> FloatArray:
        """The right numbers of a step as they stand on a page."""
        found = self._rounded.get(id)
        if found is None:
            found = self._rounded[id] = round_decimal(self.full[id], self.setting.places[id])
        return found

    # Marking.

    def mark(self, sheet: Sheet) -> Marked:
        """The sheet, marked; also where it is written with tokens as columns throughout."""
        return self.mark_many([sheet])[0]

    def mark_many(self, sheets: Sequence[Sheet]) -> list[Marked]:
        """Every sheet, marked; those of a kind side by side."""
        if not self.settled:
            return [self._as_written(sheet) for sheet in sheets]
        done: list[Marked] = []
        with np.errstate(all="ignore"):
            for start in range(0, len(sheets), CHUNK):
                done += self._chunk(sheets[start : start + CHUNK])
        return done

    def _as_written(self, sheet: Sheet) -> Marked:
        """A sheet marked at the places that stand on it: of a step the most that one of its cells has; of steps in between
        the most of all."""
        found = {id: _most_places(answer) for id, answer in self.named(sheet)[0].items()}
        most = max((places for places in found.values() if places), default=self.problem.decimals)
        by_step = {id: found.get(id) or most for id in self.ids if self.problem.is_as_written(id)}
        settled = self.problem.changed(
            step_decimals={**self.problem.step_decimals, **by_step}, as_written=frozenset(by_step)
        )
        return Marker(settled, settled=True).mark_many([sheet])[0]

    def _chunk(self, sheets: Sequence[Sheet]) -> list[Marked]:
        papers = [self._paper(sheet) for sheet in sheets]
        marked: dict[int, Marked] = {}
        for group in _together(papers):
            marked.update(zip(group, self._marked([papers[i] for i in group]), strict=True))
        done = [marked[i] for i in range(len(papers))]
        for i, other in self._turned(sheets, done):
            done[i] = other
        return done

    def _paper(self, sheet: Sheet, turned: bool = False) -> Paper:
        return self.reader.paper(sheet, *self.named(sheet), turned)

    def _turned(self, sheets: Sequence[Sheet], marked: Sequence[Marked]) -> Iterator[tuple[int, Marked]]:
        """The marks of the sheets that were written with tokens as columns, where reading them so earns more."""
        right = [sum(step.verdict in _WITH_CREDIT for step in one.steps) for one in marked]
        likely = [i for i, one in enumerate(marked) if not one.ok and 2 * right[i] <= len(sheets[i].answers)]
        rows = [i for i in likely if sum(_has_rows(answer) for answer in sheets[i].answers.values()) >= _TURNED]
        papers = {i: self._paper(sheets[i], turned=True) for i in rows}
        rows = [i for i in rows if sum(not entry.odd for entry in papers[i].entries.values()) > right[i]]
        for group in _together([papers[i] for i in rows]):
            first = RightPass(self, [papers[rows[at]] for at in group])
            first.run()
            for place, i in enumerate(rows[at] for at in group):
                if first.lines_right(place) <= right[i]:
                    continue
                turned = self._marked([papers[i]])[0]
                if turned.score > marked[i].score and (turned.ok or _lines_turned(marked[i]) >= _TURNED):
                    yield i, turned.changed(notes=(*turned.notes, Message(_COLUMNS)), layout="columns")

    def _marked(self, papers: Sequence[Paper]) -> list[Marked]:
        verdicts: list[Verdicts] = [{} for _ in papers]
        if papers:
            self._go_over(papers, list(range(len(papers))), (), verdicts)
        return [self.feedback.marked(paper, found) for paper, found in zip(papers, verdicts, strict=True)]

    def _go_over(
        self,
        papers: Sequence[Paper],
        rows: list[int],
        gone: tuple[tuple[str, Route], ...],
        verdicts: list[Verdicts],
    ) -> None:
        """Both passes over some sheets; those that went another right way once more along that."""
        first = RightPass(self, [papers[row] for row in rows], gone)
        first.run()
        left = set(range(len(rows)))
        for id, route, members in first.taken():
            self._go_over(papers, [rows[at] for at in members], (*gone, (id, route)), verdicts)
            left -= set(members)
        fine = self._fine(first)
        wrong = [at for at in sorted(left) if not fine[at]]
        for at in sorted(left.difference(wrong)):
            verdicts[rows[at]] = {id: first.verdict(id, at) for id in papers[rows[at]].entries}
        plain = [at for at in wrong if not first.papers[at].has_odd]
        for group in (plain, *([at] for at in wrong if first.papers[at].has_odd)):
            for at, found in zip(group, OwnPass(first, group).run() if group else (), strict=True):
                verdicts[rows[at]] = found

    def _fine(self, first: RightPass) -> BoolArray:
        """Which sheets are right in every line."""
        fine = np.array(
            [not any(entry.odd for entry in paper.entries.values()) for paper in first.papers], dtype=np.bool_
        )
        for id, line in first.lines.items():
            fine &= ~line.has | (first.judged[id].worst >= CUT)
        return fine

    def named(self, sheet: Sheet) -> tuple[dict[str, Answer], dict[str, Answer]]:
        """Answers by step id, under whatever name they stand, where it is unambiguous."""
        known: dict[str, Answer] = {}
        unknown: dict[str, Answer] = {}
        for name, answer in sheet.answers.items():
            id = self.names.find(name)
            if id is None or id in known or (id != name and id in sheet.answers):
                unknown[name] = answer
            else:
                known[id] = answer if id == name else answer.changed(read_as=name)
        return known, unknown

    def expected(self, marked: Marked) -> dict[str, FloatArray]:
        """What every step should have come to: from the learner's own lines where these are wrong, else with all digits."""
        own = Chain(self.setting, FULL)
        found: dict[str, FloatArray] = {}
        with np.errstate(all="ignore"):
            for step in marked.steps:
                if step.id not in self.shapes:
                    continue
                found[step.id] = self.full[step.id]
                if step.own is not None:
                    found[step.id] = step.own
                elif step.verdict == "follow_through":
                    with contextlib.suppress(*MISFITS):
                        found[step.id] = own.raw(step.id)[0]
                if step.written is not None and step.written.shape == self.shapes[step.id]:
                    own.give(step.id, step.written[None], ~np.isnan(step.written[None]))
        return found

    def undetectable(self) -> list[Named]:
        """Mistakes, made at any step, that this exercise cannot tell from the right answer: a remark for its author."""
        found = []
        asked = [id for id in self.points if id in self.graph.steps]
        with np.errstate(all="ignore"):
            for step in self.graph.steps:
                reached = [id for id in asked if id == step or id in self.setting[step]]
                for mistake in self.explainer.mistakes(step) if reached else ():
                    if self._is_hidden(mistake.swap, reached):
                        found.append(Named(step, mistake.id))
        return list({(named.step, named.id): named for named in found}.values())

    def _is_hidden(self, swap: Mapping[str, Swap], asked: Sequence[str]) -> bool:
        """Whether a wrong calculation, with all digits, is right at every step asked."""
        wrong = self.head(None).chains[0].fork(swap)
        for id in asked:
            try:
                value = wrong.raw(id)
            except MISFITS:
                return False
            if value.shape[1:] != self.shapes[id]:
                return False
            line = Line(value, None, None, np.ones(1, dtype=np.bool_))
            if judge(line, self.head(None).raws(id), self.rules[id]).worst[0] < CUT:
                return False
        return bool(asked)


def _together(papers: Sequence[Paper]) -> Iterator[list[int]]:
    """Which papers are judged side by side: all that people wrote; a program's arrays each by itself."""
    by_people = [at for at, paper in enumerate(papers) if paper.is_by_person]
    if by_people:
        yield by_people
    yield from ([at] for at, paper in enumerate(papers) if not paper.is_by_person)


def _rules(problem: Problem, id: str, by_person: bool) -> Rules:
    """How answers to a step are read."""
    own = problem.is_as_written(id)
    return Rules(problem.decimals_of(id), by_person, short=not own, as_written=own)


def _most_places(answer: Answer) -> int:
    """The most places that a cell of an answer has; 0 where none has a point."""
    if answer.matrix is None or answer.matrix.decimals is None:
        return 0
    return int(answer.matrix.decimals.max(initial=0))


def _without(taken: FloatArray, xp: Arithmetic, scores: Value) -> Value:
    """Every line of scores minus its own constant."""
    return xp.subtract(scores, taken)


def _has_rows(answer: Answer) -> bool:
    """Whether rows and columns can be told apart: a matrix, no vector."""
    return answer.matrix is not None and min(answer.matrix.values.shape[-2:], default=1) > 1


def _lines_turned(marked: Marked) -> int:
    """Steps that are right, but transposed."""
    return sum(any(named.id == "layout-transposed" for named in step.mistakes) for step in marked.steps)


def marks(problem: Problem, sheets: Iterable[Sheet]) -> Iterator[Marked]:
    """Sheets of one problem, marked one by one."""
    marker = Marker(problem)
    for sheet in sheets:
        yield marker.mark(sheet)


__all__ = ["RIGHT", "Marked", "Marker", "StepMark", "marks"]
