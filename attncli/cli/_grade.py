"""What `attncli grade` does: read the options, give the order, show the picture of the class."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from attncli.cli._calculation import problem_of, whole_number
from attncli.cli._check import mapping_for
from attncli.cli._output import write_file
from attncli.cli._say import Say
from attncli.core.message import N_, InputError, Message, unknown
from attncli.core.outputs import CLASS, check_output
from attncli.marking.grade import Grader, Picture, sheet_layout
from attncli.marking.grading import FORMATS, STREAMED, Grading, Order, Pages, Results
from attncli.marking.submissions import unknown_columns
from attncli.problems.problem import Problem

_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".xml": "junit"}


def grade(
    say: Say,
    *,
    exercise: str,
    sheets: Sequence[str],
    format: str | None,
    output: str | None,
    force: bool,
    feedback: str | None,
    map_: Sequence[str] | None,
    jobs: str | None,
    dask: str | None,
    layout: str | None,
    lang: str | None,
) -> int:
    """Mark a class and write the results; the exit status is 0 whatever the marks are, 2 where we failed at a sheet."""
    chosen = _format(format, output)
    if exercise == "-" and "-" in sheets:
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    processes = whole_number("-j", jobs, 1, 256) or 1
    if dask is not None and jobs is not None:
        raise InputError("--dask and -j: a cluster has its own processes. Give one of them.")
    problems, owners = _set_of(exercise)
    problem = next(iter(problems.values())) if problems else problem_of(exercise, {}, say)
    inputs = (exercise, *sheets)
    if output is not None and chosen == "table":
        check_output(output, CLASS, inputs, force=True)
    order = Order(
        problem, tuple(sheets), _stdin(), say.language, chosen, sheet_layout(layout), output, feedback, inputs,
        mapping_for(problem, map_ or ()), processes, dask, force, problems, owners,
    )  # fmt: skip
    with ExitStack() as stack:
        # Lines that run over the screen by themselves show how far it is.
        over_the_screen = chosen in STREAMED and output is None and _on_terminal(sys.stdout)
        watched = _progress(stack) if _on_terminal(sys.stderr) and not over_the_screen else None
        from attncli.render import sheet

        pages = Pages(sheet.as_markdown, sheet.unreadable_as_markdown, sheet.note_as_markdown)
        grading = Grading(order, pages, say.error, watched)
        _say_strange_columns(say, sheets, grading.grader)
        picture = grading.run(say.out)
    if chosen == "table":
        _table(say, picture, grading.grader, output, force=force)
    else:
        _say_to_the_author(say, exercise, grading.grader)
    return 2 if grading.faults else 0


def _set_of(exercise: str) -> tuple[Mapping[str, Problem], Mapping[str, str]]:
    """The problems of a folder that `attncli worksheet` has written, and whose they are; nothing of anything else."""
    from attncli.worksheets import folder

    if not folder.is_set(exercise):
        return {}, {}
    found = folder.read(exercise)
    return found.problems, found.owners


def _format(format: str | None, output: str | None) -> str:
    chosen = format
    if chosen is None:
        chosen = _ENDINGS.get(Path(output).suffix.lower(), "table") if output else "table"
    if chosen not in FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(FORMATS))
    if chosen == "gradescope" and output is None:
        raise InputError("Gradescope's results are one file a student. Give a folder: -o results")
    return chosen


def _say_strange_columns(say: Say, sheets: Sequence[str], grader: Grader) -> None:
    for path in sheets:
        if path.lower().endswith(".csv") and Path(path).is_file():
            strange = unknown_columns(path, grader.knows, grader.marker.ids)
            if strange is not None:
                say.error(strange)


def _say_to_the_author(say: Say, exercise: str, grader: Grader) -> None:
    """Once, after the results: what an exercise of one's own cannot tell."""
    from attncli.problems import library
    from attncli.render.sheet import for_the_author

    if library.find(exercise) is None:
        author = grader.marker.undetectable()
        if author:
            say.error(for_the_author(author))


def _stdin() -> IO[bytes]:
    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def _on_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def _progress(stack: ExitStack) -> Callable[[Results, int, Callable[[], int | None]], Results]:
    """A progress bar on standard error, until the stack is closed."""
    from attncli.render.live import counting

    return lambda results, done, total: counting(results, sys.stderr, stack, done, total())


def _table(say: Say, picture: Picture, grader: Grader, output: str | None, *, force: bool) -> None:
    from attncli.cli._terminal import console
    from attncli.render.classroom import ClassView
    from attncli.render.names import localized
    from attncli.render.terminal import print_parts, trimmed

    screen, buffer = console()
    marker = grader.marker
    view = ClassView(
        picture,
        say.language,
        title=localized(marker.problem.title, say.language.code) or marker.problem.id,
        width=screen.width,
        encoding=screen.encoding,
        author=marker.undetectable(),
    )
    print_parts(view.parts(), screen)
    text = trimmed(buffer.getvalue())
    if output is None:
        say.out(text)
    else:
        write_file(say, output, text.encode("utf-8"), CLASS, force=force)
