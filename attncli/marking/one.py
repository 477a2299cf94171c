"""One sheet: every written step judged, the first wrong one found, its mistake named, the rest followed through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.marking.chain import Chain
from attncli.marking.explain import MISFITS, Found, Named, Sieve, affordable
from attncli.marking.judge import Judgement, judge
from attncli.marking.marked import RIGHT, TWO_THINGS, Marked, StepMark
from attncli.marking.parts import parts_wrong
from attncli.message import N_, Message
from attncli.mistakes.catalogue import did, rank, without_vaguer
from attncli.mistakes.routes import Route, constant
from attncli.mistakes.slips import slips
from attncli.problems.answers import Answer
from attncli.problems.problem import Problem
from attncli.problems.written import Written

if TYPE_CHECKING:
    from attncli.core.graph import Graph
    from attncli.marking.company import Seen
    from attncli.marking.mark import Marker

#: Ways that a learner may have come to a wrong line that are remembered, to follow the rest through.
_MOST_WAYS = 6

#: Mistakes of a step that are said in words.
_TOLD = 3
#: Units in the last place that cutting off may make, once it has gone through a line or two.
_NEAR = 4.0

#: Steps worked out in bounds for other right ways to one line, the nearest in plain numbers first.
MOST_STEPS_OF_ROUTES = 800

#: Wrong cells of a step that are named in a message.
_MOST_CELLS = 6


class NotRight(Exception):
    """Raised at the first step that is not right, where only a sheet that is right throughout is of interest."""


class Marking:
    """One pass over one sheet, in the order of the calculation.

    Attributes
    ----------
    true : the right numbers, with what the learner wrote where that is right
    turned : every answer is read transposed
    cut : the learner cuts off instead of rounding; cuts : some right cell turned out to be cut off
    own : once something is wrong, the ways the learner may have come to it, each a chain of the learner's own numbers
    seen : what is known of this sheet from company, as long as its right numbers are those that were used there
    odd : some of the learner's own numbers have another shape than the right ones
    """

    def __init__(
        self,
        marker: Marker,
        answers: Mapping[str, Answer],
        student: str | None,
        unknown: Mapping[str, Answer],
        notes: tuple[Message, ...],
        turned: bool = False,
        cut: bool = False,
        seen: Seen | None = None,
    ) -> None:
        self.turned = turned
        self.cut = cut
        self.cuts = False
        self.marker = marker
        self.graph = marker.graph
        self.answers = answers
        self.student = student
        self.unknown = unknown
        self.notes = notes
        precisions = [answer.eps for answer in answers.values() if answer.eps is not None]
        self.true: Chain = marker.right(max(precisions, default=None)).fork()
        self.true.is_right = True
        self.own: list[Chain] = []
        self.odd = False
        self.seen = seen
        self.done: set[str] = set()
        self._reached = 0
        self.trivial: set[str] = set()
        self.only_right = False

    def run(self, only_right: bool = False) -> Any:
        """The marked sheet; with `only_right`, None as soon as a step is not right."""
        self.only_right = only_right
        if not self.unknown and not self.turned and self._plainly_right():
            return self.all_right()
        try:
            steps = [
                self._seen_right(id) or self._step(id, self.answers[id]) if id in self.answers else self._blank(id)
                for id in self._asked()
            ]
        except NotRight:
            return None
        unknown = [self._unknown(name) for name in self.unknown]
        return Marked(self.marker.problem, self.student, (*steps, *unknown), self.notes)

    def all_right(self) -> Marked:
        """The marks of a sheet of which every cell is known to be right."""
        steps = [self._plainly(id) if id in self.answers else self._blank(id) for id in self._asked()]
        return Marked(self.marker.problem, self.student, tuple(steps), self.notes)

    def _plainly(self, id: str) -> StepMark:
        """The mark of a step of which every cell is known to be right."""
        return self._mark(id, "correct", said=self._read_as(self.answers[id]), written=self._values(id))

    def _seen_right(self, id: str) -> StepMark | None:
        """The mark of a step that company has found right; of any other, take over what it should have come to."""
        seen = self.seen
        if seen is None or not seen.is_known(id):
            return None
        self._catch_up(seen, id)
        if not seen.is_right(id):
            raw = seen.raw(id)
            if raw is not None:
                self.true.take_raw(id, self.marker.same(id, raw))
            return None
        stands = seen.carried(id)
        if stands is None or self.odd:
            return None
        stands = self.marker.same(id, stands)
        self.true.give(id, stands)
        for own in self.own:
            own.give(id, self._own_stands(own, id) if own.is_apart(id) else stands)
        self.done.add(id)
        return self._plainly(id)

    def _own_stands(self, own: Chain, id: str) -> Interval:
        return judge(self.answers[id].written(), own, id, self.marker.problem.decimals_of(id), self.cut).stands

    def _catch_up(self, seen: Seen, id: str) -> None:
        """Take over what the unwritten steps before this one are carried on as."""
        for step in self.marker.before[id][self._reached :]:
            carried = None if step in self.answers else seen.carried(step)
            if carried is not None:
                self.true.take(step, self.marker.same(step, carried))
        self._reached = len(self.marker.before[id])

    def _values(self, id: str) -> Any:
        matrix = self.answers[id].matrix
        assert matrix is not None
        return (
            matrix.values if matrix.shape == self.marker.shapes[id] else matrix.values.reshape(self.marker.shapes[id])
        )

    def _asked(self) -> Iterator[str]:
        return (id for id in self.marker.ids if id in self.answers or id in self.marker.points)

    def _plainly_right(self) -> bool:
        """The common case, quickly: every cell is the true number rounded, or every one is what a hand that rounds
        each line comes to. Both are right calculations, so nothing more has to be found out."""
        return any(
            numbers and all(self._is_near(id, answer, numbers) for id, answer in self.answers.items())
            for numbers in (self.marker.full, self.marker.by_hand)
        )

    def _is_near(self, id: str, answer: Answer, numbers: Mapping[str, Any]) -> bool:
        matrix = answer.matrix
        if matrix is None or matrix.blank is not None or answer.eps is not None:
            return False
        right = numbers[id]
        if matrix.shape != right.shape:
            return False
        half = 0.5 * 10.0 ** -self.marker.problem.decimals_of(id)
        near = np.abs(matrix.values - right) <= half * (1 - 1e-9)
        return bool((near | (matrix.values == right)).all())

    def _blank(self, id: str) -> StepMark:
        return self._mark(id, "blank")

    def _mark(self, id: str, verdict: str, share: Fraction | None = None, **more: Any) -> StepMark:
        if self.only_right and verdict not in RIGHT and verdict != "blank":
            raise NotRight
        worth = self.marker.worth(id, verdict)
        if share is not None:
            worth = worth.changed(points=worth.max_points * share)
        return worth.with_words(**more) if more else worth

    def _step(self, id: str, answer: Answer) -> StepMark:
        if answer.error is not None:
            return self._mark(id, "malformed", said=(answer.error,))
        if self.turned:
            answer = answer.transposed()
        if answer.matrix is not None and answer.matrix.blank is not None and answer.matrix.blank.all():
            return self._blank(id)  # an empty text has no shape
        if self.odd:
            followed = self._followed_oddly(id, answer)
            if followed is not None:
                return followed
        written = self._shaped(id, answer)
        if written is None:
            return self._odd_shape(id, answer)
        if written.blank.all():
            return self._mark(id, "blank")
        places = self.marker.problem.decimals_of(id)
        said = self._read_as(answer)
        found = judge(written, self.true, id, places, self.cut)
        mark = None
        if found.verdict != "wrong":
            mark = self._right(id, written, found, places, said)
        elif self.own and id in self.graph.steps:
            mark = self._followed(id, written, places, said)
        mark = mark or self._by_a_route(id, written, places, said)
        if self.true.is_given_here(id):
            self.seen = None  # right in another way than company took it to be
        if mark is None:
            if self.only_right:
                raise NotRight
            mark = self._wrong(id, written, found, places, said)
        self.done.add(id)
        return mark

    def _read_as(self, answer: Answer) -> tuple[Message, ...]:
        return () if answer.read_as is None else (Message(N_("(written as {name})"), name=answer.read_as),)

    def _shaped(self, id: str, answer: Answer) -> Written | None:
        """What was written, in the step's shape; a vector may be written as a row or as a column."""
        assert answer.matrix is not None
        expected = self.marker.shapes[id]
        shown = answer.written()
        if shown.values.shape == expected:
            return shown
        flat = [size for size in expected if size != 1], [size for size in shown.values.shape if size != 1]
        # A single head may be written without its axis.
        one_head = len(expected) == 3 and expected[0] == 1 and shown.values.shape == expected[1:]
        if one_head or (len(flat[0]) <= 1 and flat[0] == flat[1]):
            return shown.at(lambda cells: cells.reshape(expected))
        return None

    def _right(self, id: str, written: Written, found: Judgement, places: int, said: tuple[Message, ...]) -> StepMark:
        if id in self.graph.steps:
            self.true.give(id, found.stands)
            for own in self.own:
                # Carried on in full, it may be the learner's own number and not the right one.
                own.give(id, judge(written, own, id, places, self.cut).stands if own.is_apart(id) else found.stands)
        if found.verdict == "correct" and not found.truncated and not written.blank.any():
            return self._mark(id, "correct", said=said, written=written.values)
        return self._fine(id, found.verdict, credit_of(self.marker.problem, found.verdict), written, found, said)

    def _fine(
        self,
        id: str,
        verdict: str,
        share: Fraction,
        written: Written,
        found: Judgement,
        said: tuple[Message, ...],
    ) -> StepMark:
        """The mark of a step that is right in some sense, with a word on cells cut off, short or blank."""
        if found.truncated:
            self.cuts = True
            said = (*said, Message(N_("Right, but cut off instead of rounded: round the last decimal next time.")))
        if found.verdict == "imprecise":
            places = self.marker.problem.decimals_of(id)
            said = (*said, Message(N_("Right as far as it goes; {places} decimals were asked for."), places=places))
            share = min(share, credit_of(self.marker.problem, "imprecise"))
        if written.blank.any():
            share *= Fraction(int((~written.blank).sum()), written.blank.size)
            said = (*said, Message(N_("Some cells are still blank.")))
        return self._mark(id, verdict, share, said=said, written=written.values)

    def _followed(self, id: str, written: Written, places: int, said: tuple[Message, ...]) -> StepMark | None:
        """Right from the learner's own earlier values: the ways that lead here stay, the others are given up."""
        judged = [(own, judge(written, own, id, places, self.cut)) for own in self.own if own.is_apart(id)]
        here = [(own, found) for own, found in judged if found.verdict != "wrong"]
        if not here:
            return None
        self.own = [own for own, _ in here]
        for own, found in here:
            own.give(id, found.stands)
        best = min((found for _, found in here), key=lambda found: found.verdict != "correct")
        return self._follow_through(id, written, best, said)

    def _followed_oddly(self, id: str, answer: Answer) -> StepMark | None:
        """Right from the learner's own earlier values, in their own odd shape; ways that lead nowhere are given up."""
        places, own = self.marker.problem.decimals_of(id), []
        for chain in self.own:
            try:
                shape = chain.raw(id).shape
            except MISFITS:
                continue
            if shape == self.marker.shapes[id]:
                own.append(chain)
                continue
            written = answer.written()
            if not _may_be_written_as(shape, written.values.shape):
                continue
            written = written.at(lambda cells, shape=shape: cells.reshape(shape))
            found = judge(written, chain, id, places, self.cut)
            if found.verdict != "wrong":
                chain.give(id, found.stands)
                self.own = [chain]
                self.done.add(id)
                return self._follow_through(id, written, found, self._read_as(answer))
        self.own = own
        return None

    def _follow_through(
        self, id: str, written: Written, found: Judgement, said: tuple[Message, ...], route: Message | None = None
    ) -> StepMark:
        if any(id in self.marker.followers[wrong] for wrong in self.trivial):
            refused = Message(
                N_("This follows from your own line above, but that line makes everything after it trivial: no credit.")
            )
            return self._mark(id, "wrong", Fraction(0), said=(*said, refused), written=written.values)
        said = (*said, Message(N_("Right from your own earlier values.")), *(() if route is None else (route,)))
        credit = credit_of(self.marker.problem, "follow_through")
        return self._fine(id, "follow_through", credit, written, found, said)

    def _by_a_route(self, id: str, written: Written, places: int, said: tuple[Message, ...]) -> StepMark | None:
        """Another right way that comes to what was written, from the right numbers or from the learner's own."""
        for chain in (self.true, *self.own):
            for route in self._near_routes(chain, id, written, places):
                other = chain.fork(swap=route.swap)
                found = judge(written, other, id, places, self.cut)
                if found.verdict != "wrong":
                    return self._take(chain, other, route, id, written, found, places, said)
            free = constant(chain, id, written, places)
            if free is not None:
                stands = written.rounded_to(places)
                found = Judgement("correct", False, np.zeros_like(written.blank), stands)
                return self._take(chain, chain, Route("other-constant", {}, free), id, written, found, places, said)
        return None

    def _near_routes(self, chain: Chain, id: str, written: Written, places: int) -> list[Route]:
        """Routes through steps that were not written down before this one; then two of them together.

        Where many steps lie between, those whose plain numbers come nearest to what was written.
        """
        open_steps = self._open_steps(id)
        near = {id, *open_steps}
        fresh = [
            route
            for route in self.marker.routes
            if near.intersection(route.swap)
            and not (set(route.swap) & (self.done | set(chain.swap)))
            and route.is_open(chain)
        ]
        pairs = [
            Route(f"{one.id} {other.id}", {**one.swap, **other.swap}, other.said)
            for i, one in enumerate(fresh)
            for other in fresh[i + 1 :]
            if not set(one.swap) & set(other.swap)
        ]
        ways = [*fresh, *pairs]
        costs = [self.marker.explainer.steps_between(way.swap, id, open_steps) for way in ways]
        if sum(costs) <= MOST_STEPS_OF_ROUTES:
            return ways
        sieve = Sieve(chain, id, written, places)
        numbers = [sieve.swapped(way.swap) for way in ways]
        distances = [
            sieve.distance(one) if one is not None and one.shape == written.values.shape else math.inf
            for one in numbers
        ]
        return [ways[i] for i in affordable(distances, costs, MOST_STEPS_OF_ROUTES)]

    def _take(
        self,
        chain: Chain,
        other: Chain,
        route: Route,
        id: str,
        written: Written,
        found: Judgement,
        places: int,
        said: tuple[Message, ...],
    ) -> StepMark:
        """From here on the route is the way."""
        if chain is self.true:
            self.true = other.fork(given={id: found.stands})
            self.true.is_right = True
            stands = written.rounded_to(places)
            self.own = [own.fork(swap=route.swap, given={id: stands}) for own in self.own]
            return self._fine(id, "route", Fraction(1), written, found, (*said, route.said))
        self.own = [other.fork(given={id: found.stands})]
        return self._follow_through(id, written, found, said, route.said)

    def _wrong(self, id: str, written: Written, found: Judgement, places: int, said: tuple[Message, ...]) -> StepMark:
        if id in self.graph.inputs:
            return self._mark(id, "wrong", cells=_cells(found.wrong), said=said, written=written.values)
        nearest = self.own[0] if self.own else self.true
        mine = nearest.raw(id)
        off = judge(written, nearest, id, places, self.cut).wrong if self.own else found.wrong
        self.cuts |= _is_close(written, mine, places)
        explained = self._explained(id, written, places)
        named = _named(explained, id)
        operands: Mapping[str, Any] = {}
        if named:
            said = (*said, *_told(explained, id, self.graph))
        else:
            words, operands = self._unexplained(id, written, off, places)
            said = (*said, *words)
        self._go_on(id, written, explained, places)
        if _is_trivial(written.values) and not _is_trivial(self.marker.full[id]):
            self.trivial.add(id)
        return self._mark(
            id,
            "wrong",
            mistakes=tuple(named),
            cells=_cells(off),
            said=said,
            written=written.values,
            own=_middle(mine),
            operands=operands,
        )

    def _chains(self) -> list[Chain]:
        """Numbers a step may have been worked out from: the learner's own, likeliest first, and the right ones."""
        return [*self.own, self.true]

    def _go_on(self, id: str, written: Written, explained: Sequence[Found], places: int) -> None:
        """Remember the ways the learner may have come to this wrong line."""
        ways = [(found.chain, found.swap) for found in explained]
        ways += [(chain, {}) for chain in self._chains()[: 1 if explained else 2]]
        own: list[Chain] = []
        seen: list[tuple[int, tuple[int, ...]]] = []
        for chain, whole in ways:
            swap = {at: one for at, one in whole.items() if at != id}
            key = (builtin_id(chain), tuple(builtin_id(one) for one in swap.values()))
            if key not in seen and len(own) < _MOST_WAYS:
                seen.append(key)
                fork = chain.fork(swap=swap) if swap else chain
                stands = judge(written, fork, id, places, self.cut).stands
                if id in whole and 1 in stands.shape:
                    stands = self._turned_as(chain.fork(swap=whole).raw(id).shape, stands)
                own.append(fork.fork(given={id: stands}))
                self.odd |= any(fork.raw(at).shape != self.marker.shapes[at] for at in swap)
        self.own = own

    def _turned_as(self, shape: tuple[int, ...], stands: Interval) -> Interval:
        """A vector that was written the usual way round, as it came out: one number for every column."""
        if shape == stands.shape or math.prod(shape) != stands.lo.size:
            return stands
        self.odd = True
        return Interval(stands.lo.reshape(shape), stands.hi.reshape(shape))

    def _explained(self, id: str, written: Written, places: int) -> list[Found]:
        """Every single mistake or slip that explains the line; else the first pairs that do."""
        chains, open_steps, explainer = self._chains(), self._open_steps(id), self.marker.explainer
        found = explainer.singles(id, written, chains, places, open_steps)
        for chain in chains:
            wrong = judge(written, chain, id, places, self.cut).wrong
            for slip in slips(written, chain.raw(id), wrong, places):
                if not any(one.named[-1] == Named(id, slip) for one in found):
                    found.append(Found((Named(id, slip),), chain, {}))
        if found:
            return found
        if any(parts_wrong(self.graph, chain, id, written, places) for chain in chains):
            return []
        found = explainer.with_slip(id, written, chains, places, open_steps)
        return found or explainer.pairs(id, written, chains, places, open_steps)

    def _unexplained(
        self, id: str, written: Written, off: Any, places: int
    ) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """What can still be said: a product that is missing, doubled or has the wrong sign; else where it is off."""
        for chain in self._chains():
            parts = parts_wrong(self.graph, chain, id, written, places)
            if parts:
                return parts[:3], {}
        if not off.any():
            return (Message(N_("This does not follow from your lines above.")),), {}
        cells = [f"[{','.join(map(str, cell))}]" for cell in _cells(off)]
        text = Message(
            N_("No known mistake gives these numbers. Work out {cells} once more."),
            cells=", ".join(cells[:_MOST_CELLS]) + (", …" if len(cells) > _MOST_CELLS else ""),
        )
        chain = self._chains()[0]
        operands = {
            name: _middle(chain.carried(name))
            for name in (*self.graph.inputs, *self.graph.steps)
            if self._before(name, id)
        }
        return (text,), operands

    def _before(self, name: str, id: str) -> bool:
        return id in self.marker.followers[name]

    def _open_steps(self, id: str) -> list[str]:
        """Unwritten steps that lead to this one without passing a written one."""
        graph, found, waiting = self.graph, set[str](), [id]
        while waiting:
            step = graph.steps.get(waiting.pop())
            for source in () if step is None else step.inputs:
                if source in graph.steps and source not in found and source not in self.done:
                    found.add(source)
                    waiting.append(source)
        return [step for step in graph.steps if step in found]

    def _odd_shape(self, id: str, answer: Answer) -> StepMark:
        """A shape that is not the step's: a mistake of the catalogue may explain it, else it cannot be marked."""
        from attncli.core.graph import show_shape

        written = answer.written()
        if written.values.ndim == 2 and self.marker.shapes[id][:-2] == (1,):
            written = written.at(lambda cells: cells[None])  # a single head, written without its axis
        places = self.marker.problem.decimals_of(id)
        if self.only_right:
            raise NotRight
        explained = self.marker.explainer.singles(id, written, self._chains(), places, self._open_steps(id))
        for chain in self._chains():
            explained += [Found((Named(id, slip),), chain, {}) for slip in slips(written, chain.raw(id), None, places)]
        if not explained:
            shape = Message(
                N_("The shape is {given}; this step is {expected}."),
                given=show_shape(written.values.shape),
                expected=show_shape(self.graph.shape(id)),
            )
            return self._mark(id, "malformed", said=(*self._read_as(answer), shape), written=written.values)
        named = _named(explained, id)
        if any(one.id == "layout-transposed" for one in named):
            turned = written.at(lambda cells: cells.swapaxes(-1, -2)).rounded_to(places)
            self.own = [chain.fork(given={id: turned}) for chain in self._chains()]
        else:
            self.odd = True
            ways = [found.chain.fork(swap=found.swap) for found in explained[:_MOST_WAYS]]
            self.own = [way.fork(given={id: judge(written, way, id, places, self.cut).stands}) for way in ways]
        self.done.add(id)
        said = (*self._read_as(answer), *_told(explained, id, self.graph))
        cells = _cells(np.ones(written.values.shape, dtype=np.bool_))
        return self._mark(id, "wrong", mistakes=tuple(named), cells=cells, said=said, written=written.values)

    def _unknown(self, name: str) -> StepMark:
        if self.marker.names.find(name) is not None:
            text = Message(N_("“{name}” is answered twice, under two names. Keep one."), name=name)
        else:
            text = self.marker.names.complaint(name, Message(N_("The step")))
        return StepMark(name, "malformed", Fraction(0), Fraction(0), said=(text,))


