"""One sheet: every written step judged, the first wrong one found, its mistake named, the rest followed through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from attncli.arithmetic.floating import FLOATING
from attncli.arithmetic.hand import Hand
from attncli.arithmetic.interval import Interval, IntervalArithmetic
from attncli.marking.catalogue import did, rank
from attncli.marking.chain import Chain, followers
from attncli.marking.explain import Explainer, Named, fits
from attncli.marking.judge import Judgement, judge
from attncli.marking.routes import Route, routes
from attncli.marking.slips import slips
from attncli.marking.written import Written, meets
from attncli.message import N_, Message
from attncli.problems.answers import Answer, Sheet
from attncli.problems.problem import Problem
from attncli.record import Record

#: A matrix from a program counts as right up to here, relative to its largest entry; rounding there is no learner's.
RIGHT = frozenset({"correct", "route", "imprecise"})


class StepMark(Record):
    """One step of a marked sheet (FORMATS).

    Parameters
    ----------
    cells : wrong cells, counted from 1, tokens as rows
    said : what there is to say, in order
    own : what follows from the learner's own earlier values, where that was worked out
    """

    id: str
    verdict: str
    points: Fraction
    max_points: Fraction
    mistakes: tuple[Named, ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    said: tuple[Message, ...] = ()
    written: Any = None
    own: Any = None


class Marked(Record):
    """A marked sheet.

    Parameters
    ----------
    steps : every step that was asked for or written, in the order of the calculation
    notes : remarks on the sheet as a whole
    layout : "rows", or "columns" where the sheet turned out to be written with tokens as columns
    """

    problem: Problem
    student: str | None
    steps: tuple[StepMark, ...]
    notes: tuple[Message, ...] = ()
    layout: str = "rows"

    @property
    def score(self) -> Fraction:
        return sum((step.points for step in self.steps), Fraction(0))

    @property
    def max_score(self) -> Fraction:
        return sum((step.max_points for step in self.steps), Fraction(0))

    @property
    def first_wrong(self) -> str | None:
        """The first step whose verdict is wrong or malformed."""
        return next((step.id for step in self.steps if step.verdict in ("wrong", "malformed")), None)

    @property
    def ok(self) -> bool:
        return all(step.verdict in RIGHT or step.verdict == "blank" for step in self.steps)


class Marker:
    """Marks sheets of one problem. Made once, used for a whole class; it keeps nothing of a sheet."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.graph()
        self.followers = followers(self.graph)
        self.explainer = Explainer(self.graph)
        self.routes = list(routes(self.graph))
        self.ids = [*self.graph.inputs, *self.graph.steps]
        self.points = _points(problem, self.graph.steps)
        self._by_places = {
            places: IntervalArithmetic(places) for places in {problem.decimals_of(id) for id in self.graph.steps}
        }
        self._hand = problem.marking.get("rounding", "hand") == "hand"
        self._right = self._chain(self._hand)
        self._right_program = self._chain(False)
        self._full = self.graph.evaluate(FLOATING).numbers
        self._carried = self._evaluated_by_hand()
        self.aliases = aliases(self.graph)

    def _evaluated_by_hand(self) -> Mapping[str, Any]:
        return self.graph.evaluate(Hand(self.problem.decimals)).numbers if not self.problem.step_decimals else {}

    def _chain(self, by_hand: bool) -> Chain:
        def settle(id: str, value: Any) -> Any:
            return self._by_places[self.problem.decimals_of(id)].settle(value) if by_hand else value

        return Chain(self.graph, IntervalArithmetic(None), self.followers, settle)

    def mark(self, sheet: Sheet) -> Marked:
        """The sheet, marked; also where it is written with tokens as columns throughout."""
        with np.errstate(all="ignore"):
            answers, unknown = self._named(sheet)
            marked = _Marking(self, answers, sheet.student, unknown, sheet.notes).run()
            if marked.ok or not any(
                answer.matrix is not None and answer.matrix.values.ndim >= 2 for answer in answers.values()
            ):
                return marked
            turned = {id: answer.transposed() for id, answer in answers.items()}
            other = _Marking(self, turned, sheet.student, unknown, sheet.notes).run()
        if other.ok and not marked.ok:
            note = Message(
                N_("The whole sheet is written with tokens as columns. That is right too; it was read that way.")
            )
            return other.changed(notes=(*other.notes, note), layout="columns")
        return marked

    def _named(self, sheet: Sheet) -> tuple[dict[str, Answer], dict[str, Answer]]:
        """Answers by step id; symbols of the field count where they are unambiguous."""
        known: dict[str, Answer] = {}
        unknown: dict[str, Answer] = {}
        for name, answer in sheet.answers.items():
            id = name if name in self.graph else self.aliases.get(name)
            if id is None or id in known:
                unknown[name] = answer
            else:
                known[id] = answer if id == name else answer.changed(read_as=name)
        return known, unknown

    def undetectable(self) -> list[Named]:
        """Mistakes that this exercise cannot tell from the right answer: a remark for its author."""
        found = []
        with np.errstate(all="ignore"):
            for id in self.points:
                for mistake in self.explainer.mistakes(id):
                    if self._hidden_by_numbers(id, mistake):
                        found.append(Named(id, mistake.id))
        return list({(named.step, named.id): named for named in found}.values())

    def _hidden_by_numbers(self, id: str, mistake: Any) -> bool:
        right = self._right.raw(id)
        try:
            wrong = self._right.fork(swap=mistake.swap).raw(id)
        except (ValueError, IndexError):
            return False
        half = 0.5 * 10.0 ** -self.problem.decimals_of(id)
        if tuple(wrong.shape) != tuple(right.shape):
            return False
        return bool((meets(Interval(wrong.lo - half, wrong.hi + half), right)).all())


