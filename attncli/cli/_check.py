"""What `attncli check` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attncli.cli._calculation import Stdin, problem_of
from attncli.cli._output import format_of, write_file
from attncli.cli._say import Say
from attncli.core.message import N_, AttnError, InputError, Listed, Message
from attncli.core.outputs import MARKS
from attncli.problems.answers import Answer, Sheet, answer, csv_text, renamed, sheet, sheet_data, sheet_from_arrays
from attncli.problems.names import Names
from attncli.problems.problem import Problem

FORMATS = ("table", "json", "markdown")


def check(
    say: Say,
    *,
    exercise: str,
    answers: Sequence[str] | None,
    answer: Sequence[str] | None,
    map_: Sequence[str] | None,
    hint: bool,
    reveal: bool,
    format: str | None,
    output: str | None,
    force: bool,
    layout: str | None,
    lang: str | None,
) -> int:
    """Mark one sheet and print the marks; exit status 1 if something is wrong."""
    from attncli.marking.grade import check_names, in_shape, marker_of, oriented, sheet_layout, shown_as
    from attncli.render import sheet

    name, written = _split(answers or ())
    if exercise == "-" and name == "-":
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    if hint and reveal:
        raise InputError("--hint shows no right number and --reveal shows them all. Choose one of them.")
    chosen = format_of(format, output, FORMATS)
    problem = problem_of(exercise, {}, say)
    way = sheet_layout(layout) or problem.layout
    marker = marker_of(problem)
    given = mapped(_sheet(name, (*written, *(answer or ())), Stdin()), mapping(map_ or (), marker.names))
    check_names(marker, given)
    marked = shown_as(marker.mark(oriented(in_shape(given, marker, way), way)), way)
    how = "hint" if hint else "all" if reveal else "first"
    if chosen == "json":
        right = marker.expected(marked) if reveal else None
        text = sheet.as_json(marked, say.language, right=right, undetectable=marker.undetectable()) + "\n"
    elif chosen == "markdown":
        text = sheet.as_markdown(marked, say.language, reveal=how)
    else:
        text = _table(say, marked, how)
    if output is None:
        say.out(text)
    else:
        write_file(say, output, text.encode("utf-8", "replace"), MARKS, force=force)
    return 0 if marked.ok else 1


def _table(say: Say, marked: Any, how: str) -> str:
    from attncli.cli._terminal import console
    from attncli.render.sheet import Sheet as Shown
    from attncli.render.terminal import print_parts, trimmed

    screen, buffer = console()
    shown = Shown(marked, say.language, reveal=how, width=screen.width, encoding=screen.encoding)
    print_parts(shown.parts(), screen)
    return trimmed(buffer.getvalue())


def _split(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The file of answers among these words, and the answers written out: STEP=MATRIX.

    Raises
    ------
    InputError
        There are two files.
    """
    files = [word for word in words if "=" not in word or Path(word).suffix.lower() in _FILES]
    if len(files) > 1:
        raise InputError(
            "“{first}” and “{second}” are two files of answers. Mark one sheet here, and a class with: attncli grade",
            first=files[0][:60],
            second=files[1][:60],
        )
    return (files[0] if files else None), [word for word in words if word not in files]


_FILES = frozenset({".toml", ".json", ".npz", ".csv", ".jsonl"})


def _sheet(name: str | None, words: Sequence[str], stdin: Stdin) -> Sheet:
    """The sheet in a file, with the answers on the command line put over it."""
    given = Sheet(None, {}) if name is None else _read(name, stdin)
    own: dict[str, Answer] = {}
    for text in words:
        id, equals, value = text.partition("=")
        if not equals or not id.strip():
            raise InputError(
                "“{text}” has no name. Write STEP=MATRIX, like {example}.", text=text[:40], example='A="0.330 0.670"'
            )
        if id.strip() in own:
            raise InputError("{id} is answered twice. Keep one.", id=id.strip()[:40])
        own[id.strip()] = _answer(id.strip(), value, stdin)
    if name is None and not own:
        raise InputError(
            "There is nothing to mark. Write answers, like {example}, or give a file of them.",
            example='A="0.330 0.670"',
        )
    return given.changed(answers={**given.answers, **own})


def _answer(id: str, text: str, stdin: Stdin) -> Answer:
    try:
        return answer(text, str)
    except AttnError as error:
        raise error.at(id) from None


def _read(name: str, stdin: Stdin) -> Sheet:
    from attncli.core.limits import MOST_TEXT_BYTES
    from attncli.problems.source import arrays_from_npz, as_text, beside, parse_json, read_bounded

    where: Message | str = Message(N_("standard input")) if name == "-" else name
    ending = Path(name).suffix.lower()

    def place(path: str) -> str:
        return beside(path, None if name == "-" else Path(name).parent)

    try:
        if ending == ".npz":
            return sheet_from_arrays(arrays_from_npz(name))
        text = as_text(stdin() if name == "-" else read_bounded(name, MOST_TEXT_BYTES), where)
        if ending == ".csv":
            sheets = csv_text(text, place) if text.strip() else []
        elif ending == ".jsonl":
            lines = [line for line in text.split("\n") if line.strip()]
            if len(lines) > 1:
                raise _several(name, len(lines))
            sheets = [sheet(parse_json(line), place) for line in lines]
        else:
            return sheet(sheet_data(text, json=ending == ".json"), place)
        if len(sheets) > 1:
            raise _several(name, len(sheets))
        return sheets[0] if sheets else Sheet(None, {})
    except AttnError as error:
        raise error.at(where) from None


def _several(name: str, count: int) -> InputError:
    return InputError("holds {count} sheets. Mark a class with: attncli grade PROBLEM {file}", count=count, file=name)


def mapping_for(problem: Problem, words: Sequence[str]) -> dict[str, str]:
    """What --map says of the steps of a problem."""
    return mapping(words, Names(problem.graph())) if words else {}


def mapping(words: Sequence[str], names: Names) -> dict[str, str]:
    """What --map says: from the names of a dump to step ids.

    Raises
    ------
    InputError
        It cannot be read, a step does not exist, or a name stands twice.
    """
    found: dict[str, str] = {}
    for text in [part for word in words for part in word.replace("，", ",").split(",") if part.strip()]:
        name, equals, to = (part.strip() for part in text.partition("="))
        if not equals or not name or not to:
            raise InputError(
                "--map: “{text}” is not FROM=STEP. Write --map {example}.",
                text=text[:40],
                example='"attn_probs=A,ctx=O"',
            )
        id = names.resolve(to, Message(N_("--map: the step")))
        if name in found or id in found.values():
            raise InputError("--map: “{name}” is named twice. Keep one.", name=(name if name in found else id)[:40])
        found[name] = id
    return found


def mapped(given: Sheet, names: Mapping[str, str]) -> Sheet:
    """The sheet under the names of the steps.

    Raises
    ------
    InputError
        It lacks a name of the map, and what it has is listed; or it answers a step under both names.
    """
    has = list(given.answers)
    for name, id in names.items():
        if name not in given.answers:
            raise InputError(
                "--map: there is no “{name}” on this sheet. It has: {names}.",
                name=name[:40],
                names=Listed([*(one[:40] for one in has[:_MOST_NAMES]), *["…"] * (len(has) > _MOST_NAMES)])
                if has
                else "–",
            )
        if id in given.answers and id != name and id not in names:
            raise InputError(
                "--map: “{name}” is to be {id}, but the sheet has {id} as well. Keep one.", name=name[:40], id=id
            )
    return renamed(given, names)


#: Names of arrays that an error lists.
_MOST_NAMES = 40