builtin_id = id


def _named(explained: Sequence[Found], id: str) -> list[Named]:
    """The mistakes by name, each once, the likelier first."""
    if explained and len(explained[0].named) > 1:
        return list(explained[0].named)
    unique = {(one.step, one.id): one for found in explained for one in found.named}
    return sorted(unique.values(), key=lambda one: (one.step != id, rank(one.id)))


def _may_be_written_as(shape: Sequence[int], on_paper: Sequence[int]) -> bool:
    """Whether numbers of this shape may stand on paper like that: a vector either way, a single head without its axis."""
    if tuple(on_paper) in (tuple(shape), tuple(shape[1:]) if shape[0] == 1 else ()):
        return True
    return sorted(on_paper) == sorted(shape) and max(shape, default=0) == math.prod(shape)


def _is_close(written: Written, reached: Interval, places: int) -> bool:
    """Whether every cell is so near that cutting off instead of rounding could make the difference."""
    near = _NEAR * 10.0**-places
    fine = (written.values >= reached.lo - near) & (written.values <= reached.hi + near)
    return written.eps is None and bool((fine | written.blank).all())


def _middle(value: Interval) -> Any:
    """The middle of the bounds, as numbers to show."""
    return np.where(value.lo == value.hi, value.lo, (value.lo + value.hi) / 2)


