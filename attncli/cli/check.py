"""attncli check: mark one sheet."""

from attncli.cli.options import Command, Word, example_ids, shared, step_ids
from attncli.cli.output import Output, Words
from attncli.core.message import N_, InputError


def check(out: Output, words: Words) -> int:
    """Mark one sheet and print the marks; exit status 1 if something is wrong."""
    from attncli.core.outputs import MARKS
    from attncli.marking.mark import marker_of
    from attncli.problems import answers
    from attncli.problems.request import problem_of
    from attncli.problems.settings import layout_of
    from attncli.problems.source import Stdin

    name, written = answers.file_and_answers(words["answers"])
    exercise, reveal = words["exercise"], words["reveal"]
    if exercise == "-" and name == "-":
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    if words["hint"] and reveal:
        raise InputError("--hint shows no right number and --reveal shows them all. Choose one of them.")
    chosen = out.format(("table", "json", "markdown"))
    problem = problem_of(exercise)
    layout = layout_of(words["layout"]) or problem.layout
    marker = marker_of(problem)
    sheet = answers.sheet_of(name, (*written, *words["answer"]), Stdin())
    marked = marker.mark(answers.mapped(sheet, answers.mapping(words["map_"], problem)), layout)
    how = "hint" if words["hint"] else "all" if reveal else "first"
    if chosen == "json":
        from attncli.render.data import marks_json

        right = marker.expected(marked) if reveal else None
        text = marks_json(marked, out.language, right=right, undetectable=marker.undetectable()) + "\n"
    elif chosen == "markdown":
        from attncli.render.markdown import feedback

        text = feedback(marked, out.language, reveal=how)
    else:
        from attncli.render.sheet import language_of, page

        text = out.text(page(marked, out.language, reveal=how), language_of(marked, out.language))
    out.write(text, MARKS)
    return 0 if marked.ok else 1


COMMAND = Command(N_("Mark a sheet: what is right, the first wrong step, and the mistake by name."), check, {
    "exercise": Word("PROBLEM", N_("A problem file, or the id of a worked example."), example_ids),
    "answers": Word("[ANSWERS] [STEP=M]...", N_('The sheet: TOML, JSON, .npz or CSV, - for standard input; or answers written out, like A="0.330 0.670", with ? for a blank cell.')),
    "answer": Word("--answer ID=M", N_("The same as STEP=M."), step_ids, many=True),
    **shared("map_"),
    "hint": Word("--hint", N_("Only say where to look again; no right number.")),
    "reveal": Word("--reveal", N_("Open up every wrong step, not only the first.")),
    "format": Word("--format table|json|markdown", N_("Format of the marks.")),
    **shared("output", "force", "layout", "lang"),
})  # fmt: skip
