"""attncli grade: mark a class."""

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncli.cli.options import Command, Word, example_ids, shared
from attncli.cli.output import Output, Say, Words, is_terminal
from attncli.core.message import N_, InputError

if TYPE_CHECKING:
    from attncli.marking.grader import Grader

_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".xml": "junit"}


def grade(out: Output, words: Words) -> int:
    """Mark a class and write the results; the exit status is 0 whatever the marks are, 2 where we failed at a sheet."""
    from attncli.core.outputs import CLASS, check_output
    from attncli.marking.grader import Grader
    from attncli.marking.grading import FORMATS, STREAMED, Grading, Order, Printers
    from attncli.problems.answers import mapping
    from attncli.problems.request import problem_of
    from attncli.problems.settings import layout_of, whole_number
    from attncli.render import data, markdown
    from attncli.render.sheet import class_page
    from attncli.worksheets import folder

    say, exercise, sheets, output = out.say, words["exercise"], words["sheets"], words["output"]
    chosen = out.format(FORMATS, _ENDINGS)
    if chosen == "gradescope" and output is None:
        raise InputError("Gradescope's results are one file a student. Give a folder: -o results")
    if exercise == "-" and "-" in sheets:
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    processes = whole_number("-j", words["jobs"], 1, 256) or 1
    if words["dask"] is not None and words["jobs"] is not None:
        raise InputError("--dask and -j: a cluster has its own processes. Give one of them.")
    problems, owners = folder.read(exercise)
    problem = next(iter(problems.values())) if problems else problem_of(exercise)
    inputs = (exercise, *sheets)
    if output is not None and chosen == "table":
        check_output(output, CLASS, inputs, force=True)
    stdin = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
    page_of = None if words["feedback"] is None else markdown.feedback
    layout, names = layout_of(words["layout"]), mapping(words["map_"], problem)
    grader = Grader(problem, say.language, layout, page_of, names, problems, owners)
    order = Order(
        tuple(sheets), stdin, chosen, output, words["feedback"], inputs, processes, words["dask"], words["force"]
    )
    with ExitStack() as stack:
        # Lines that run over the screen by themselves show how far it is.
        over_the_screen = chosen in STREAMED and output is None and is_terminal(sys.stdout)
        watched = _progress(stack) if is_terminal(sys.stderr) and not over_the_screen else None
        printers = Printers(data.writer, markdown.unreadable, markdown.remark)
        grading = Grading(order, grader, printers, say.error, watched)
        _say_strange_columns(say, sheets, grader)
        picture = grading.run(say.out)
    if chosen == "table":
        author = grader.marker.undetectable()
        out.write(out.text(class_page(picture, problem, out.language, author)), CLASS)
    else:
        _say_to_the_author(say, exercise, grader)
    return 2 if grading.faults else 0


def _say_strange_columns(say: Say, sheets: Sequence[str], grader: "Grader") -> None:
    from attncli.marking.class_files import unknown_columns

    for path in sheets:
        if path.lower().endswith(".csv") and Path(path).is_file():
            strange = unknown_columns(path, grader.knows, grader.marker.ids)
            if strange is not None:
                say.error(strange)


def _say_to_the_author(say: Say, exercise: str, grader: "Grader") -> None:
    """Once, after the results: what an exercise of one's own cannot tell."""
    from attncli.problems import library
    from attncli.render.sheet import for_the_author

    if library.find(exercise) is None:
        author = grader.marker.undetectable()
        if author:
            say.error(for_the_author(author))


def _progress(stack: ExitStack) -> Callable[..., Any]:
    """A progress bar on standard error, until the stack is closed."""
    from attncli.render.chart import counting

    return lambda results, done, total: counting(results, sys.stderr, stack, done, total())


COMMAND = Command(N_("Mark a class: a result a sheet, and the picture of the class."), grade, {
    "exercise": Word("PROBLEM|WORKSHEETS", N_("A problem file, the id of a worked example, or a folder of worksheets."), example_ids),
    "sheets": Word("SUBMISSIONS...", N_("A folder of sheets, .jsonl or .csv files, or - for JSON Lines on standard input.")),
    "format": Word("--format NAME", N_("table, jsonl, csv, gradescope or junit; by default as -o ends, else table.")),
    **shared("output", "force"),
    "feedback": Word("--feedback DIR", N_("Also write each student's feedback there, as Markdown.")),
    **shared("map_"),
    "jobs": Word("-j, --jobs N", N_("Number of processes that mark side by side (default: 1).")),
    "dask": Word("--dask ADDRESS", N_("Mark on a Dask cluster (needs the extra attncli[dask]).")),
    **shared("layout", "lang"),
})  # fmt: skip
