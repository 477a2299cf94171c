"""attncli practice: exercises asked line by line, marked at once, and remembered."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attncli.cli._light import command_of
from attncli.cli._options import options, with_options
from attncli.cli._say import Say
from attncli.core.message import N_, InputError, Message, unknown

if TYPE_CHECKING:
    from attncli.practice.log import LogEntry, Progress
    from attncli.practice.parts import Part
    from attncli.practice.schedule import NextExercise
    from attncli.practice.session import Session

#: Words that may stand where an exercise is named, and what else each of them takes.
_ALSO: Mapping[str, tuple[str, ...]] = {
    "status": ("student", "log"),
    "report": ("format",),
    "forget": ("student", "log", "yes"),
}
#: What only a session takes.
_SESSION = ("stage", "from_scratch", "seed", "count", "student", "log")
_FORMATS = ("table", "csv", "jsonl")


def command(say: Say) -> Any:
    """The command."""

    def practice(**words: Any) -> int:
        return run(say, **words)

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(
        "practice",
        help=say.text(
            "Practise: one line after another, marked at once, and what went wrong comes back. Also: practice status, practice report LOG..., practice forget."
        ),
    )(with_options(practice, ("words", *_SESSION, "format", "yes", "lang"), {**options(say), **_own(say)}))
    return command_of(app)


def _own(say: Say) -> dict[str, tuple[Any, Any]]:
    t = say.text
    one = str | None
    return {
        "words": (
            Annotated[list[str] | None, typer.Argument(metavar="[RECIPE|EXAMPLE|SKILL]", help=t("What to practise; without it, what is best for you next. Or: status, report, forget."), autocompletion=_names, show_default=False)],
            None,
        ),
        "stage": (Annotated[one, typer.Option("--stage", metavar="1..4", help=t("How much is yours: 1 the last line only, 4 everything."))], None),
        "from_scratch": (Annotated[bool, typer.Option("--from-scratch", help=t("Everything is yours, like --stage 4."))], False),
        "seed": (Annotated[one, typer.Option("--seed", metavar="N", help=t("The number of the first draw; the next ones follow."))], None),
        "count": (Annotated[one, typer.Option("--count", metavar="N", help=t("Exercises until the end (1 for a worked example; else until you quit)."))], None),
        "student": (Annotated[one, typer.Option("--student", metavar="NAME", help=t("Whose practice it is, where several share a log."))], None),
        "log": (Annotated[one, typer.Option("--log", metavar="FILE", help=t("The practice log, where not in your data folder."))], None),
        "format": (Annotated[one, typer.Option("--format", metavar="NAME", help=t("Of a report: table, csv or jsonl."))], None),
        "yes": (Annotated[bool, typer.Option("--yes", help=t("Forget without asking."))], False),
    }  # fmt: skip


def _names(incomplete: str) -> list[str]:
    """Recipes, skills and worked examples, for the shell."""
    from attncli.practice.skills import SKILLS
    from attncli.problems import library
    from attncli.worksheets import recipes

    return [name for name in (*_ALSO, *recipes.names(), *SKILLS, *library.ids()) if name.startswith(incomplete)]


def run(say: Say, *, words: list[str] | None, **given: Any) -> int:
    """Practise, or look at what was practised."""
    name, *more = words or [""]
    takes = _ALSO.get(name, _SESSION)
    for option in (*_SESSION, "format", "yes"):
        if given[option] not in (None, False) and option not in takes:
            raise InputError(
                "{option} does not go with practice {name}. See attncli practice --help.",
                option=f"--{option.replace('_', '-')}",
                name=name or "",
            )
    if name == "report":
        return _report(say, more, given["format"])
    if more:
        raise InputError("“{word}” is one exercise too many. Practise one after another.", word=more[0][:60])
    if name == "status":
        return _status(say, given)
    if name == "forget":
        return _forget(say, given)
    return _practise(say, name, given)


def _place(given: Mapping[str, Any]) -> Path:
    import os

    from attncli.practice.log import default_path

    if given["log"] == "":
        raise InputError("--log “”: the name is empty. Give a file name, like {example}.", example="practice.jsonl")
    return Path(given["log"]) if given["log"] is not None else default_path(os.environ)


def _student(given: Mapping[str, Any]) -> str:
    name = (given["student"] or "").strip()
    if not name.isprintable() or len(name) > 200:
        raise InputError("--student: “{name}” does not work as a name.", name=name[:40])
    return str(name)


def _state(place: Path, student: str) -> "Progress":
    from attncli.practice.log import Progress, read

    return Progress(read(place) if place.is_file() else (), student)


# A session.


def _practise(say: Say, name: str, given: Mapping[str, Any]) -> int:
    import time

    from attncli.cli._calculation import LARGEST_SEED, whole_number
    from attncli.cli._typed import Lines
    from attncli.practice.log import Writer
    from attncli.practice.session import Session
    from attncli.practice.skills import LAST_STAGE

    stage = whole_number("--stage", given["stage"], 1, LAST_STAGE)
    if given["from_scratch"]:
        if stage is not None:
            raise InputError("--stage and --from-scratch say the same thing twice. Keep one.")
        stage = LAST_STAGE
    seed = whole_number("--seed", given["seed"], 0, LARGEST_SEED)
    count = whole_number("--count", given["count"], 1, 1000)
    student = _student(given)
    place = _place(given)
    choose, is_example = _chooser(name, stage, 1 if seed is None else seed)
    state = _state(place, student)
    ask = Lines(say)
    write = Writer(place)
    session = Session(choose, state, write, time.time, 1 if is_example and count is None else count)
    _show(say, session, session.start())
    while not session.ended:
        assert session.exercise is not None
        line = ask(f"{session.exercise.step} > ")
        if line is None:
            line = "quit"
        _show(say, session, session.take(line))
    return 0


def _chooser(name: str, stage: int | None, seed: int) -> tuple[Callable[["Progress", float], "NextExercise"], bool]:
    """How exercises are chosen, and whether a worked example (or a problem file) was named."""
    from attncli.cli._examples import named
    from attncli.practice.schedule import NextExercise, Recipes, by_name, next_exercise
    from attncli.practice.skills import SKILLS
    from attncli.problems import library

    recipes = Recipes()
    if not name:
        return lambda log, now: _at(next_exercise(log, now, recipes, seed), stage), False
    if name in recipes.names or name in SKILLS:
        return by_name(name, recipes, stage=stage, first_seed=seed), False
    if library.find(name) is None and not ("." in name or "/" in name or "\\" in name):
        likely = [*recipes.names, *SKILLS, *library.ids()]
        raise unknown(Message(N_("The exercise")), name, likely)
    problem = named(name)
    id = problem.id or name
    problem.graph()

    def choose(log: "Progress", now: float) -> NextExercise:
        # After a result was shown it comes back with new numbers, where a recipe makes some.
        if any(one.name == id and one.done for one in log.exercises[-1:]):
            again = _recipe_of(problem, recipes)
            if again:
                return by_name(again, recipes, stage=stage, first_seed=seed)(log, now)
        return NextExercise(id, problem, stage or log.stage(id), Message(N_("Why this one: you asked for it.")))

    return choose, True


def _recipe_of(problem: Any, recipes: Any) -> str:
    """The recipe whose exercises are like a problem: of its model, with gradients or without, causal or not."""
    from attncli.worksheets.recipes import load

    for name in recipes.names:
        recipe = load(name)
        if (
            recipe.model == problem.model
            and bool(recipe.gradient) == problem.has_gradient
            and bool(recipe.settings.get("causal")) == bool(problem.settings.get("causal"))
        ):
            return str(name)
    return ""


def _at(choice: "NextExercise", stage: int | None) -> "NextExercise":
    return choice if stage is None else choice.changed(stage=stage)


def _show(say: Say, session: "Session", parts: Iterator["Part"]) -> None:
    """Show what a session says, each part as it comes."""
    from attncli.cli._terminal import console
    from attncli.practice.parts import Text
    from attncli.render.exercise import Screen
    from attncli.render.terminal import print_parts, trimmed

    for part in parts:
        assert session.exercise is not None
        screen, buffer = console()
        before = "\n" if isinstance(part, Text) and part.kind == "title" else ""
        print_parts(Screen(session.exercise, say.language, screen).renderables(part), screen)
        shown = trimmed(buffer.getvalue())
        if shown.strip() or before:
            say.out(before + shown)


# What was practised.


def _status(say: Say, given: Mapping[str, Any]) -> int:
    import time

    from attncli.cli._report import write_report
    from attncli.practice.report import status

    place = _place(given)
    found = status(_state(place, _student(given)), time.time(), str(place))
    write_report(say, found, "table", None, force=False)
    return 0


def _report(say: Say, files: list[str], format: str | None) -> int:
    import time

    from attncli.cli._report import write_report
    from attncli.practice.log import by_student
    from attncli.practice.report import csv_text, jsonl_text, report, rows

    if not files:
        raise InputError("Name the practice logs: attncli practice report LOG...")
    chosen = "table" if format is None else format
    if chosen not in _FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(_FORMATS))
    entries = _entries(files)
    now = time.time()
    if chosen == "table":
        write_report(say, report(entries, now), "table", None, force=False)
    else:
        found = rows(by_student(entries).values(), now)
        say.out(csv_text(found) if chosen == "csv" else jsonl_text(found))
    return 0


def _entries(files: list[str]) -> list["LogEntry"]:
    """The entries of several logs, whoever gave no name called by the name of the file."""
    from attncli.practice.log import read

    found = [
        entry if entry.student else entry.changed(student=Path(file).stem)
        for file in files
        for entry in read(Path(file))
    ]
    return sorted(found, key=lambda entry: entry.t)


def _forget(say: Say, given: Mapping[str, Any]) -> int:
    from attncli.cli._typed import Lines
    from attncli.practice.log import forget, read

    place = _place(given)
    student = _student(given) or None
    if not place.exists():
        say.out(say.text("There is nothing to forget: {path} does not exist.", path=str(place)) + "\n")
        return 0
    entries = [entry for entry in read(place) if student is None or entry.student == student]
    if not given["yes"]:
        question = say.text(
            "Forget {count} entries of {path}? They cannot be brought back. Write yes: ",
            count=len(entries),
            path=str(place),
        )
        if (Lines(say)(question) or "").strip().casefold() not in ("yes", "y", "是"):
            say.out(say.text("Nothing was forgotten.") + "\n")
            return 0
    say.out(say.text("Forgotten: {count} entries.", count=forget(place, student)) + "\n")
    return 0
