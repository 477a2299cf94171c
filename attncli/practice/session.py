"""Practice as a state machine: it is given lines, and says what to show. It knows neither a terminal nor a language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from attncli.arithmetic.hand import round_decimal
from attncli.core.graph import Graph
from attncli.core.matrix import EXACT, Matrix
from attncli.core.message import N_, InputError, Listed, Localized, Message
from attncli.marking.feedback import StepMark
from attncli.marking.mark import Marker
from attncli.marking.papers import in_rows
from attncli.practice import hints
from attncli.practice.log import RIGHT, LogEntry, Progress
from attncli.practice.parts import Part, Result, Text, Wanted, WholeExercise
from attncli.practice.schedule import NextExercise, shown_reason
from attncli.practice.skills import LAST_STAGE, asked_at, skill_of
from attncli.problems.answers import Answer, Sheet, answer
from attncli.problems.lesson import observations
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.question import points_of

#: Words that may be typed at any time, in both languages, whatever language the session speaks.
WORDS: Mapping[str, str] = {
    "hint": "hint", "h": "hint", "提示": "hint",
    "show": "show", "看过程": "show", "看答案": "show",
    "why": "why", "为什么": "why",
    "skip": "skip", "跳过": "skip",
    "quit": "quit", "exit": "quit", "q": "quit", "退出": "quit",
    "?": "help", "？": "help", "help": "help", "帮助": "help",
}  # fmt: skip

HELP = Message(
    N_(
        'Write the numbers of the line: entries with spaces between them, rows with ";", like 1 2; 3 4, or one row after another. Other words: hint (a little help, more each time), show (the result; the line comes back with new numbers), why (what this line is for), skip (go on with what you have written), quit.'
    )
)

_NAMED = re.compile(r"\s*([^=:：＝;；,，\[\]]{1,60}?)\s*[=:：＝]\s*(.*)", re.DOTALL)
#: What stands between rows, or between heads.
_ROW_ENDS = ";；|｜&\\@"
#: How near a number is to one that is written out in full.
_SAME = 1e-9
#: Wrong tries after which it is said where to look, and after which the mistake is named: it is often the answer.
_LOOK, _NAME = 2, 3


class Exercise:
    """One exercise, line after line.

    Parameters
    ----------
    write : takes the entries for the log
    clock : seconds since 1970
    """

    def __init__(
        self, choice: NextExercise, student: str, write: Callable[[LogEntry], None], clock: Callable[[], float]
    ) -> None:
        self.choice = choice
        self.student = student
        self.write = write
        self.clock = clock
        self.problem: Problem = choice.problem
        self.graph: Graph = self.problem.graph()
        self.marker = Marker(self.problem)
        every = [id for id in self.graph.steps if id in points_of(self.problem, self.graph.steps)]
        self.asked, hidden = asked_at(self.graph, every, choice.stage)
        self.names = Names(self.graph, self.asked)
        full = self.graph.evaluate().numbers
        self.shown = tuple(id for id in every if id not in self.asked and id not in hidden)
        #: What stands on the screen, as it is handed to the marker: lines that are shown, and the learner's own.
        self.lines: dict[str, Answer] = {id: self._as_printed(id, full[id]) for id in self.shown}
        self.at = 0
        self.clean = 0
        self._fresh()

    def _fresh(self) -> None:
        """Nothing was tried yet at this line."""
        self.tries = self.hints = 0
        self.mark: StepMark | None = None
        self.last: Answer | None = None
        self.rows: tuple[str, ...] = ()
        self.since = self.clock()

    @property
    def done(self) -> bool:
        return self.at >= len(self.asked)

    @property
    def step(self) -> str:
        """The line that is asked for."""
        return self.asked[self.at]

    @property
    def prompt(self) -> str:
        """What stands before the place to type at; behind the first row of a matrix, the row that comes next."""
        return f"{self.step}[{len(self.rows) + 1}] > " if self.rows else f"{self.step} > "

    def start(self) -> Iterator[Part]:
        """The exercise, why it was chosen, and the first thing to do."""
        title = Localized(self.problem.title) if self.problem.title else Message("{name}", name=self.choice.name)
        yield Text(Message(N_("{exercise}: {title}"), exercise=self.choice.name, title=title), "title")
        yield Text(self.choice.reason)
        yield Text(_stage(self.choice.stage))
        yield WholeExercise(self.shown)
        yield self._wanted()

    def values(self) -> Mapping[str, Any]:
        """The numbers of every line, as they follow from what stands on the screen."""
        given = {}
        for id, line in self.lines.items():
            one = line.matrix
            if one is not None and one.values.shape == self.graph.shape(id) and not np.isnan(one.values).any():
                given[id] = one.values
        with np.errstate(all="ignore"):
            return self.graph.evaluate(given=given).numbers

    def _as_printed(self, id: str, values: Any) -> Answer:
        """A line with the digits that a screen shows of it."""
        places = self.problem.decimals_of(id)
        return Answer(Matrix(round_decimal(values, places), np.where(np.isfinite(values), places, EXACT)))

    def _shape(self) -> tuple[int, ...]:
        """The shape of the line as it is written down."""
        shape = self.graph.shape(self.step)
        return (*shape[:-2], *reversed(shape[-2:])) if self.problem.layout == "columns" else shape

    def _wanted(self, *, again: bool = False) -> Wanted:
        places = self.problem.decimals_of(self.step)
        return Wanted(self.step, self.graph.symbol(self.step), self._shape(), places, again)

    # What may be typed.

    def take(self, text: str) -> Iterator[Part]:
        """What there is to say to an answer for the line that is asked for."""
        named = _NAMED.fullmatch(text)
        if named is not None:
            complaint = self._other_line(named[1])
            if complaint is not None:
                yield Text(complaint, "remark")
                yield self._wanted(again=True)
                return
            text = named[2]
        given = answer(text)
        if given.error is not None:
            yield Text(given.error, "remark")
            yield self._wanted(again=True)
        elif self._is_row(text, given):
            yield from self._take_row(text.strip().strip("[]［］"))
        elif self.rows and not any(sign in text for sign in _ROW_ENDS):
            shown = given.matrix.values.size if given.matrix is not None else 0
            yield Text(
                Message(
                    N_("A row has {columns} numbers; this one has {count}. The rows before are still noted."),
                    count=shown,
                    columns=self._shape()[-1],
                ),
                "remark",
            )
            yield self._wanted(again=True)
        else:
            self.rows = ()
            yield from self._judge(text, given)

    def _is_row(self, text: str, given: Answer) -> bool:
        """Whether a line is one row of several: as many numbers as a row has, and nothing that ends a row."""
        heads, rows, columns = (1, 1, *self._shape())[-3:]
        if given.matrix is None or heads * rows == 1 or any(sign in text for sign in _ROW_ENDS):
            return False
        return bool(given.matrix.values.size == columns)

    def _take_row(self, text: str) -> Iterator[Part]:
        """Keep a row; the last one completes the matrix."""
        self.rows = (*self.rows, text)
        heads, rows, _ = (1, 1, *self._shape())[-3:]
        if len(self.rows) == heads * rows:
            yield from self.end_rows()
            return
        if len(self.rows) == 1:
            yield Text(
                Message(N_("Row 1 of {count} is noted. Write the next one, or nothing to stop."), count=heads * rows),
                "aside",
            )
        yield self._wanted(again=True)

    def end_rows(self) -> Iterator[Part]:
        """Judge the rows that were written one by one."""
        _, rows, _ = (1, 1, *self._shape())[-3:]
        blocks = [self.rows[start : start + rows] for start in range(0, len(self.rows), rows)]
        text, self.rows = " | ".join("; ".join(block) for block in blocks), ()
        given = answer(text)
        if given.error is None:
            yield from self._judge(text, given)
        else:
            yield Text(given.error, "remark")
            yield self._wanted(again=True)

    def _other_line(self, name: str) -> Message | None:
        """What to say where an answer names another line than the one that is asked for."""
        try:
            id = self.names.resolve(name)
        except InputError as error:
            return error.message
        if id == self.step:
            return None
        if id in self.asked[self.at :]:
            return Message(N_("{step} comes later. Now it is {asked}."), step=id, asked=self.step)
        return Message(N_("{step} is not what is asked for. Now it is {asked}."), step=id, asked=self.step)

    def _judge(self, text: str, given: Answer) -> Iterator[Part]:
        turned, _ = in_rows(given, self.step, self.graph.shape(self.step), self.problem.layout)
        marked = self.marker.mark(Sheet(None, {**self.lines, self.step: turned}))
        mark = next(one for one in marked.steps if one.id == self.step)
        if mark.verdict == "blank" or (turned.matrix is not None and np.isnan(turned.matrix.values).any()):
            yield Text(Message(N_("Some cells are still blank.")), "remark")
            yield self._wanted(again=True)
        elif mark.verdict == "malformed":
            yield from (Text(message, "remark") for message in mark.said)
            yield self._wanted(again=True)
        elif mark.verdict in RIGHT and self._is_short(turned):
            yield Text(_digits(self.problem.decimals_of(self.step)), "remark")
            yield self._wanted(again=True)
        else:
            self.tries += 1
            self._log(text, mark.verdict, tuple(dict.fromkeys(named.id for named in mark.mistakes)))
            self.last, self.mark = turned, mark
            yield from self._right(mark, turned) if mark.verdict in RIGHT else self._wrong(mark)

    def _is_short(self, given: Answer) -> bool:
        """Whether a cell has fewer digits than are asked for and is not all of its number: 0.07 for 0.0702, not 0.5 for ½."""
        matrix, value = given.matrix, self.values()[self.step]
        if matrix is None or matrix.decimals is None or matrix.shape != value.shape:
            return False
        with np.errstate(invalid="ignore"):
            inexact = ~(np.abs(matrix.values - value) <= _SAME) & np.isfinite(value)
        places = self.problem.decimals_of(self.step)
        return bool((inexact & (matrix.decimals != EXACT) & (matrix.decimals < places)).any())

    def _right(self, mark: StepMark, given: Answer) -> Iterator[Part]:
        self.lines[self.step] = given
        self.clean += self.tries == 1 and not self.hints
        yield Text(
            Message(N_("✓ Right from your own earlier values."))
            if mark.verdict == "follow_through"
            else Message(N_("✓ Right.")),
            "right",
        )
        yield from (Text(message, "aside") for message in mark.said if message.kind != "followed")
        yield from self._go_on()

    def _wrong(self, mark: StepMark) -> Iterator[Part]:
        """First the verdict and the cells; then where to look; the name third, since it is often the answer."""
        if mark.cells and len(mark.cells) < mark.written.size:
            yield Text(
                Message(N_("✗ Not right: {cells}."), cells=Listed(_cell_names(mark, self.problem.layout))), "wrong"
            )
        else:
            yield Text(Message(N_("✗ Not right.")), "wrong")
        if self.tries >= _LOOK and (mark.mistakes or self.tries < _NAME):
            yield Text(hints.where_to_look(self.graph, self.step, mark))
        if self.tries >= _NAME:
            yield from (Text(message) for message in mark.said if message.kind != "about")
        if self.tries == _NAME:
            yield Text(Message(N_("More help: hint. The result: show.")), "aside")
        yield self._wanted(again=True)

    def hint(self) -> Iterator[Part]:
        """One rung more of the ladder; the last one gives the result."""
        if self.hints + 1 >= hints.LAST:
            yield from self.show()
            return
        self.hints += 1
        on_screen = {*self.graph.inputs, *self.lines}
        yield hints.rung(self.hints, self.graph, self.step, self.mark, on_screen, self.values())
        yield self._wanted(again=True)

    def show(self) -> Iterator[Part]:
        """The result as it follows from the learner's own lines. It costs the line, which comes back with new numbers."""
        values = self.values()
        self._log("", "shown")
        on_screen = {*self.graph.inputs, *self.lines}
        yield hints.arithmetic(self.graph, self.step, None, on_screen, values).changed(solved=True)
        yield Result(self.step)
        yield Text(Message(N_("This line comes back later, with new numbers.")), "aside")
        self.lines[self.step] = self._as_printed(self.step, values[self.step])
        yield from self._go_on()

    def why(self) -> Iterator[Part]:
        """What the line is for."""
        yield Text(self.graph.steps[self.step].why)
        yield self._wanted(again=True)

    def skip(self) -> Iterator[Part]:
        """On to the next line; what was written last stands, and is followed."""
        self._log("", "skipped")
        if self.last is not None:
            self.lines[self.step] = self.last
            yield Text(Message(N_("Left as you wrote it. What follows is marked from your own numbers.")), "aside")
        else:
            yield Text(Message(N_("Left blank.")), "aside")
        yield from self._go_on()

    def _go_on(self) -> Iterator[Part]:
        self.at += 1
        if not self.done:
            self._fresh()
            yield self._wanted()
            return
        self._write("", "", "done", (), 0, 0)
        yield Text(
            Message(N_("Done. Right at the first try: {clean} of {count}."), clean=self.clean, count=len(self.asked)),
            "title",
        )
        if self.problem.notice:
            yield Text(Localized({code: observations(self.problem, code) for code in self.problem.notice}))

    def _log(self, text: str, verdict: str, mistakes: tuple[str, ...] = ()) -> None:
        self._write(self.step, text, verdict, mistakes, self.hints, self.tries)

    def _write(self, step: str, text: str, verdict: str, mistakes: tuple[str, ...], hinted: int, tries: int) -> None:
        now = self.clock()
        self.write(
            LogEntry(
                now,
                self.student,
                self.choice.name,
                step,
                skill_of(self.graph, step) if step else "",
                self.choice.stage,
                text,
                verdict,
                mistakes,
                hinted,
                tries,
                max(0, round(now - self.since)),
            )
        )


