"""One sheet: read from wherever it is, and made ready to be marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attncli.core.limits import MOST_TEXT_BYTES, MOST_UNKNOWN_NAMES
from attncli.core.message import N_, AttnError, InputError, Listed, Message, unknown
from attncli.marking.mark import Marked, Marker
from attncli.problems.answers import (
    Answer,
    Sheet,
    answer,
    csv_text,
    in_shape_of,
    renamed,
    sheet,
    sheet_data,
    sheet_from_arrays,
)
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.reading import as_text, parse_json, read_bounded
from attncli.problems.request import Stdin
from attncli.problems.source import arrays_from_npz, beside

# Reading.


def file_and_answers(words: Sequence[str]) -> tuple[str | None, list[str]]:
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


def sheet_of(name: str | None, words: Sequence[str], stdin: Stdin) -> Sheet:
    """The sheet in a file, with the answers that are written out put over it.

    Raises
    ------
    InputError
        The file cannot be read, or there is nothing to mark.
    """
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


# Names.


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
                "--map: “{name}” is mapped to {id}, but the sheet has {id} as well. Keep one.", name=name[:40], id=id
            )
    return renamed(given, names)


#: Names of arrays that an error lists.
_MOST_NAMES = 40


def knows(marker: Marker, name: str) -> bool:
    """Whether this names a step or an input."""
    return marker.names.find(name) is not None


def check_names(marker: Marker, sheet: Sheet) -> None:
    """Refuse a sheet with too many names that are no steps.

    Raises
    ------
    InputError
        Says how many there are, and what the limit is.
    """
    strange = [name for name in sheet.answers if not knows(marker, name)]
    if len(strange) > MOST_UNKNOWN_NAMES:
        raise InputError(
            "This sheet has {count} names that are no steps of the exercise, like “{name}”; the limit is {limit}. Leave them out.",
            count=f"{len(strange):,}",
            name=strange[0][:40],
            limit=MOST_UNKNOWN_NAMES,
        )


# Shapes.


def sheet_layout(layout: str | None) -> str | None:
    """Which way tokens run on the sheets, if it was said; the exercise keeps its own.

    Raises
    ------
    InputError
        It is no layout.
    """
    if layout not in (None, "rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    return layout


def in_shape(given: Sheet, marker: Marker, layout: str) -> Sheet:
    """The sheet with every answer in the shape of its step, as far as it is only written otherwise."""

    def shape_of(name: str) -> tuple[int, ...] | None:
        shape = marker.shapes.get(name)
        if shape is None:
            id = marker.names.find(name)
            if id is None:
                return None
            shape = marker.shapes[id]
        return (*shape[:-2], *reversed(shape[-2:])) if layout == "columns" else shape

    return in_shape_of(given, shape_of)


def oriented(given: Sheet, layout: str) -> Sheet:
    """Tokens as rows, whichever way the sheet was asked for."""
    if layout != "columns":
        return given
    return given.changed(answers={id: one.transposed() for id, one in given.answers.items()})


def shown_as(marked: Marked, layout: str) -> Marked:
    """The marks of an oriented sheet, to be shown the way its sheet was written."""
    if layout != "columns":
        return marked
    return marked.changed(layout="rows" if marked.layout == "columns" else "columns")
