"""Practice as a state machine: it is given lines, and says what to show. It knows neither a terminal nor a language.

What it shows is a `Reply`: a sentence, numbers, the arithmetic of a cell. Hints are a ladder: where to look, then the formula in
letters, then the numbers put in without the result; never a result below the last rung.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np

from attncli.arithmetic import Value
from attncli.arithmetic.hand import round_decimal
from attncli.core.graph import Graph
from attncli.core.matrix import EXACT
from attncli.core.message import N_, InputError, Listed, Localized, Message, counted
from attncli.core.record import Record
from attncli.core.terms import Index, Term, cell
from attncli.marking.explain import where_to_look
from attncli.marking.feedback import StepMark
from attncli.marking.mark import Marker
from attncli.marking.papers import in_rows
from attncli.practice.log import RIGHT, LogEntry
from attncli.practice.progress import LAST_STAGE, Progress, asked_at, skill_of
from attncli.practice.schedule import Choose, NextExercise, shown_reason
from attncli.problems.answers import Answer, Sheet, answer, in_digits
from attncli.problems.lesson import observations
from attncli.problems.names import Names
from attncli.problems.problem import Problem


class Reply(Record):
    """Something that a session shows."""


class Sentence(Reply):
    """A sentence; its kind says how it stands out: "title", "right", "wrong", "remark", "aside", or nothing."""

    message: Message
    kind: str = ""


class WholeExercise(Reply):
    """A whole exercise: its prompt, what is given, and the lines that are shown, by their ids."""

    shown: tuple[str, ...]


class LineNumbers(Reply):
    """The numbers of one line."""

    id: str


class LineFormula(Reply):
    """How a line is calculated, in letters; and the lines before it that stand nowhere."""

    ids: tuple[str, ...]


class CellArithmetic(Reply):
    """The arithmetic of one cell, its numbers put in.

    Parameters
    ----------
    on_screen : ids whose numbers stand on the screen; another cell is called by its name
    solved : with its result, where the result was asked for
    """

    id: str
    index: Index
    term: Term
    on_screen: frozenset[str]
    solved: bool = False


class Wanted(Reply):
    """What is asked for next: one line."""

    id: str
    symbol: str
    shape: tuple[int, ...]
    decimals: int


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
    'Write the numbers of the line: entries with spaces between them, rows with ";", like 1 2; 3 4, or one row after another. Other words: hint (a little help, more each time), show (the result; the line comes back with new numbers), why (what this line is for), skip (go on with what you have written), quit.'
)

#: Of an answer with too few decimals, by how many are asked for: one, or several.
_TOO_SHORT = (
    N_("That is right as far as it goes. Write it with 1 decimal; this is not counted as a try."),
    N_("That is right as far as it goes. Write it with {count} decimals; this is not counted as a try."),
)

_NAMED = re.compile(r"\s*([^=:：＝;；,，\[\]]{1,60}?)\s*[=:：＝]\s*(.*)", re.DOTALL)
#: What stands between rows, or between heads.
_ROW_ENDS = ";；|｜&\\@"
#: How near a number is to one that is written out in full.
_SAME = 1e-9
#: Wrong tries after which it is said where to look, and after which the mistake is named: it is often the answer.
_LOOK, _NAME = 2, 3
#: The hint that gives the result, and costs the line.
_LAST_HINT = 4
#: Cells that the arithmetic of one cell may hold and still be read.
_MOST_CELLS = 40


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
        every = [step for step in self.graph.steps if step in self.marker.points]
        self.asked, self.shown = asked_at(self.graph, every, choice.stage)
        self.names = Names(self.graph, self.asked)
        full = self.graph.evaluate().numbers
        #: What stands on the screen, as it is handed to the marker: lines that are shown, and the learner's own.
        self.lines: dict[str, Answer] = {step: self._as_printed(step, full[step]) for step in self.shown}
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

    def start(self) -> Iterator[Reply]:
        """The exercise, why it was chosen, and the first thing to do."""
        title = Localized(self.problem.title) if self.problem.title else Message("{name}", name=self.choice.name)
        yield Sentence(Message("{exercise}: {title}", exercise=self.choice.name, title=title), "title")
        yield Sentence(self.choice.reason)
        yield Sentence(_stage(self.choice.stage))
        yield WholeExercise(self.shown)
        yield self._wanted()

    def values(self) -> Mapping[str, Value]:
        """The numbers of every line, as they follow from what stands on the screen."""
        given = {}
        for step, line in self.lines.items():
            written = line.matrix
            if written is not None and written.shape == self.graph.shape(step) and not np.isnan(written.values).any():
                given[step] = written.values
        with np.errstate(all="ignore"):
            return self.graph.evaluate(given=given).numbers

    def _on_screen(self) -> frozenset[str]:
        """Inputs and lines that stand on the screen; every other number is opened down to these."""
        return frozenset((*self.graph.inputs, *self.lines))

    def _as_printed(self, step: str, values: Value) -> Answer:
        """A line with the digits that a screen shows of it."""
        places = self.problem.decimals_of(step)
        return in_digits(round_decimal(values, places), places)

    def _as_written(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """A shape or a place as it is on paper."""
        return (*axes[:-2], *reversed(axes[-2:])) if self.problem.layout == "columns" else axes

    def _wanted(self) -> Wanted:
        shape = self._as_written(self.graph.shape(self.step))
        return Wanted(self.step, self.graph.symbol(self.step), shape, self.problem.decimals_of(self.step))

    # What may be typed.

    def take(self, line: str) -> Iterator[Reply]:
        """What there is to say to a line: one of the words, a row, or an answer."""
        words = {"hint": self._hint, "show": self._show, "why": self._why, "skip": self._skip}
        word = _word(line)
        if self.rows and not line.strip():
            yield from self._end_rows()
        elif word in words:
            yield from words[word]()
        elif word is not None or not line.strip():
            yield Sentence(HELP)
        else:
            yield from self._answer(line)

    def _answer(self, line: str) -> Iterator[Reply]:
        named = _NAMED.fullmatch(line)
        complaint, text = (None, line) if named is None else (self._other_line(named[1]), named[2])
        given = answer(text)
        _, heads_rows, columns = self._sizes()
        is_part = heads_rows > 1 and not any(sign in text for sign in _ROW_ENDS)
        count = 0 if given.matrix is None else given.matrix.values.size
        error = complaint or given.error
        if error is not None:
            yield from _remarks(error)
        elif is_part and count == columns:
            yield from self._take_row(text.strip().strip("[]［］"))
        elif is_part and self.rows:
            yield from _remarks(
                Message(
                    "A row has {columns} numbers; this one has {count}. The rows before it are kept.",
                    count=count, columns=columns,
                )
            )  # fmt: skip
        else:
            self.rows = ()
            yield from self._judge(text, given)

    def _sizes(self) -> tuple[int, int, int]:
        """Rows of a head, rows of all heads, numbers in a row."""
        heads, rows, columns = (1, 1, *self._as_written(self.graph.shape(self.step)))[-3:]
        return rows, heads * rows, columns

    def _take_row(self, text: str) -> Iterator[Reply]:
        """Keep a row; the last one completes the matrix."""
        self.rows = (*self.rows, text)
        count = self._sizes()[1]
        if len(self.rows) == count:
            yield from self._end_rows()
        elif len(self.rows) == 1:
            said = Message(
                "Row 1 of {count} is noted. Write the next one; Enter alone ends the matrix here.", count=count
            )
            yield Sentence(said, "aside")

    def _end_rows(self) -> Iterator[Reply]:
        """Judge the rows that were written one by one."""
        size = self._sizes()[0]
        blocks = [self.rows[start : start + size] for start in range(0, len(self.rows), size)]
        text, self.rows = " | ".join("; ".join(block) for block in blocks), ()
        given = answer(text)
        yield from self._judge(text, given) if given.error is None else _remarks(given.error)

    def _other_line(self, name: str) -> Message | None:
        """What to say where an answer names another line than the one that is asked for."""
        try:
            step = self.names.resolve(name)
        except InputError as error:
            return error.message
        if step == self.step:
            return None
        if step in self.asked[self.at :]:
            return Message("{step} comes later. Now write {asked}.", step=step, asked=self.step)
        return Message("{step} is not what is asked for. Now write {asked}.", step=step, asked=self.step)

    def _judge(self, text: str, given: Answer) -> Iterator[Reply]:
        in_layout, _ = in_rows(given, self.step, self.graph.shape(self.step), self.problem.layout)
        marked = self.marker.mark(Sheet(None, {**self.lines, self.step: in_layout}))
        mark = next(step for step in marked.steps if step.id == self.step)
        if mark.verdict == "blank" or (in_layout.matrix is not None and np.isnan(in_layout.matrix.values).any()):
            yield from _remarks(Message("Some cells are still blank."))
        elif mark.verdict == "malformed":
            yield from _remarks(*mark.said)
        elif mark.verdict in RIGHT and self._is_short(in_layout):
            yield from _remarks(counted(self.problem.decimals_of(self.step), *_TOO_SHORT))
        else:
            self.tries += 1
            self._log(mark.verdict, text, tuple(dict.fromkeys(named.id for named in mark.mistakes)))
            self.last, self.mark = in_layout, mark
            yield from self._right(mark, in_layout) if mark.verdict in RIGHT else self._wrong(mark)

    def _is_short(self, given: Answer) -> bool:
        """Whether a cell has fewer digits than are asked for and is not all of its number: 0.07 for 0.0702, not 0.5 for ½."""
        matrix, value = given.matrix, self.values()[self.step]
        if matrix is None or matrix.decimals is None or matrix.shape != value.shape:
            return False
        with np.errstate(invalid="ignore"):
            inexact = ~(np.abs(matrix.values - value) <= _SAME) & np.isfinite(value)
        places = self.problem.decimals_of(self.step)
        return bool((inexact & (matrix.decimals != EXACT) & (matrix.decimals < places)).any())

    def _right(self, mark: StepMark, given: Answer) -> Iterator[Reply]:
        self.lines[self.step] = given
        self.clean += self.tries == 1 and not self.hints
        followed = mark.verdict == "follow_through"
        yield Sentence(Message("✓ Right from your own earlier values." if followed else "✓ Right."), "right")
        yield from (Sentence(message, "aside") for message in mark.said if message.kind != "followed")
        yield from self._go_on()

    def _wrong(self, mark: StepMark) -> Iterator[Reply]:
        """First the verdict and the cells; then where to look; the name third, since it is often the answer."""
        if mark.cells and len(mark.cells) < mark.written.size:
            cells = Listed(f"[{','.join(map(str, self._as_written(cell)))}]" for cell in mark.cells)
            yield Sentence(Message("✗ Not right: {cells}.", cells=cells), "wrong")
        else:
            yield Sentence(Message("✗ Not right."), "wrong")
        if self.tries >= _LOOK and (mark.mistakes or self.tries < _NAME):
            yield Sentence(self._where_to_look())
        if self.tries >= _NAME:
            yield from (Sentence(message) for message in mark.said if message.kind != "about")
        if self.tries == _NAME:
            yield Sentence(Message("For more help type hint, for the result type show."), "aside")

    def _hint(self) -> Iterator[Reply]:
        """One rung more of the ladder; the last one gives the result."""
        if self.hints + 1 >= _LAST_HINT:
            yield from self._show()
            return
        self.hints += 1
        if self.hints == 1:
            yield Sentence(self._where_to_look())
        elif self.hints == 2:
            yield LineFormula((self.step, *self._hidden_before()))
        else:
            yield self._arithmetic(self.mark)

    def _where_to_look(self) -> Message:
        """What to look at again: in the words of the likeliest mistake of the last try, else what the line is for."""
        if self.mark is None:
            return self.graph.steps[self.step].why
        if self.mark.mistakes:
            return where_to_look(self.mark.mistakes, self.graph)
        return Message("Work this line out once more from the lines above it.")

    def _hidden_before(self) -> list[str]:
        """The lines that the line is worked out from and that stand nowhere, the last one first."""
        steps, on_screen = self.graph.steps, self._on_screen()
        found: set[str] = set()
        waiting = [self.step]
        while waiting:
            new = {source for source in steps[waiting.pop()].inputs if source in steps} - on_screen - found
            found |= new
            waiting += new
        return [step for step in reversed(steps) if step in found]

    def _arithmetic(self, mark: StepMark | None, *, solved: bool = False) -> CellArithmetic:
        """One cell's arithmetic with the numbers put in, down to those on the screen: of the first wrong cell, else of the first."""
        values, on_screen = self.values(), self._on_screen()
        shape = self.graph.shape(self.step)
        index = (0,) * len(shape)
        wrong = mark.cells[0] if mark is not None and mark.cells else ()
        if len(wrong) == len(shape) and all(1 <= i <= size for i, size in zip(wrong, shape, strict=True)):
            index = tuple(i - 1 for i in wrong)

        def opened(step_id: str, index: Index) -> Term:
            if step_id not in self.graph.steps or step_id in on_screen:
                return cell(step_id, index)
            term = terms(step_id)[index].with_cells(opened)
            if term.kind == "max" and all(part.kind == "cell" for part in term.terms):
                # Of numbers that stand somewhere the largest stands there, too.
                return max(term.terms, key=lambda part: float(values[part.place[0]][part.place[1]]))
            return term

        terms = cache(lambda step_id: self.graph.steps[step_id].terms(values))
        term = terms(self.step)[index]
        whole = term.with_cells(opened)
        is_short = len(list(whole.cells())) <= _MOST_CELLS
        return CellArithmetic(self.step, index, whole if is_short else term, on_screen, solved)

    def _show(self) -> Iterator[Reply]:
        """The result as it follows from the learner's own lines. It costs the line, which comes back with new numbers."""
        self._log("shown")
        yield self._arithmetic(None, solved=True)
        yield LineNumbers(self.step)
        yield Sentence(Message("This line comes back later, with new numbers."), "aside")
        self.lines[self.step] = self._as_printed(self.step, self.values()[self.step])
        yield from self._go_on()

    def _why(self) -> Iterator[Reply]:
        """What the line is for."""
        yield Sentence(self.graph.steps[self.step].why)

    def _skip(self) -> Iterator[Reply]:
        """On to the next line; what was written last stands, and is followed."""
        self._log("skipped")
        if self.last is not None:
            self.lines[self.step] = self.last
            yield Sentence(Message("Left as you wrote it. What follows is marked from your own numbers."), "aside")
        else:
            yield Sentence(Message("Left blank."), "aside")
        yield from self._go_on()

    def _go_on(self) -> Iterator[Reply]:
        self.at += 1
        if not self.done:
            self._fresh()
            yield self._wanted()
            return
        self._log("done")
        said = Message("Done. Right at the first try: {clean} of {count}.", clean=self.clean, count=len(self.asked))
        yield Sentence(said, "title")
        if self.problem.notice:
            yield Sentence(Localized({code: observations(self.problem, code) for code in self.problem.notice}))

    def _log(self, verdict: str, text: str = "", mistakes: tuple[str, ...] = ()) -> None:
        """Write down what was done at this line; "done" is of the whole exercise."""
        now = self.clock()
        step, hints, tries = ("", 0, 0) if self.done else (self.step, self.hints, self.tries)
        skill = skill_of(self.graph, step) if step else ""
        seconds = max(0, round(now - self.since))
        where = self.choice.name, step, skill, self.choice.stage
        self.write(LogEntry(now, self.student, *where, text, verdict, mistakes, hints, tries, seconds))


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
        choose: Choose,
        state: Progress,
        write: Callable[[LogEntry], None],
        clock: Callable[[], float],
        count: int | None = None,
    ) -> None:
        self.choose = choose
        self.state = state
        self.clock = clock
        self.left = math.inf if count is None else count
        self.ended = False
        self._keep = write
        self._owed: set[str] = set()
        self.exercise: Exercise | None = None

    def start(self) -> Iterator[Reply]:
        """The next exercise."""
        choice = self.choose(self.state, self.clock())
        if self.left <= 0 and self.exercise and choice.name != self.exercise.choice.name:
            choice = choice.changed(reason=shown_reason(sorted(self._owed)))
        self.exercise = Exercise(choice, self.state.student, self._write, self.clock)
        yield from self.exercise.start()

    def take(self, line: str) -> Iterator[Reply]:
        """What there is to say to a line: an answer, or one of the words."""
        assert self.exercise is not None
        if _word(line) == "quit":
            self.ended = True
            yield Sentence(Message("Until next time. Every line is kept."))
            return
        yield from self.exercise.take(line)
        if self.exercise.done:
            self.left -= 1
            self.ended = self.left <= 0 and not self._owed
            if not self.ended:
                yield from self.start()

    def _write(self, entry: LogEntry) -> None:
        self._keep(entry)
        self.state.add(entry)
        if entry.verdict == "shown":
            self._owed.add(entry.skill)
        elif entry.is_clean:
            self._owed.discard(entry.skill)


def _word(line: str) -> str | None:
    return WORDS.get(" ".join(line.split()).casefold())


def _remarks(*said: Message) -> Iterator[Reply]:
    """What keeps an answer from being judged; it counts no try."""
    return (Sentence(message, "remark") for message in said)


def _stage(stage: int) -> Message:
    if stage >= LAST_STAGE:
        return Message("Stage {stage} of {last}: every line is yours.", stage=stage, last=LAST_STAGE)
    if stage == 1:
        return Message("Stage {stage} of {last}: only the last line is yours.", stage=stage, last=LAST_STAGE)
    return Message("Stage {stage} of {last}: the last lines are yours.", stage=stage, last=LAST_STAGE)
