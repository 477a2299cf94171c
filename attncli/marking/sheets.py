"""One sheet: read from a file or from words on the command line; and as it was handed in with a class, not read yet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attncli.core.limits import MOST_SHEET_BYTES, MOST_TEXT_BYTES
from attncli.core.message import N_, AttnError, InputError, Listed, Message, placed
from attncli.core.record import Record
from attncli.problems.answers import (
    Answer,
    Sheet,
    answer,
    renamed,
    sheet,
    sheet_data,
    sheet_from_arrays,
)
from attncli.problems.names import Names
from attncli.problems.problem import Problem
from attncli.problems.reading import decoded, parse_json, read_bounded
from attncli.problems.request import Stdin
from attncli.problems.source import arrays_from_npz, beside


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
        step_id, equals, value = text.partition("=")
        if not equals or not step_id.strip():
            raise InputError(
                "“{text}” has no name. Write STEP=MATRIX, like {example}.", text=text[:40], example='A="0.330 0.670"'
            )
        if step_id.strip() in own:
            raise InputError("{id} is answered twice. Keep one.", id=step_id.strip()[:40])
        own[step_id.strip()] = answer(value, str)
    if name is None and not own:
        raise InputError(
            "There is nothing to mark. Write answers, like {example}, or give a file of them.",
            example='A="0.330 0.670"',
        )
    return given.changed(answers={**given.answers, **own})


def _read(name: str, stdin: Stdin) -> Sheet:
    where: Message | str = Message("standard input") if name == "-" else name
    ending = Path(name).suffix.lower()

    def place(path: str) -> str:
        return beside(path, None if name == "-" else Path(name).parent)

    with placed(where):
        if ending == ".npz":
            return sheet_from_arrays(arrays_from_npz(name))
        text = decoded(stdin() if name == "-" else read_bounded(name, MOST_TEXT_BYTES))
        if ending == ".csv":
            return _only(name, list(_rows(text, place)))
        if ending == ".jsonl":
            return _only(name, [sheet(parse_json(line), place) for line in text.split("\n") if line.strip()])
        return sheet(sheet_data(text, json=ending == ".json"), place)


def _only(name: str, sheets: Sequence[Sheet]) -> Sheet:
    if len(sheets) > 1:
        raise InputError(
            "holds {count} sheets. Mark a class with: attncli grade PROBLEM {file}", count=len(sheets), file=name
        )
    return sheets[0] if sheets else Sheet(None, {})


def _rows(text: str, place: Callable[[str], str]) -> Iterator[Sheet]:
    """The rows of a CSV: the column student, and one column a step."""
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    header = next(rows, None)
    if not header:
        if not text.strip():
            return
        raise InputError("The CSV is empty. Its first line names the columns: student, and a column for every step.")
    for row in filter(None, rows):
        notes = () if len(row) <= len(header) else (Message("This row has more cells than there are columns."),)
        yield sheet(_row(column_names(header), row), place).changed(notes=notes)


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names of a CSV's columns: student in whatever case, and steps."""
    return tuple("student" if name.strip().casefold() == "student" else name.strip() for name in header)


