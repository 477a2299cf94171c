"""attncli practice: exercises asked line by line, marked at once, and remembered."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attncli.cli.options import arguments, command_of, flag, option, shared, starting
from attncli.cli.output import Say, TypedLines, printed, write_report
from attncli.core.message import N_, InputError, Message, unknown

if TYPE_CHECKING:
    from attncli.practice.parts import Part
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
    t = say.text
    own = {
        "words": arguments("[RECIPE|EXAMPLE|SKILL]", help=t("What to practise; without it, what is best for you next. Or: status, report, forget."), complete=_names, default=None),
        "stage": option("--stage", metavar="1..4", help=t("How much is yours: 1 the last line only, 4 everything.")),
        "from_scratch": flag("--from-scratch", help=t("Everything is yours, like --stage 4.")),
        "seed": option("--seed", metavar="N", help=t("Number of the first set of numbers; the next ones follow.")),
        "count": option("--count", metavar="N", help=t("How many exercises (default: 1 for a worked example; otherwise until you quit).")),
        "student": option("--student", metavar="NAME", help=t("Who is practising, if several people share a log.")),
        "log": option("--log", metavar="FILE", help=t("The practice log, if it is not in your data folder.")),
        "format": option("--format", metavar="NAME", help=t("Format of the report: table, csv or jsonl.")),
        "yes": flag("--yes", help=t("Delete without asking.")),
    }  # fmt: skip
    help = t("Practise: one line after another, marked at once, and what went wrong comes back. Also: practice status, practice report LOG..., practice forget.")  # fmt: skip
    return command_of("practice", help, practice, say, (*own, "lang"), {**shared(say), **own})


def _names(incomplete: str) -> list[str]:
    """Recipes, skills and worked examples, for the shell."""
    from attncli.practice.skills import SKILLS
    from attncli.problems import library
    from attncli.worksheets import recipes

    return starting((*_ALSO, *recipes.names(), *SKILLS, *library.ids()), incomplete)


def practice(say: Say, *, words: list[str] | None, **given: Any) -> int:
    """Practise, or look at what was practised."""
    name, *more = words or [""]
    takes = _ALSO.get(name, _SESSION)
    for parameter in (*_SESSION, "format", "yes"):
        if given[parameter] not in (None, False) and parameter not in takes:
            raise InputError(
                "{option} does not go with practice {name}. See attncli practice --help.",
                option=f"--{parameter.replace('_', '-')}",
                name=name or "",
            )
    if name == "report":
        return _report(say, more, given["format"])
    if more:
        raise InputError("“{word}” is one exercise too many. Practise one at a time.", word=more[0][:60])
    if name == "status":
        return _status(say, given)
    if name == "forget":
        return _forget(say, given)
    return _practise(say, name, given)


def _place(given: Mapping[str, Any]) -> Path:
    from attncli.practice.log import default_path

    if given["log"] == "":
        raise InputError("--log “”: the name is empty. Give a file name, like {example}.", example="practice.jsonl")
    return Path(given["log"]) if given["log"] is not None else default_path(os.environ)


def _student(given: Mapping[str, Any]) -> str:
    name = (given["student"] or "").strip()
    if not name.isprintable() or len(name) > 200:
        raise InputError("--student: “{name}” cannot be used as a name.", name=name[:40])
    return str(name)


# A session.


def _practise(say: Say, name: str, given: Mapping[str, Any]) -> int:
    from attncli.practice.log import Progress, Writer
    from attncli.practice.schedule import chooser
    from attncli.practice.session import Session
    from attncli.practice.skills import LAST_STAGE
    from attncli.problems.settings import LARGEST_SEED, whole_number

    stage = whole_number("--stage", given["stage"], 1, LAST_STAGE)
    if given["from_scratch"]:
        if stage is not None:
            raise InputError("--stage and --from-scratch say the same thing twice. Keep one.")
        stage = LAST_STAGE
    seed = whole_number("--seed", given["seed"], 0, LARGEST_SEED)
    count = whole_number("--count", given["count"], 1, 1000)
    student = _student(given)
    place = _place(given)
    choose, is_example = chooser(name, stage, 1 if seed is None else seed)
    state = Progress.of(place, student)
    ask = TypedLines(say)
    write = Writer(place)
    session = Session(choose, state, write, time.time, 1 if is_example and count is None else count)
    _show(say, session, session.start())
    while not session.ended:
        assert session.exercise is not None
        line = ask(session.exercise.prompt)
        if line is None:
            line = "quit"
        _show(say, session, session.take(line))
    return 0


def _show(say: Say, session: "Session", parts: Iterator["Part"]) -> None:
    """Show what a session says, each part as it comes."""
    from attncli.practice.parts import Text
    from attncli.render.exercise import ExerciseScreen

    for part in parts:
        assert session.exercise is not None
        exercise = session.exercise
        before = "\n" if isinstance(part, Text) and part.kind == "title" else ""
        shown = printed(lambda screen: ExerciseScreen(exercise, say.language, screen).renderables(part))  # noqa: B023
        if shown.strip() or before:
            say.out(before + shown)


# What was practised.


def _status(say: Say, given: Mapping[str, Any]) -> int:
    from attncli.practice.log import Progress
    from attncli.practice.report import status

    place = _place(given)
    found = status(Progress.of(place, _student(given)), time.time(), str(place))
    write_report(say, found, "table", None, force=False)
    return 0


def _report(say: Say, files: list[str], format: str | None) -> int:
    from attncli.practice.log import by_student, read_all
    from attncli.practice.report import csv_text, jsonl_text, report, rows

    if not files:
        raise InputError("Name the practice logs: attncli practice report LOG...")
    chosen = "table" if format is None else format
    if chosen not in _FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(_FORMATS))
    entries = read_all([Path(file) for file in files])
    now = time.time()
    if chosen == "table":
        write_report(say, report(entries, now), "table", None, force=False)
    else:
        found = rows(by_student(entries).values(), now)
        say.out(csv_text(found) if chosen == "csv" else jsonl_text(found))
    return 0


def _forget(say: Say, given: Mapping[str, Any]) -> int:
    from attncli.practice.log import forget, read

    place = _place(given)
    student = _student(given) or None
    if not place.exists():
        say.out(say.text("There is nothing to delete: {path} does not exist.", path=str(place)) + "\n")
        return 0
    entries = [entry for entry in read(place) if student is None or entry.student == student]
    if not given["yes"]:
        question = say.text(
            "Delete {count} entries of {path}? They cannot be brought back. Type yes: ",
            count=len(entries),
            path=str(place),
        )
        if (TypedLines(say)(question) or "").strip().casefold() not in ("yes", "y", "是"):
            say.out(say.text("Nothing was deleted.") + "\n")
            return 0
    say.out(say.text("Entries deleted: {count}.", count=forget(place, student)) + "\n")
    return 0
