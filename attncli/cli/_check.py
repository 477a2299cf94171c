"""What `attncli check` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attncli.cli._calculation import Stdin, problem_of
from attncli.cli._output import write_file
from attncli.cli._say import Say
from attncli.message import N_, AttnError, InputError, Message, unknown
from attncli.problems.answers import Answer, Sheet, answer, csv_text, sheet, sheet_from_arrays
from attncli.reasons import of_toml

FORMATS = ("table", "json", "markdown")


def check(
    say: Say,
    *,
    exercise: str,
    answers: str | None,
    answer: Sequence[str] | None,
    hint: bool,
    reveal: bool,
    format: str | None,
    output: str | None,
    layout: str | None,
    lang: str | None,
) -> int:
    """Mark one sheet and print the marks; exit status 1 if something is wrong."""
    from attncli.marking.grade import oriented, sheet_layout, shown_as
    from attncli.marking.mark import Marker
    from attncli.render import _marks

    if exercise == "-" and answers == "-":
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    if hint and reveal:
        raise InputError("--hint keeps every number back and --reveal shows all. Give one of them.")
    chosen = "table" if format is None else format
    if chosen not in FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(FORMATS))
    problem = problem_of(exercise, {}, say)
    way = sheet_layout(layout) or problem.layout
    marker = Marker(problem)
    marked = shown_as(marker.mark(oriented(_sheet(answers, answer or (), Stdin()), way)), way)
    how = "hint" if hint else "all" if reveal else "first"
    author = tuple(marker.undetectable()) if chosen == "table" and _is_own(exercise) else ()
    if chosen == "json":
        text = _marks.as_json(marked, say.language) + "\n"
    elif chosen == "markdown":
        text = _marks.as_markdown(marked, say.language, reveal=how)
    else:
        text = _table(say, marked, how, author)
    if output is None:
        say.out(text)
    else:
        write_file(output, text.encode("utf-8", "replace"))
    return 0 if marked.ok else 1


def _is_own(exercise: str) -> bool:
    """Whether this is somebody's own file and none of the worked examples, whose author needs no advice."""
    from attncli.problems import library

    return library.find(exercise) is None


def _table(say: Say, marked: Any, how: str, author: tuple[Any, ...]) -> str:
    from attncli.cli._terminal import console
    from attncli.render._marks import Sheet as Shown
    from attncli.render.table import print_parts, trimmed

    screen, buffer = console()
    shown = Shown(marked, say.language, reveal=how, width=screen.width, encoding=screen.encoding, author=author)
    print_parts(shown.parts(), screen)
    return trimmed(buffer.getvalue())


def _sheet(name: str | None, words: Sequence[str], stdin: Stdin) -> Sheet:
    """The sheet in a file, with the answers on the command line put over it."""
    given = Sheet(None, {}) if name is None else _read(name, stdin)
    own: dict[str, Answer] = {}
    for text in words:
        id, equals, value = text.partition("=")
        if not equals or not id.strip():
            raise InputError(
                '--answer: “{text}” has no name. Write --answer STEP=MATRIX, like --answer A="0.330 0.670".',
                text=text[:40],
            )
        if id.strip() in own:
            raise InputError("--answer: {id} is answered twice. Keep one.", id=id.strip())
        own[id.strip()] = answer(value)
    if name is None and not own:
        raise InputError("There is nothing to mark. Give a file of answers, or --answer STEP=MATRIX.")
    return given.changed(answers={**given.answers, **own})


def _read(name: str, stdin: Stdin) -> Sheet:
    from attncli.problems.source import MOST_TEXT_BYTES, as_text, parse_json, read_bounded

    where: Message | str = Message(N_("standard input")) if name == "-" else name
    ending = Path(name).suffix.lower()
    try:
        if ending == ".npz":
            return _from_npz(name)
        text = as_text(stdin() if name == "-" else read_bounded(name, MOST_TEXT_BYTES), where)
        if ending in (".csv", ".jsonl"):
            lines = text.strip().split("\n") if ending == ".jsonl" else []
            sheets = (
                csv_text(text) if ending == ".csv" else [sheet(parse_json(line)) for line in lines if len(lines) == 1]
            )
            if len(sheets) != 1:
                raise InputError(
                    "holds {count} sheets. Mark a class with: attncli grade PROBLEM {file}",
                    count=len(sheets) or len(lines),
                    file=name,
                )
            return sheets[0]
        return sheet(_data(name, text))
    except AttnError as error:
        raise error.at(where) from None


def _data(name: str, text: str) -> Any:
    from attncli.problems.source import parse_json

    if name.lower().endswith(".json") or text.lstrip().startswith("{"):
        return parse_json(text)
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("is not valid TOML: {what}.", what=of_toml(error)) from None
    except RecursionError:
        raise InputError("is nested too deep to be read.") from None


def _from_npz(name: str) -> Sheet:
    from attncli.problems.source import arrays_from_npz

    return sheet_from_arrays(arrays_from_npz(name))
