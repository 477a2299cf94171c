"""attncli worksheet: an exercise to print, its key, and variants for a class."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import options, with_options
from attncli.cli._say import Say

NAMES = (
    "what",
    "output",
    "key",
    "variants",
    "students",
    "seed",
    "decimals",
    "ask",
    "explain",
    "list_",
    "jobs",
    "force",
    "lang",
)


def command(say: Say) -> Any:
    """The command."""

    def worksheet(**words: Any) -> int:
        return _worksheet(say, **words)

    t = say.text
    one = str | None
    own: dict[str, tuple[Any, Any]] = {
        "what": (Annotated[one, typer.Argument(metavar="[PROBLEM|EXAMPLE|RECIPE]", help=t("A problem file, the id of a worked example, or a recipe (--list shows them)."), autocompletion=_complete.examples, show_default=False)], None),
        "output": (Annotated[one, typer.Option("-o", "--output", metavar="FILE|FOLDER", help=t("Where to write: .html (to print), .tex, .md, .txt or .toml (an empty sheet); for variants a folder."))], None),
        "key": (Annotated[bool, typer.Option("--key", help=t("The answer key instead: what belongs in every box, how far right answers may lie apart, and what each mistake would have given."))], False),
        "variants": (Annotated[one, typer.Option("--variants", metavar="N", help=t("So many sheets with different numbers and equal effort."))], None),
        "students": (Annotated[one, typer.Option("--students", metavar="FILE.csv", help=t("A sheet for every name in the column student; the same name gets the same sheet again."))], None),
        "seed": (Annotated[one, typer.Option("--seed", metavar="TEXT", help=t("Where drawing starts: the same seed gives the same numbers (1, if nothing is said)."))], None),
        "decimals": (Annotated[one, typer.Option("--decimals", metavar="D", help=t("Decimals to write."))], None),
        "ask": (Annotated[list[str] | None, typer.Option("--ask", metavar="ID", help=t("Ask for this step only (can be given several times)."), show_default=False)], None),
        "explain": (Annotated[bool, typer.Option("--explain", help=t("Say which mistakes the numbers of a recipe tell apart."))], False),
        "list_": (Annotated[bool, typer.Option("--list", help=t("List the recipes."))], False),
        "jobs": (Annotated[one, typer.Option("-j", "--jobs", metavar="N", help=t("Processes that draw side by side (1, if nothing is said)."))], None),
    }  # fmt: skip
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(
        "worksheet", help=t("Print an exercise with boxes to fill in, its answer key, or variants for a whole class.")
    )(with_options(worksheet, NAMES, {**options(say), **own}))
    return command_of(app)


def _worksheet(say: Say, **words: Any) -> int:
    from attncli.core.message import InputError
    from attncli.worksheets import recipes

    what = words["what"]
    if words["list_"]:
        say.out(_listing(say))
        return 0
    if what is None:
        raise InputError(
            "Nothing to make a worksheet of is named. Give a problem file, a worked example, or a recipe: attncli worksheet --list"
        )
    is_recipe = what in recipes.names()
    if not is_recipe:
        for option, name in (("--variants", "variants"), ("--students", "students"), ("--seed", "seed"), ("--decimals", "decimals"), ("--ask", "ask"), ("--explain", "explain")):  # fmt: skip
            if words[name]:
                raise InputError("{option} is for recipes, and “{what}” is none. Choose one: {names}.", option=option, what=what[:80], names=", ".join(recipes.names()))  # fmt: skip
        return _single(say, _problem(what), words)
    if words["variants"] is not None and words["students"] is not None:
        raise InputError(
            "--variants and --students: give one of them; with --students there is a sheet for every name."
        )
    order = _order(say, what, words)
    if words["explain"]:
        say.out(_explained(say, order))
        return 0
    if not order.variants and not order.students:
        from attncli.worksheets.generator import draw

        problem = draw(
            recipes.load(what), f"{order.seed}/1", decimals=order.decimals, ask=order.ask, id=f"{what}-1", proved=True
        )
        return _single(say, problem, words)
    return _set(say, order, words)


def _problem(what: str) -> Any:
    from attncli.cli._examples import named

    return named(what)


def _order(say: Say, recipe: str, words: dict[str, Any]) -> Any:
    from attncli.cli._calculation import whole_number
    from attncli.worksheets.folder import MOST_VARIANTS, SetOrder, students_of

    decimals = words["decimals"]
    return SetOrder(
        recipe,
        words["seed"] if words["seed"] is not None else "1",
        whole_number("--variants", words["variants"], 1, MOST_VARIANTS) or 0,
        () if words["students"] is None else students_of(words["students"]),
        None if decimals is None else whole_number("--decimals", decimals, 1, 6),
        tuple(words["ask"] or ()),
        say.language.code,
    )


def _single(say: Say, problem: Any, words: dict[str, Any]) -> int:
    """One worksheet or key, on the screen or in a file."""
    from pathlib import Path

    from attncli.cli._output import language_of, write_file
    from attncli.core.message import InputError
    from attncli.core.outputs import SHEET
    from attncli.problems.question import question_of
    from attncli.render.worksheet import PRINTERS, page
    from attncli.worksheets.folder import answers_text

    target = words["output"]
    ending = ".txt" if target is None else Path(target).suffix.lower()
    if ending not in (*PRINTERS, ".toml"):
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
        key = None
        if words["key"]:
            from attncli.marking.grade import marker_of
            from attncli.worksheets.key import key_of

            key = key_of(marker_of(problem), [one.step for one in question.asked])
        text = PRINTERS[ending]([page(question, language_of(say, to_file=target is not None), key)])
    if target is None:
        say.out(text)
    else:
        write_file(say, target, text.encode(), SHEET, example="sheet.html", force=words["force"])
    return 0


def _set(say: Say, order: Any, words: dict[str, Any]) -> int:
    """A folder of variants."""
    import sys
    from contextlib import ExitStack
    from pathlib import Path

    from attncli.cli._calculation import whole_number
    from attncli.cli._terminal import width
    from attncli.core.message import InputError
    from attncli.core.outputs import make_folder, write_whole
    from attncli.locale.wrap import wrap
    from attncli.problems.question import quoted
    from attncli.render import worksheet as pages
    from attncli.worksheets.folder import make_all, set_text, write

    if words["output"] is None:
        raise InputError("Variants are written into a folder. Give one: -o sheets")
    if words["key"]:
        raise InputError(
            "--key: the answer key of variants lies in their folder, as teacher/key.html. Leave --key out."
        )
    folder = Path(words["output"])
    jobs = whole_number("-j", words["jobs"], 1, 256) or 1
    _check_folder(folder, set_text(order, [job.id for job in order.sheets()]), force=words["force"])

    def put(path: Path, data: bytes) -> None:
        make_folder(path.parent, "-o")
        write_whole(str(path), data)

    with ExitStack() as stack:
        made: Any = make_all(order, pages.page, jobs)
        if sys.stderr is not None and sys.stderr.isatty():
            from attncli.render.live import counting

            made = counting(made, sys.stderr, stack, 0, len(order.sheets()))
        sheets = write(folder, order, made, pages, put)
    hidden = {(proof.step, proof.id) for one in sheets for proof in one.proofs if not proof.is_alone}
    said = say.text("Sheets in {folder}: {count}. Print sheets.html; the answer key is teacher/key.html.", folder=words["output"], count=len(sheets))  # fmt: skip
    say.out(wrap(said, width()) + "\n" + say.text("To mark: attncli grade {folder} ANSWERS", folder=quoted(words["output"])) + "\n")  # fmt: skip
    if hidden:
        names = ", ".join(sorted(f"{step}: {id}" for step, id in hidden))
        said = say.text("Not told apart on every sheet (teacher/certificate.json): {names}.", names=names)
        say.out(wrap(said, width()) + "\n")
    return 0


def _check_folder(folder: Any, text: str, *, force: bool) -> None:
    """Refuse a folder that holds something else.

    Raises
    ------
    InputError
        It does, or it is a file.
    """
    from attncli.core.message import InputError

    if folder.exists() and not folder.is_dir():
        raise InputError(
            "-o {path}: this is a file, but variants are written into a folder. Give another name.", path=str(folder)
        )
    if force or not folder.is_dir() or not any(folder.iterdir()):
        return
    table = folder / "set.toml"
    if not table.is_file() or table.read_text(encoding="utf-8", errors="replace") != text:
        raise InputError(
            "-o {path}: this folder holds something else. Give a new one, or --force to write into it.",
            path=str(folder),
        )


def _listing(say: Say) -> str:
    from attncli.cli._terminal import width
    from attncli.locale.wrap import columns, definitions
    from attncli.render.names import localized
    from attncli.worksheets import recipes

    rows = [(name, localized(recipes.load(name).title, say.language.code)) for name in recipes.names()]
    return "\n".join(definitions(rows, width(), least=max(columns(name) for name, _ in rows))) + "\n"


def _explained(say: Say, order: Any) -> str:
    """What the numbers of the first sheet tell apart, mistake by mistake."""
    from attncli.cli._terminal import width
    from attncli.locale.wrap import wrap
    from attncli.worksheets import recipes
    from attncli.worksheets.generator import drawn

    recipe = recipes.load(order.recipe)
    _, proofs = drawn(recipe, f"{order.seed}/1", decimals=order.decimals, ask=order.ask)
    groups: dict[str, list[str]] = {"alone": [], "shared": [], "impossible": []}
    for proof in proofs:
        shared = ", ".join(dict.fromkeys(id for _, id in proof.shared if id != proof.id))
        groups[proof.verdict if shared or proof.verdict != "shared" else "alone"].append(
            f"{proof.step}: {proof.id}" + (f" (= {shared})" if shared else "")
        )
    titles = {
        "alone": say.text("Told apart from every other mistake: {count}", count=len(groups["alone"])),
        "shared": say.text("The same numbers as another mistake: {count}", count=len(groups["shared"])),
        "impossible": say.text(
            "Cannot be made with matrices of these shapes: {count}", count=len(groups["impossible"])
        ),
    }
    lines: list[str] = []
    for name, entries in groups.items():
        if entries:
            lines += ["", titles[name], *(wrap(entry, width(), "  ", "    ") for entry in entries)]
    return "\n".join(lines[1:]) + "\n"
