"""attncli check: mark one sheet."""

from typing import Any

from attncli.cli.options import argument, arguments, command_of, example_ids, flag, option, options, shared, step_ids
from attncli.cli.output import Say, format_of, printed, write_text
from attncli.core.message import InputError

_FORMATS = ("table", "json", "markdown")


def command(say: Say) -> Any:
    """The command."""
    t = say.text
    own = {
        "exercise": argument("PROBLEM", help=t("A problem file, or the id of a worked example."), complete=example_ids),
        "answers": arguments("[ANSWERS] [STEP=M]...", help=t('The sheet: TOML, JSON, .npz or CSV, - for standard input; or answers written out, like A="0.330 0.670", with ? for a blank cell.'), default=None),
        "answer": options("--answer", metavar="ID=M", help=t("The same as STEP=M."), complete=step_ids),
        "hint": flag("--hint", help=t("Only say where to look again; no right number.")),
        "reveal": flag("--reveal", help=t("Open up every wrong step, not only the first.")),
        "format": option("--format", metavar="table|json|markdown", help=t("How the marks are written.")),
    }  # fmt: skip
    help = t("Mark a sheet: what is right, the first wrong step, and the mistake by name.")
    names = ("exercise", "answers", "answer", "map_", "hint", "reveal", "format", "output", "force", "layout", "lang")
    return command_of("check", help, check, say, names, {**shared(say), **own})


def check(say: Say, **words: Any) -> int:
    """Mark one sheet and print the marks; exit status 1 if something is wrong."""
    from attncli.core.outputs import MARKS
    from attncli.marking.mark import marker_of
    from attncli.marking.sheets import file_and_answers, mapped, mapping, sheet_layout, sheet_of
    from attncli.problems.request import Stdin, problem_of

    name, written = file_and_answers(words["answers"] or ())
    exercise, target, reveal = words["exercise"], words["output"], words["reveal"]
    if exercise == "-" and name == "-":
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    if words["hint"] and reveal:
        raise InputError("--hint shows no right number and --reveal shows them all. Choose one of them.")
    chosen = format_of(words["format"], target, _FORMATS)
    problem = problem_of(exercise)
    layout = sheet_layout(words["layout"]) or problem.layout
    marker = marker_of(problem)
    sheet = sheet_of(name, (*written, *(words["answer"] or ())), Stdin())
    marked = marker.mark(mapped(sheet, mapping(words["map_"] or (), problem)), layout)
    how = "hint" if words["hint"] else "all" if reveal else "first"
    if chosen == "json":
        from attncli.render.results import marks_json

        right = marker.expected(marked) if reveal else None
        text = marks_json(marked, say.language, right=right, undetectable=marker.undetectable()) + "\n"
    elif chosen == "markdown":
        from attncli.render.markdown import feedback

        text = feedback(marked, say.language, reveal=how)
    else:
        from attncli.render.document import say_in
        from attncli.render.sheet import language_of, page
        from attncli.render.terminal import Screen

        said = say_in(language_of(marked, say.language))
        blocks = page(marked, say.language, reveal=how)
        text = printed(lambda screen: Screen(said, width=screen.width, encoding=screen.encoding).printed(blocks))
    write_text(say, text, target, MARKS, force=words["force"])
    return 0 if marked.ok else 1