class Session:
    """Exercises one after another, until as many are done as were asked for, or somebody leaves.

    Parameters
    ----------
    choose : what comes next, from the state and the time
    write : takes the entries for the log
    count : exercises; None: no end. A line whose result was shown comes back before the end
    """

    def __init__(
        self,
        choose: Callable[[Progress, float], NextExercise],
        state: Progress,
        write: Callable[[LogEntry], None],
        clock: Callable[[], float],
        count: int | None = None,
    ) -> None:
        self.choose = choose
        self.state = state
        self.clock = clock
        self.left = count
        self.ended = False
        self._keep = write
        self._owed: set[str] = set()
        self.exercise: Exercise | None = None

    def start(self) -> Iterator[Part]:
        """The next exercise."""
        choice = self.choose(self.state, self.clock())
        if self.left is not None and self.left <= 0 and self.exercise and choice.name != self.exercise.choice.name:
            choice = choice.changed(reason=shown_reason(sorted(self._owed)))
        self.exercise = Exercise(choice, self.state.student, self._write, self.clock)
        yield from self.exercise.start()

    def take(self, line: str) -> Iterator[Part]:
        """What there is to say to a line: an answer, or one of the words."""
        assert self.exercise is not None
        exercise = self.exercise
        if exercise.rows and not line.strip():
            yield from exercise.end_rows()
            if exercise.done:
                yield from self._next()
            return
        word = WORDS.get(" ".join(line.split()).casefold())
        if word == "quit":
            self.ended = True
            yield Text(Message(N_("Until next time. Every line is kept.")))
            return
        if word == "help" or not line.strip():
            yield Text(HELP)
            yield exercise._wanted(again=True)
            return
        yield from exercise.take(line) if word is None else getattr(exercise, word)()
        if exercise.done:
            yield from self._next()

    def _next(self) -> Iterator[Part]:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0 and not self._owed:
                self.ended = True
                return
        yield from self.start()

    def _write(self, entry: LogEntry) -> None:
        self._keep(entry)
        self.state.add(entry)
        if entry.verdict == "shown":
            self._owed.add(entry.skill)
        elif entry.is_clean:
            self._owed.discard(entry.skill)


def _digits(places: int) -> Message:
    if places == 1:
        return Message(N_("That is right as far as it goes. Write it with 1 decimal; this is not counted as a try."))
    return Message(
        N_("That is right as far as it goes. Write it with {places} decimals; this is not counted as a try."),
        places=places,
    )


def _stage(stage: int) -> Message:
    if stage >= LAST_STAGE:
        return Message(N_("Stage {stage} of {last}: every line is yours."), stage=stage, last=LAST_STAGE)
    if stage == 1:
        return Message(N_("Stage {stage} of {last}: only the last line is yours."), stage=stage, last=LAST_STAGE)
    return Message(N_("Stage {stage} of {last}: the last lines are yours."), stage=stage, last=LAST_STAGE)


def _cell_names(mark: StepMark, layout: str) -> list[str]:
    turned = [(*cell[:-2], *reversed(cell[-2:])) if layout == "columns" else cell for cell in mark.cells]
    return [f"[{','.join(map(str, cell))}]" for cell in turned]