class _Marking:
    """One pass over one sheet, in the order of the calculation."""

    def __init__(
        self,
        marker: Marker,
        answers: Mapping[str, Answer],
        student: str | None,
        unknown: Mapping[str, Answer],
        notes: tuple[Message, ...],
    ) -> None:
        self.marker = marker
        self.answers = answers
        self.student = student
        self.unknown = unknown
        self.notes = notes
        program = any(answer.eps is not None for answer in answers.values())
        self.true = marker._right_program if program else marker._right
        self.own = self.true
        self.trivial: set[str] = set()
        self.steps: list[StepMark] = []

    def run(self) -> Marked:
        if not self._all_plainly_right():
            for id in self.marker.ids:
                if id in self.answers:
                    self.steps.append(self._step(id, self.answers[id]))
                elif id in self.marker.points:
                    self.steps.append(self._mark(id, "blank"))
        for name, answer in self.unknown.items():
            self.steps.append(self._unknown(name, answer))
        return Marked(self.marker.problem, self.student, tuple(self.steps), self.notes)

    def _all_plainly_right(self) -> bool:
        """The common case, quickly: every cell is the true number rounded, or every one is what a hand that rounds
        each line comes to. Both are right calculations, so nothing more has to be found out."""
        if self.unknown:
            return False
        for numbers in (self.marker._full, self.marker._carried):
            if numbers and all(self._plainly_right(id, answer, numbers) for id, answer in self.answers.items()):
                for id in self.marker.ids:
                    if id in self.answers:
                        self.steps.append(self._mark(id, "correct", said=self._read_as(self.answers[id])))
                    elif id in self.marker.points:
                        self.steps.append(self._mark(id, "blank"))
                return True
        return False

    def _plainly_right(self, id: str, answer: Answer, numbers: Mapping[str, Any]) -> bool:
        matrix = answer.matrix
        if matrix is None or matrix.blank is not None or answer.eps is not None:
            return False
        right = numbers[id]
        if matrix.shape != right.shape:
            return False
        half = 0.5 * 10.0 ** -self.marker.problem.decimals_of(id)
        near = np.abs(matrix.values - right) <= half * (1 - 1e-9)
        return bool((near | (matrix.values == right)).all())

    def _mark(self, id: str, verdict: str, share: Fraction | None = None, **more: Any) -> StepMark:
        most = self.marker.points.get(id, Fraction(0))
        credit = _credit(self.marker.problem, verdict) if share is None else share
        return StepMark(id, verdict, most * credit, most, **more)

    def _step(self, id: str, answer: Answer) -> StepMark:
        if answer.error is not None:
            return self._mark(id, "malformed", said=(answer.error,))
        written = self._shaped(id, answer)
        if written is None:
            return self._odd_shape(id, answer)
        if written.blank.all():
            return self._mark(id, "blank")
        places = self.marker.problem.decimals_of(id)
        found = judge(written, self.true.raw(id), places)
        said = self._read_as(answer)
        if found.verdict != "wrong":
            return self._right(id, written, found, said)
        route = self._route(id, written, places)
        if route is not None:
            return self._mark(id, "route", said=(*said, route), written=written.values)
        return self._wrong(id, written, found, places, said)

    def _read_as(self, answer: Answer) -> tuple[Message, ...]:
        return () if answer.read_as is None else (Message(N_("(written as {name})"), name=answer.read_as),)

    def _shaped(self, id: str, answer: Answer) -> Written | None:
        """What was written, in the step's shape; a vector may be written as a row or as a column."""
        assert answer.matrix is not None
        expected = self.marker.graph.shape(id)
        shown = answer.written()
        if shown.values.shape == expected:
            return shown
        flat = [size for size in expected if size != 1], [size for size in shown.values.shape if size != 1]
        if len(flat[0]) <= 1 and flat[0] == flat[1]:
            return shown.at(lambda cells: cells.reshape(expected))
        return None

    def _right(self, id: str, written: Written, found: Judgement, said: tuple[Message, ...]) -> StepMark:
        self._give(id, found.stands, found.stands)
        if found.truncated:
            said = (*said, Message(N_("Right, but cut off instead of rounded: round the last decimal next time.")))
        if found.verdict == "imprecise":
            places = self.marker.problem.decimals_of(id)
            said = (*said, Message(N_("Right as far as it goes; {places} decimals were asked for."), places=places))
        share = None
        if written.blank.any():
            filled = Fraction(int((~written.blank).sum()), written.blank.size)
            share = _credit(self.marker.problem, found.verdict) * filled
            said = (*said, Message(N_("Some cells are still blank.")))
        return self._mark(id, found.verdict, share, said=said, written=written.values)

    def _give(self, id: str, true: Interval | None, own: Interval) -> None:
        """Later steps go on from what was written."""
        same = self.true is self.own
        if id in self.marker.graph.inputs:
            return
        if true is not None:
            self.true = self.true.fork(given={id: true})
        self.own = self.true if same and true is own else self.own.fork(given={id: own})

    def _route(self, id: str, written: Written, places: int) -> Message | None:
        """Another right way that comes to what was written; from here on it is the way."""
        for route in self.marker.routes:
            if id in route.at and not set(route.swap) & set(self.true.given):
                other = self.true.fork(swap=route.swap)
                found = judge(written, other.raw(id), places)
                if found.verdict != "wrong":
                    self._take(other, route, id, found)
                    return route.said
        return self._constant(id, written, places)

    def _take(self, other: Chain, route: Route, id: str, found: Judgement) -> None:
        same = self.true is self.own
        self.true = other.fork(given={id: found.stands})
        self.own = self.true if same else self.own.fork(swap=route.swap, given={id: found.stands})

    def _constant(self, id: str, written: Written, places: int) -> Message | None:
        """Another constant taken away from every visible score of a line."""
        step = self.marker.graph.steps.get(id)
        if step is None or step.op.name != "subtract" or step.phase != "forward" or not step.params.get("column"):
            return None
        source = self.true.carried(step.inputs[0])
        stands = written.rounded_to(places)
        visible = np.isfinite(written.values)
        if not np.array_equal(np.isneginf(written.values), np.isneginf(source.hi)) or not visible.any(-1).all():
            return None
        lo = np.where(visible, source.lo - stands.hi, -np.inf).max(-1)
        hi = np.where(visible, source.hi - stands.lo, np.inf).min(-1)
        if not (lo <= hi).all():
            return None
        self._give(id, stands, stands)
        return Message(N_("Right: you took away a constant of your own. Any constant leaves the weights as they are."))

    def _wrong(self, id: str, written: Written, found: Judgement, places: int, said: tuple[Message, ...]) -> StepMark:
        cells = _cells(found.wrong)
        if self.own is not self.true:
            mine = judge(written, self.own.raw(id), places)
            if mine.verdict != "wrong":
                return self._followed(id, written, mine, said)
        if id in self.marker.graph.inputs:
            return self._mark(id, "wrong", cells=cells, said=said, written=written.values)
        own = self.own.raw(id)
        named = self._named(id, written, found, places)
        self.own = self.own.fork(given={id: self._carried_wrong(id, written, named, places)})
        if _is_trivial(written.values) and not _is_trivial(self.marker._full[id]):
            self.trivial.add(id)
        said = (*said, *(did(mistake.id) for mistake in named[:3]))
        return self._mark(
            id,
            "wrong",
            mistakes=tuple(named),
            cells=cells,
            said=said,
            written=written.values,
            own=(own.lo + own.hi) / 2,
        )

    def _carried_wrong(self, id: str, written: Written, named: list[Named], places: int) -> Interval:
        stands = written.rounded_to(places)
        if written.blank.any():
            own = self.own.raw(id)
            stands = Interval(np.where(written.blank, own.lo, stands.lo), np.where(written.blank, own.hi, stands.hi))
        return stands

    def _followed(self, id: str, written: Written, mine: Judgement, said: tuple[Message, ...]) -> StepMark:
        """Right from the learner's own earlier values."""
        self.own = self.own.fork(given={id: mine.stands})
        if self._follows_from_trivial(id):
            refused = Message(
                N_("This follows from your own line above, but that line makes everything after it trivial: no credit.")
            )
            return self._mark(id, "wrong", Fraction(0), said=(*said, refused), written=written.values, cells=())
        text = Message(N_("Right from your own earlier values."))
        return self._mark(id, "follow_through", said=(*said, text), written=written.values)

    def _follows_from_trivial(self, id: str) -> bool:
        return any(id in self.marker.followers[wrong] for wrong in self.trivial)

    def _named(self, id: str, written: Written, found: Judgement, places: int) -> list[Named]:
        chains = [self.true] if self.own is self.true else [self.own, self.true]
        open_steps = self._open_steps(id)
        explainer = self.marker.explainer
        named = explainer.singles(id, written, chains, places, open_steps)
        for chain in chains:
            for slip in slips(written, chain.raw(id), judge(written, chain.raw(id), places).wrong, places):
                if not any(one.step == id and one.id == slip for one in named):
                    named.append(Named(id, slip))
        if not named and open_steps:
            return explainer.pairs(id, written, chains, places, open_steps)
        return sorted(named, key=lambda one: (one.step != id, rank(one.id)))

    def _open_steps(self, id: str) -> list[str]:
        """Unwritten steps that lead to this one without passing a written one."""
        graph, found, waiting = self.marker.graph, set[str](), [id]
        while waiting:
            step = graph.steps.get(waiting.pop())
            for source in () if step is None else step.inputs:
                if source in graph.steps and source not in found and source not in self.answers:
                    found.add(source)
                    waiting.append(source)
        return [step for step in graph.steps if step in found]

    def _odd_shape(self, id: str, answer: Answer) -> StepMark:
        """A shape that is not the step's: a mistake of the catalogue may explain it, else it cannot be marked."""
        from attncli.graph import show_shape

        written = answer.written()
        places = self.marker.problem.decimals_of(id)
        chains = [self.true] if self.own is self.true else [self.own, self.true]
        named = self.marker.explainer.singles(id, written, chains, places, self._open_steps(id))
        for chain in chains:
            named += [Named(id, slip) for slip in slips(written, chain.raw(id), None, places)]
        if not named:
            shape = Message(
                N_("The shape is {given}; this step is {expected}."),
                given=show_shape(written.values.shape),
                expected=show_shape(self.marker.graph.shape(id)),
            )
            return self._mark(id, "malformed", said=(*self._read_as(answer), shape), written=written.values)
        if any(one.id == "layout-transposed" for one in named):
            turned = written.at(lambda cells: cells.swapaxes(-1, -2)).rounded_to(places)
            self.own = self.own.fork(given={id: turned})
        unique = list({(one.step, one.id): one for one in named}.values())
        unique.sort(key=lambda one: (one.step != id, rank(one.id)))
        said = (*self._read_as(answer), *(did(one.id) for one in unique[:3]))
        cells = _cells(np.ones(written.values.shape, dtype=np.bool_))
        return self._mark(id, "wrong", mistakes=tuple(unique), cells=cells, said=said, written=written.values)

    def _unknown(self, name: str, answer: Answer) -> StepMark:
        from attncli.message import closest

        likely = closest(name, self.marker.ids)
        if likely is None:
            text = Message(N_("“{name}” is not a step of this exercise."), name=name)
        else:
            text = Message(
                N_("“{name}” is not a step of this exercise, or was given twice. Did you mean “{likely}”?"),
                name=name,
                likely=likely,
            )
        return StepMark(name, "malformed", Fraction(0), Fraction(0), said=(text,))


