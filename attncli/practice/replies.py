"""What a session shows, before any screen: sentences, numbers, the arithmetic of a cell; and hints, a ladder of these.

A hint says where to look, then the formula in letters, then the numbers put in without the result. Never a result.
"""

from __future__ import annotations

from collections.abc import Mapping

from attncli.arithmetic import Value
from attncli.core.graph import Graph
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.core.terms import Index, Term, cell
from attncli.marking.explain import where_to_look
from attncli.marking.feedback import StepMark


class Reply(Record):
    """Something that a session shows."""


class Sentence(Reply):
    """A sentence; its kind says how it stands out: "title", "right", "wrong", "remark", "aside", or nothing."""

    message: Message
    kind: str = ""


class WholeExercise(Reply):
    """A whole exercise: its prompt, what is given, and the lines that are shown.

    Parameters
    ----------
    shown : ids of the lines whose numbers stand there
    """

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


#: The rung that gives the result, and costs the line.
LAST = 4
#: Cells that the arithmetic of one cell may hold and still be read.
_MOST_CELLS = 40


class Ladder(Record):
    """The hints at one line.

    Parameters
    ----------
    line : the step that is asked for
    mark : of the last try, or None
    on_screen : inputs and lines that stand on the screen; every other number is opened down to these
    values : the numbers of all lines, as they follow from what stands on the screen
    """

    graph: Graph
    line: str
    mark: StepMark | None
    on_screen: frozenset[str]
    values: Mapping[str, Value]

    def rung(self, number: int) -> Reply:
        """One hint below the last, about the last try where there was one."""
        if number == 1:
            return Sentence(self.where_to_look())
        if number == 2:
            return LineFormula((self.line, *self._hidden_before()))
        return self.arithmetic()

    def where_to_look(self) -> Message:
        """What to look at again: in the words of the likeliest mistake, else what the line is for."""
        if self.mark is None:
            return self.graph.steps[self.line].why
        if self.mark.mistakes:
            return where_to_look(self.mark.mistakes, self.graph)
        return Message("Work this line out once more from the lines above it.")

    def arithmetic(self) -> CellArithmetic:
        """One cell's arithmetic with the numbers put in: of the first wrong one, else of the first."""
        step, shape = self.graph.steps[self.line], self.graph.shape(self.line)
        index = (0,) * len(shape)
        wrong = self.mark.cells[0] if self.mark is not None and self.mark.cells else ()
        if len(wrong) == len(shape) and all(1 <= i <= size for i, size in zip(wrong, shape, strict=True)):
            index = tuple(i - 1 for i in wrong)
        term = step.terms(self.values)[index]
        opened = self._opened(term)
        is_short = len(list(opened.cells())) <= _MOST_CELLS
        return CellArithmetic(self.line, index, opened if is_short else term, self.on_screen)

    def _opened(self, term: Term) -> Term:
        """The term with every cell that stands nowhere on the screen replaced by its own arithmetic."""

        def arithmetic(step_id: str, index: Index) -> Term:
            step = self.graph.steps.get(step_id)
            if step is None or step_id in self.on_screen:
                return cell(step_id, index)
            return self._largest(step.terms(self.values)[index].with_cells(arithmetic))

        return term.with_cells(arithmetic)

    def _largest(self, term: Term) -> Term:
        """Of a maximum of numbers that stand somewhere, the one that it is: it stands there, too."""
        if term.kind != "max" or any(part.kind != "cell" for part in term.terms):
            return term

        def value(part: Term) -> float:
            step_id, index = part.place
            return float(self.values[step_id][index])

        return max(term.terms, key=value)

    def _hidden_before(self) -> list[str]:
        """The lines that the line is worked out from and that stand nowhere, the last one first."""
        steps = self.graph.steps
        found: set[str] = set()
        waiting = [self.line]
        while waiting:
            new = {source for source in steps[waiting.pop()].inputs if source in steps} - self.on_screen - found
            found |= new
            waiting += new
        return [step for step in reversed(steps) if step in found]