def _row(header: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    """What stands in a row of a CSV, by the names of JSON and TOML."""
    cells = dict(zip(header, row, strict=False))
    claims = {key: cells.pop(key, None) for key in ("student", "problem")}
    return {**claims, "answers": {name: text for name, text in cells.items() if name and text.strip()}}


# Names.


def mapping(words: Sequence[str], problem: Problem) -> dict[str, str]:
    """What --map says: from the names of a dump to step ids.

    Raises
    ------
    InputError
        It cannot be read, a step does not exist, or a name stands twice.
    """
    found: dict[str, str] = {}
    names = Names(problem.graph(), problem.points())
    for text in [part for word in words for part in word.replace("，", ",").split(",") if part.strip()]:
        name, equals, to = (part.strip() for part in text.partition("="))
        if not equals or not name or not to:
            raise InputError(
                "--map: “{text}” is not FROM=STEP. Write --map {example}.",
                text=text[:40],
                example='"attn_probs=A,ctx=O"',
            )
        step_id = names.resolve(to, Message("--map: the step"))
        if name in found or step_id in found.values():
            raise InputError(
                "--map: “{name}” is named twice. Keep one.", name=(name if name in found else step_id)[:40]
            )
        found[name] = step_id
    return found


def mapped(given: Sheet, names: Mapping[str, str]) -> Sheet:
    """The sheet under the names of the steps.

    Raises
    ------
    InputError
        It lacks a name of the map, and what it has is listed; or it answers a step under both names.
    """
    has = list(given.answers)
    for name, step_id in names.items():
        if name not in given.answers:
            raise InputError(
                "--map: there is no “{name}” on this sheet. It has: {names}.",
                name=name[:40],
                names=Listed.first((one[:40] for one in has), _MOST_NAMES) if has else "–",
            )
        if step_id in given.answers and step_id != name and step_id not in names:
            raise InputError(
                "--map: “{name}” is mapped to {id}, but the sheet has {id} as well. Keep one.",
                name=name[:40],
                id=step_id,
            )
    return renamed(given, names)


#: Names of arrays that an error lists.
_MOST_NAMES = 40


# Of a class.

#: Characters of a name that a sheet claims.
_MOST_CLAIMED = 60

_CLAIM = N_("This sheet is signed “{claimed}”, but it was handed in for {name}. It counts for {name}.")


class Submission(Record):
    """One sheet, not read yet.

    Parameters
    ----------
    kind : "line" (JSON), "row" (CSV), "file", or "broken" (what is wrong stands in `fault`)
    name : the student it belongs to if the sheet itself does not say
    text : the line, or the path of the file
    header, cells : the columns of a row that count, and what stands in them
    content : the bytes of the file, where it has been read already
    placed : its place says whose it is, whatever name the sheet itself claims
    """

    kind: str
    name: str
    text: str = ""
    header: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    content: bytes | None = None
    fault: Message | None = None
    placed: bool = False

    def read(self) -> Sheet:
        """The sheet.

        Raises
        ------
        AttnError
            It cannot be read; the message says why.
        """
        if self._is_arrays:
            return sheet_from_arrays(self._arrays(), self.name)
        data = self._data()
        found, claimed = sheet(data), _as_name(data.get("student"))
        if not self.placed:
            return found.changed(student=claimed or self.name)
        if claimed and claimed.casefold() != self.name.casefold():
            note = Message(_CLAIM, name=self.name, claimed=claimed[:_MOST_CLAIMED])
            found = found.changed(notes=(*found.notes, note))
        return found.changed(student=self.name)

    def student(self) -> str:
        """Whose it is, as far as that can be found out."""
        return self.name if self.placed else _as_name(self._claim("student")) or self.name

    def problem(self) -> str | None:
        """The id of the problem that it says it answers."""
        named = self._claim("problem")
        return named.strip() or None if isinstance(named, str) else None

    def _claim(self, key: str) -> Any:
        if self._is_arrays:
            return None
        try:
            data = self._data()
        except (AttnError, MemoryError, RecursionError, OSError):
            return None
        return data.get(key) if isinstance(data, dict) else None

    def carried(self) -> Submission:
        """The same with the file's bytes in it, to be read where the file is not."""
        if self.kind != "file" or self.content is not None:
            return self
        try:
            return self.changed(content=read_bounded(self.text, MOST_SHEET_BYTES))
        except AttnError as error:
            return Submission("broken", self.name, fault=error.message)

    def content_parts(self) -> tuple[object, ...]:
        """Everything that its result depends on, but for whose it is."""
        place = self.name if self.kind in ("file", "broken") else ""
        text = self.text if self.kind == "line" else self._ending
        return self.kind, place, text, self.header, self.cells, self.content, self.fault

    @property
    def _ending(self) -> str:
        return Path(self.text).suffix.lower()

    @property
    def _is_arrays(self) -> bool:
        return self.kind == "file" and self._ending == ".npz"

    def _data(self) -> Any:
        """What stands in the line, row or file, by the names of JSON and TOML."""
        if self.fault is not None:
            raise InputError("{fault}", fault=self.fault)
        if self.kind == "line":
            return parse_json(self.text)
        if self.kind == "row":
            return _row(self.header, self.cells)
        return sheet_data(decoded(self._bytes()), json=self._ending != ".toml")

    def _bytes(self) -> bytes:
        return read_bounded(self.text, MOST_SHEET_BYTES) if self.content is None else self.content

    def _arrays(self) -> dict[str, Any]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.npz"
            path.write_bytes(self._bytes())
            return arrays_from_npz(str(path))


def _as_name(value: object) -> str | None:
    """A student's name, where this can be one."""
    return str(value).strip() or None if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