def _credit(problem: Problem, verdict: str) -> Fraction:
    """The share of a step's points that a verdict is worth."""
    if verdict in ("correct", "route"):
        return Fraction(1)
    if verdict in ("follow_through", "imprecise"):
        default = {"follow_through": 1.0, "imprecise": 0.5}[verdict]
        return Fraction(str(problem.marking.get(verdict, default)))
    return Fraction(0)


def _points(problem: Problem, steps: Mapping[str, Any]) -> dict[str, Fraction]:
    """Points by step: as the problem says, else 1 for every published step, else 1 for every step."""
    given = problem.marking.get("points") or {}
    if given:
        return {id: Fraction(str(points)) for id, points in given.items()}
    asked = [id for id in problem.published if id in steps] or list(steps)
    return dict.fromkeys(asked, Fraction(1))


def _cells(wrong: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) + 1 for i in index) for index in np.argwhere(wrong))


def _is_trivial(values: Any) -> bool:
    """All zero, all equal, or an identity matrix: from there on anybody is right."""
    finite = values[np.isfinite(values)]
    if values.size > 1 and finite.size == values.size and np.ptp(finite) == 0:
        return True
    return values.ndim == 2 and values.shape[0] == values.shape[1] > 1 and np.array_equal(values, np.eye(len(values)))


def aliases(graph: Any) -> dict[str, str]:
    """Symbols that stand for one step only: S, G_S, P for A."""
    import re

    names: dict[str, list[str]] = {}
    for id in (*graph.steps, *graph.inputs):
        plain = re.sub(r"[{}\\ ]", "", graph.symbol(id))
        names.setdefault(plain, []).append(id)
        if plain.startswith("G_"):
            names.setdefault("d" + plain[2:], []).append(id)
    if "A" in graph.steps:
        names.setdefault("P", []).append("A")
    return {name: ids[0] for name, ids in names.items() if len(set(ids)) == 1 and name not in graph}


__all__ = ["Marked", "Marker", "StepMark", "fits"]


def marks(problem: Problem, sheets: Iterator[Sheet]) -> Iterator[Marked]:
    """Sheets of one problem, marked one by one."""
    marker = Marker(problem)
    for sheet in sheets:
        yield marker.mark(sheet)
