"""attncli practice: exercises asked line by line, marked at once, and remembered."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attncli.cli.options import Command, Word, shared
from attncli.cli.output import Output, TypedLines, Words
from attncli.core.message import N_, InputError

if TYPE_CHECKING:
    from attncli.practice.session import Reply, Session

#: Words that may stand where an exercise is named, and what else each of them takes.
_ALSO = {
    "status": ("student", "log"),
    "report": ("format",),
    "forget": ("student", "log", "yes"),
}
#: What only a session takes.
_SESSION = ("stage", "from_scratch", "seed", "count", "student", "log")


def _names(words: Words) -> Iterable[str]:
    """Recipes, skills and worked examples, for the shell."""
    from attncli.practice.progress import SKILLS
    from attncli.problems import library
    from attncli.worksheets import recipes

    return (*_ALSO, *recipes.names(), *SKILLS, *library.ids())


def practice(out: Output, words: Words) -> int:
    """Practise, or look at what was practised."""
    name, *more = words["words"] or [""]
    takes = _ALSO.get(name, _SESSION)
    for parameter in (*_SESSION, "format", "yes"):
        if words[parameter] not in (None, False) and parameter not in takes:
            raise InputError(
                "{option} does not go with {command}. See attncli practice --help.",
                option=f"--{parameter.replace('_', '-')}",
                command=f"practice {name}".strip(),
            )
    if name == "report":
        return _report(out, more, words)
    if more:
        raise InputError("“{word}” is one exercise too many. Practise one at a time.", word=more[0][:60])
    if name == "status":
        return _status(out, words)
    if name == "forget":
        return _forget(out, words)
    return _practise(out, name, words)


def _place(words: Words) -> Path:
    from attncli.practice.log import default_path

    if words["log"] == "":
        raise InputError("--log “”: the name is empty. Give a file name, like {example}.", example="practice.jsonl")
    return Path(words["log"]) if words["log"] is not None else default_path(os.environ)


def _student(words: Words) -> str:
    name = (words["student"] or "").strip()
    if not name.isprintable() or len(name) > 200:
        raise InputError(
            "--student: “{name}” cannot be used as a name. Write up to 200 characters, none of them invisible.",
            name=name[:40],
        )
    return str(name)


# A session.


def _practise(out: Output, name: str, words: Words) -> int:
    from attncli.practice.log import writer
    from attncli.practice.progress import LAST_STAGE, Progress
    from attncli.practice.schedule import chooser
    from attncli.practice.session import Session
    from attncli.problems.settings import LARGEST_SEED, whole_number

    stage = whole_number("--stage", words["stage"], 1, LAST_STAGE)
    if words["from_scratch"]:
        if stage is not None:
            raise InputError("--from-scratch already means --stage 4. Keep one of the two.")
        stage = LAST_STAGE
    seed = whole_number("--seed", words["seed"], 0, LARGEST_SEED)
    count = whole_number("--count", words["count"], 1, 1000)
    student = _student(words)
    place = _place(words)
    choose, is_example = chooser(name, stage, 1 if seed is None else seed)
    state = Progress.of(place, student)
    ask = TypedLines(out.say)
    write = writer(place)
    session = Session(choose, state, write, time.time, 1 if is_example and count is None else count)
    _show(out, session, session.start())
    while not session.ended:
        assert session.exercise is not None
        line = ask(session.exercise.prompt)
        _show(out, session, session.take("quit" if line is None else line))
    return 0


def _show(out: Output, session: "Session", parts: Iterator["Reply"]) -> None:
    """Show what a session says, each part as it comes."""
    from attncli.practice.session import Sentence
    from attncli.render.exercise import part_blocks

    for part in parts:
        assert session.exercise is not None
        before = "\n" if isinstance(part, Sentence) and part.kind == "title" else ""
        shown = out.text(part_blocks(part, session.exercise, out.language))
        if shown.strip() or before:
            out.say.out(before + shown)


# What was practised.


def _status(out: Output, words: Words) -> int:
    from attncli.practice.progress import Progress, status

    place = _place(words)
    out.write_report(status(Progress.of(place, _student(words)), time.time(), str(place)))
    return 0


def _report(out: Output, files: list[str], words: Words) -> int:
    from attncli.practice.log import read_all
    from attncli.practice.progress import by_student, csv_text, jsonl_text, report, rows

    if not files:
        raise InputError("Name the practice logs: attncli practice report LOG...")
    chosen = out.format(("table", "csv", "jsonl"))
    entries = read_all([Path(file) for file in files])
    now = time.time()
    if chosen == "table":
        out.write_report(report(entries, now))
    else:
        found = rows(by_student(entries).values(), now)
        out.say.out(csv_text(found) if chosen == "csv" else jsonl_text(found))
    return 0


def _forget(out: Output, words: Words) -> int:
    from attncli.practice.log import forget, read

    place = _place(words)
    student = _student(words) or None
    if not place.exists():
        out.say.out(out.say.text("There is nothing to delete: {path} does not exist.", path=str(place)) + "\n")
        return 0
    entries = [entry for entry in read(place) if student is None or entry.student == student]
    if not words["yes"]:
        question = out.say.text(
            "Delete {count} entries of {path}? They cannot be brought back. Type yes: ",
            count=len(entries),
            path=str(place),
        )
        if (TypedLines(out.say)(question) or "").strip().casefold() not in ("yes", "y", "是"):
            out.say.out(out.say.text("Nothing was deleted.") + "\n")
            return 0
    out.say.out(out.say.text("Entries deleted: {count}.", count=forget(place, student)) + "\n")
    return 0


COMMAND = Command(N_("Practise: one line after another, marked at once, and what went wrong comes back. Also: practice status, practice report LOG..., practice forget."), practice, {
    "words": Word("[RECIPE|EXAMPLE|SKILL]", N_("What to practise; without it, what is best for you next. Or: status, report, forget."), _names, many=True),
    "stage": Word("--stage 1..4", N_("How much is yours: 1 the last line only, 4 everything.")),
    "from_scratch": Word("--from-scratch", N_("Everything is yours, like --stage 4.")),
    "seed": Word("--seed N", N_("Number of the first set of numbers; the next ones follow.")),
    "count": Word("--count N", N_("How many exercises (default: 1 for a worked example; otherwise until you quit).")),
    "student": Word("--student NAME", N_("Who is practising, if several people share a log.")),
    "log": Word("--log FILE", N_("The practice log, if it is not in your data folder.")),
    "format": Word("--format NAME", N_("Format of the report: table, csv or jsonl.")),
    "yes": Word("--yes", N_("Delete without asking.")),
    **shared("lang"),
})  # fmt: skip
