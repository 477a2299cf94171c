"""What `attncli check` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attncli.cli._calculation import Stdin, problem_of, write_file
from attncli.cli._say import Say
from attncli.message import N_, AttnError, InputError, Message, unknown
from attncli.problems.answers import Answer, Sheet, answer, csv_text, sheet, sheet_from_arrays

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
    from attncli.marking.mark import Marker
    from attncli.render import _marks

    if hint and reveal:
        raise InputError("--hint keeps every number back and --reveal shows all. Give one of them.")
    chosen = format or "table"
    if chosen not in FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(FORMATS))
    problem = problem_of(exercise, {"layout": layout}, say)
    marker = Marker(problem)
    marked = marker.mark(_oriented(_sheet(answers, answer or (), Stdin()), problem.layout))
    how = "hint" if hint else "all" if reveal else "first"
    author = tuple(marker.undetectable()) if chosen == "table" else ()
    if chosen == "json":
        text = _marks.as_json(marked, say.language) + "\n"
    elif chosen == "markdown":
        text = _marks.as_markdown(marked, say.language, reveal=how)
    else:
        text = _table(say, marked, how, author)
    if output is None:
        say.out(text)
    else:
        write_file(output, text.encode("utf-8"))
    return 0 if marked.ok else 1


def _table(say: Say, marked: Any, how: str, author: tuple[Any, ...]) -> str:
    from attncli.cli._terminal import console
    from attncli.render._marks import Sheet as Shown
    from attncli.render.table import print_parts, trimmed

    screen, buffer = console()
    print_parts(Shown(marked, say.language, reveal=how, encoding=screen.encoding, author=author).parts(), screen)
    return trimmed(buffer.getvalue())


def _oriented(given: Sheet, layout: str) -> Sheet:
    """Tokens as rows, whichever way the sheet was asked for."""
    if layout != "columns":
        return given
    return given.changed(answers={id: one.transposed() for id, one in given.answers.items()})


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
        own[id.strip()] = answer(value)
    if name is None and not own:
        raise InputError("There is nothing to mark. Give a file of answers, or --answer STEP=MATRIX.")
    return given.changed(answers={**given.answers, **own})


def _read(name: str, stdin: Stdin) -> Sheet:
    from attncli.problems.source import MOST_TEXT_BYTES, as_text, read_bounded

    where: Message | str = Message(N_("standard input")) if name == "-" else name
    try:
        if name.endswith(".npz"):
            return _from_npz(name)
        text = as_text(stdin() if name == "-" else read_bounded(name, MOST_TEXT_BYTES), where)
        if name.endswith(".csv"):
            sheets = csv_text(text)
            if len(sheets) != 1:
                raise InputError(
                    "holds {count} sheets. Mark a class with: attncli grade PROBLEM {file}",
                    count=len(sheets),
                    file=name,
                )
            return sheets[0]
        return sheet(_data(name, text))
    except AttnError as error:
        raise error.at(where) from None


def _data(name: str, text: str) -> Any:
    from attncli.problems.source import parse_json

    if name.endswith(".json") or text.lstrip().startswith("{"):
        return parse_json(text)
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("is not valid TOML: {what}.", what=str(error)[:200]) from None
    except RecursionError:
        raise InputError("is nested too deep to be read.") from None


def _from_npz(name: str) -> Sheet:
    from attncli.problems.source import arrays_from_npz

    return sheet_from_arrays(arrays_from_npz(name))
