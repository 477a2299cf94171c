"""attncli worksheet: an exercise to print, its key, and variants for a class."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncli.cli.options import Command, Word, example_ids, shared
from attncli.cli.output import Output, Say, Words, is_terminal, width
from attncli.core.message import N_, InputError, Localized, Message, unknown
from attncli.locale.fit import columns, definitions, wrap

if TYPE_CHECKING:
    from attncli.problems.problem import Problem
    from attncli.worksheets.folder import Job, SetOrder

#: What can only be meant as the name of a recipe or a worked example.
_WORD = re.compile(r"[a-zA-Z][\w-]*")


def worksheet(out: Output, words: Words) -> int:
    """Write a worksheet, a key, or variants; or say what the recipes are and what they tell apart."""
    from attncli.problems import library
    from attncli.problems.request import problem_named
    from attncli.worksheets import recipes

    what = words["what"]
    if words["list_"]:
        out.say.out(_listing(out.say))
        return 0
    if what is None:
        raise InputError(
            "There is nothing to make a worksheet from. Give a problem file, a worked example, or a recipe: attncli worksheet --list"
        )
    is_recipe = what in recipes.names()
    if not is_recipe:
        for name in filter(words.get, ("variants", "students", "seed", "decimals", "ask", "explain")):
            raise InputError(
                "{option} is for recipes, and “{what}” is not a recipe. Choose one: {names}.",
                option=f"--{name}", what=what[:80], names=", ".join(recipes.names()),
            )  # fmt: skip
        if _WORD.fullmatch(what) and library.find(what) is None and not Path(what).exists():
            raise unknown(Message("The recipe or worked example"), what, [*recipes.names(), *library.ids()])
        return _single(out, problem_named(what), words)
    if words["variants"] is not None and words["students"] is not None:
        raise InputError(
            "--variants and --students: give one of them; with --students there is a sheet for every name."
        )
    order = _order(out.say, what, words)
    if words["explain"]:
        out.say.out(_explained(out.say, order))
        return 0
    if not order.variants and not order.students:
        problem, _ = _first(order).drawn()
        return _single(out, problem, words)
    return _set(out, order, words)


def _first(order: "SetOrder") -> "Job":
    """The one sheet of a set of one."""
    return order.changed(variants=1, students=()).sheets()[0]


def _order(say: Say, recipe: str, words: Words) -> "SetOrder":
    from attncli.problems.settings import whole_number
    from attncli.worksheets.folder import MOST_VARIANTS, SetOrder, students_of

    return SetOrder(
        recipe,
        words["seed"] if words["seed"] is not None else "1",
        whole_number("--variants", words["variants"], 1, MOST_VARIANTS) or 0,
        () if words["students"] is None else students_of(words["students"]),
        whole_number("--decimals", words["decimals"], 1, 6),
        tuple(words["ask"]),
        say.language.code,
    )


def _single(out: Output, problem: "Problem", words: Words) -> int:
    """One worksheet or key, on the screen or in a file."""
    from attncli.core.outputs import SHEET
    from attncli.marking.mark import marker_of
    from attncli.problems.question import question_of
    from attncli.render import SHEETS, sheet_printer
    from attncli.render.exercise import worksheet
    from attncli.worksheets.folder import answers_text
    from attncli.worksheets.outcomes import key_of, powers_of

    target = out.target
    ending = ".txt" if target is None else Path(target).suffix.lower()
    if ending not in (*SHEETS, ".toml"):
        raise InputError("-o {path}: a worksheet ends in .html, .tex, .md, .txt or .toml.", path=target)
    if ending == ".toml" and words["key"]:
        raise InputError(
            "-o {path}: an empty sheet has no answer key. Write the answer key to .html, .tex, .md or .txt.",
            path=target,
        )
    question = question_of(problem)
    if ending == ".toml":
        text = answers_text(problem)
    else:
        key = key_of(marker_of(problem), question) if words["key"] else None
        sheet = worksheet(question, out.language, key, powers=() if words["key"] else powers_of(question))
        text = sheet_printer(ending)([sheet]) if out.to_file else out.text(sheet.blocks, coloured=False)
    out.write(text, SHEET, "sheet.html")
    return 0


def _set(out: Output, order: "SetOrder", words: Words) -> int:
    """A folder of variants."""
    import shlex

    from attncli.problems.settings import whole_number
    from attncli.render import sheet_printer
    from attncli.render.exercise import worksheet
    from attncli.worksheets.folder import check_folder, make_all, write

    if words["output"] is None:
        raise InputError("Variants are written into a folder. Give one: -o sheets")
    if words["key"]:
        raise InputError(
            "--key: the answer key of variants lies in their folder, as teacher/key.html. Leave --key out."
        )
    folder = Path(words["output"])
    jobs = whole_number("-j", words["jobs"], 1, 256) or 1
    check_folder(folder, order, force=words["force"])

    with ExitStack() as stack:
        coming: Any = make_all(order, worksheet, jobs)
        if is_terminal(sys.stderr):
            from attncli.render.chart import counting

            coming = counting(coming, sys.stderr, stack, 0, len(order.sheets()))
        sheets = write(folder, order, coming, sheet_printer)
    hidden = {f"{proof.step}: {proof.id}" for one in sheets for proof in one.proofs if not proof.is_alone}
    t, where = out.say.text, words["output"]
    made = t("Sheets in {folder}: {count}. Print sheets.html; the answer key is teacher/key.html.", folder=where, count=len(sheets))  # fmt: skip
    # A command stays on one line, to be copied.
    lines = [wrap(made, width()), t("To mark: attncli grade {folder} ANSWERS", folder=shlex.quote(where))]
    if hidden:
        names = ", ".join(sorted(hidden))
        lines.append(
            wrap(t("Not told apart on every sheet (teacher/certificate.json): {names}.", names=names), width())
        )
    out.say.out("".join(f"{line}\n" for line in lines))
    return 0


def _listing(say: Say) -> str:
    from attncli.worksheets import recipes

    rows = [(name, Localized(recipes.load(name).title).text(say.language)) for name in recipes.names()]
    return "\n".join(definitions(rows, width(), least=max(columns(name) for name, _ in rows))) + "\n"


def _explained(say: Say, order: "SetOrder") -> str:
    """What the numbers of the first sheet tell apart, mistake by mistake."""
    from attncli.worksheets.outcomes import told_apart

    _, proofs = _first(order).drawn()
    groups = told_apart(proofs)
    t = say.text
    titles = {
        "alone": t("Told apart from every other mistake: {count}", count=len(groups["alone"])),
        "shared": t("The same numbers as another mistake: {count}", count=len(groups["shared"])),
        "impossible": t("Not possible with matrices of these shapes: {count}", count=len(groups["impossible"])),
    }
    lines: list[str] = []
    for name, entries in groups.items():
        if entries:
            lines += ["", titles[name], *(wrap(entry, width(), "  ", "    ") for entry in entries)]
    return "\n".join(lines[1:]) + "\n"


COMMAND = Command(N_("Print an exercise with boxes to fill in, its answer key, or variants for a whole class."), worksheet, {
    "what": Word("[PROBLEM|EXAMPLE|RECIPE]", N_("A problem file, the id of a worked example, or a recipe (--list shows them)."), example_ids),
    "output": Word("-o, --output FILE|FOLDER", N_("Where to write: .html (to print), .tex, .md, .txt or .toml (an empty sheet); for variants a folder.")),
    "key": Word("--key", N_("The answer key instead: what belongs in every box, how far apart right answers may be, and what each mistake would have given.")),
    "variants": Word("--variants N", N_("Number of sheets, with different numbers and equal effort.")),
    "students": Word("--students FILE.csv", N_("A sheet for every name in the column student; the same name gets the same sheet again.")),
    "seed": Word("--seed TEXT", N_("Seed of the numbers: the same seed gives the same numbers (default: 1).")),
    "decimals": Word("--decimals D", N_("Decimals to write.")),
    "ask": Word("--ask ID", N_("Ask for this step only (can be given several times)."), many=True),
    "explain": Word("--explain", N_("Say which mistakes the numbers of a recipe tell apart.")),
    "list_": Word("--list", N_("List the recipes.")),
    "jobs": Word("-j, --jobs N", N_("Number of processes that make the sheets side by side (default: 1).")),
    **shared("force", "lang"),
})  # fmt: skip
