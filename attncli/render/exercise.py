r"""An exercise as blocks: its question before anybody has answered, and in practice one line of it after another."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from attncli.core.axes import show_shape
from attncli.core.graph import Trace
from attncli.core.message import Language, Localized, Message
from attncli.core.terms import Index
from attncli.practice.replies import CellArithmetic, LineFormula, LineNumbers, Reply, Sentence, Wanted, WholeExercise
from attncli.practice.session import Exercise
from attncli.problems.problem import Run
from attncli.problems.question import Question, question_of
from attncli.render.arithmetic import ABOUT, WHY_ABOUT_IN_MARKS, sign, term_text
from attncli.render.document import Block, Code, Columns, Gap, Heading, Paragraph, ShownStep, Steps
from attncli.render.formula import as_text
from attncli.render.run import source_line
from attncli.render.text import cell_name, printable
from attncli.render.view import View, items, view
from attncli.render.worksheet import beside, decimals, points


def page(asked: Question, name: str, view: View, *, hint: bool) -> Iterator[Block]:
    """What is given, what is asked, and how to hand it in; the hint only where it was asked for.

    Parameters
    ----------
    name : how the problem is called on the command line
    view : of a run of the problem, of which only what is given is shown
    """
    problem = asked.problem
    yield Heading(f"{problem.id}: {view.title()}" if problem.id else view.title(), 1)
    if problem.prompt:
        yield Paragraph(Localized(problem.prompt))
    yield Gap()
    yield _matrices(view, asked.given)
    yield from map(Paragraph, beside(asked))
    yield Heading(_to_hand_in(asked))
    yield Columns(tuple(_asked(asked)))
    if hint and problem.hint:
        yield Heading(Message("Hint"))
        yield Paragraph(Localized(problem.hint))
    yield Gap()
    where = source_line(problem.source)
    if where is not None:
        yield Paragraph(where, "aside")
    if problem.hint and not hint:
        yield Paragraph(Message("A hint: attncli examples show {id} --hint", id=shlex.quote(name)), "aside")
    yield Paragraph(Message("The solution, step by step: attncli examples run {id}", id=shlex.quote(name)), "aside")
    yield Gap()
    yield Paragraph(Message("Write the numbers over the question marks, in a sheet (answers.toml) …"))
    yield Code(asked.sheet())
    yield Paragraph(Message("… or on the command line:"))
    yield Code(asked.command(name))


def _matrices(view: View, ids: Iterable[str]) -> Steps:
    shown = items(view.run, tuple(ids), turned=view.layout == "columns")
    return Steps(tuple(ShownStep(view, item) for item in shown), aside=True)


def _to_hand_in(asked: Question) -> Message:
    places = asked.decimals
    if len(places) != 1:
        return Message("To hand in")
    if places[0] is None:
        return Message("To hand in, each number judged at the decimals it is written with")
    if places[0] == 1:
        return Message("To hand in, with 1 decimal")
    return Message("To hand in, with {places} decimals", places=places[0])


def _asked(asked: Question) -> Iterator[tuple[Message | str, ...]]:
    """Each thing to hand in: its id, symbol, shape, points, and decimals where they differ."""
    for one in asked.asked:
        symbol = as_text(one.symbol)
        cells = (one.step, symbol if symbol != one.step else "", show_shape(one.shape), points(one.points))
        yield (*cells, decimals(one.decimals)) if len(asked.decimals) > 1 else cells


# Practice.

_TONES = {"title": "strong"}


def part_blocks(part: Reply, exercise: Exercise, language: Language) -> Iterator[Block]:
    """What a session shows of an exercise."""
    match part:
        case Sentence():
            yield Paragraph(part.message, _TONES.get(part.kind, part.kind))
        case WholeExercise():
            yield from _whole(part, exercise, _view(exercise, language))
        case LineNumbers():
            yield _matrices(_view(exercise, language), (part.id,))
        case LineFormula():
            shown = _view(exercise, language)
            for item in items(shown.run, part.ids, turned=shown.layout == "columns"):
                yield Paragraph(f"  {item.name} = {item.formula_text or '…'}")
        case CellArithmetic():
            yield from _arithmetic(part, _view(exercise, language))
        case Wanted():
            yield Gap()
            yield Paragraph(_wanted(part))


def _view(exercise: Exercise, language: Language) -> View:
    """Of the numbers that the learner has so far."""
    problem, graph = exercise.problem, exercise.graph
    run = Run(problem, graph, Trace(graph, "floating", dict(exercise.values())), tuple(graph.steps))
    return view(run, language, layout=problem.layout)


def _whole(part: WholeExercise, exercise: Exercise, shown: View) -> Iterator[Block]:
    asked = question_of(exercise.problem)
    yield Gap()
    if exercise.problem.prompt:
        yield Paragraph(Localized(exercise.problem.prompt))
        yield Gap()
    yield _matrices(shown, asked.given)
    yield from map(Paragraph, beside(asked))
    if part.shown:
        yield Gap()
        yield Paragraph(Message("Worked out already:"))
        yield _matrices(shown, part.shown)


def _wanted(part: Wanted) -> Message:
    symbol = as_text(part.symbol)
    name = part.id if symbol == part.id else f"{part.id} ({symbol})"
    if part.decimals == 1:
        return Message("Your turn: {name}, {shape}, with 1 decimal.", name=name, shape=show_shape(part.shape))
    return Message(
        "Your turn: {name}, {shape}, with {places} decimals.",
        name=name,
        shape=show_shape(part.shape),
        places=part.decimals,
    )


def _arithmetic(part: CellArithmetic, shown: View) -> Iterator[Block]:
    def show(step_id: str, index: Index) -> str:
        """A number that stands on the screen; another is called by its name."""
        return shown.show_cell(step_id, index) if step_id in part.on_screen else named(step_id, index)

    def named(step_id: str, index: Index) -> str:
        return cell_name(shown.symbol(step_id), index, shown.layout)

    # A number taken over as it is: to print it would be the result.
    is_taken_over = part.term.kind == "cell"
    text = named(*next(part.term.cells())) if is_taken_over else printable(term_text(part.term, show))
    line = f"  {named(part.id, part.index)} = {text}"
    if not part.solved:
        yield Paragraph(f"{line} = ?")
        return
    result = shown.show_cell(part.id, part.index)
    relation = sign(part.term, show, result, shown.run.places(part.id))
    yield Paragraph(f"{line} {relation} {result}")
    if relation == ABOUT:
        yield Paragraph(WHY_ABOUT_IN_MARKS, "reason")