def credit_of(problem: Problem, verdict: str) -> Fraction:
    """The share of a step's points that a verdict is worth."""
    if verdict in ("correct", "route"):
        return Fraction(1)
    if verdict in ("follow_through", "imprecise"):
        default = {"follow_through": 1.0, "imprecise": 0.5}[verdict]
        return Fraction(str(problem.marking.get(verdict, default)))
    return Fraction(0)


def _told(explained: Sequence[Found], id: str, graph: Graph) -> tuple[Message, ...]:
    """What was done; where several mistakes give the same numbers, that is said before the likelier ones."""
    named = _named(explained, id)[:_TOLD]
    worth = {at: without_vaguer([one.id for one in named if one.step == at]) for at in {one.step for one in named}}
    sentences = tuple(dict.fromkeys(did(one.id, graph, one.step) for one in named if one.id in worth[one.step]))
    if len(sentences) < 2:
        return sentences
    if len(explained[0].named) > 1:
        return (Message(TWO_THINGS), *sentences)
    return (Message(N_("More than one mistake gives these numbers. The likelier first:")), *sentences)


def _cells(wrong: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) + 1 for i in index) for index in np.argwhere(wrong))


def _is_trivial(values: Any) -> bool:
    """All zero, all equal, or an identity matrix: from there on anybody is right. What is hidden does not count."""
    finite = values[np.isfinite(values)]
    if min(values.shape, default=1) > 1 and finite.size > 1 and np.ptp(finite) == 0:
        return True
    return values.ndim == 2 and values.shape[0] == values.shape[1] > 1 and np.array_equal(values, np.eye(len(values)))
