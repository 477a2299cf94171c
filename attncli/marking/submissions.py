"""A class's sheets, one after another: a folder of files, JSON Lines, CSV, or a stream. Never more than one in memory.

A submission is only what has to be read: where it came from and its text, or its file. Reading it can
go wrong, and then it is one malformed result; it never stops the others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from attncli.message import N_, AttnError, InputError, Message
from attncli.problems.answers import Sheet, answer, sheet, sheet_from_arrays
from attncli.problems.source import arrays_from_npz, as_text, parse_json, read_bounded
from attncli.record import Record

#: Bytes one sheet may have; a page of numbers has a few thousand.
MOST_SHEET_BYTES = 2_000_000
_ENDINGS = frozenset({".json", ".toml", ".npz"})


class Submission(Record):
    """One sheet, not read yet.

    Parameters
    ----------
    kind : "line" (JSON), "row" (CSV), "file", or "broken" (what is wrong stands in `fault`)
    name : the student it belongs to if the sheet itself does not say
    """

    kind: str
    name: str
    text: str = ""
    header: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    fault: Message | None = None

    def read(self) -> Sheet:
        """The sheet.

        Raises
        ------
        AttnError
            It cannot be read; the message says why.
        """
        if self.fault is not None:
            raise _Broken(self.fault)
        if self.kind == "line":
            return self._named(sheet(parse_json(self.text)))
        if self.kind == "row":
            return self._row()
        return self._named(_from_file(self.text))

    def _row(self) -> Sheet:
        cells = dict(zip(self.header, self.cells, strict=False))
        student = cells.pop("student", "").strip() or self.name
        return Sheet(student, {name: answer(text) for name, text in cells.items() if name and text.strip()})

    def _named(self, given: Sheet) -> Sheet:
        return given if given.student is not None else given.changed(student=self.name)


class _Broken(InputError):
    """A submission that could not even be cut out of its file."""

    def __init__(self, fault: Message) -> None:
        super().__init__("{fault}", fault=fault)


def submissions(paths: Sequence[str], stdin: IO[bytes]) -> Iterator[Submission]:
    """Every sheet of these places, in a fixed order.

    Raises
    ------
    InputError
        A place that does not exist.
    """
    for path in paths:
        if path == "-":
            yield from _lines(stdin, "line")
        elif Path(path).is_dir():
            yield from _folder(Path(path))
        elif not Path(path).exists():
            raise InputError(
                "{path}: there is no such file or folder. Give a folder of sheets, a .jsonl or .csv file, or -.",
                path=path,
            )
        elif path.endswith(".csv"):
            yield from _csv(path)
        elif Path(path).suffix in _ENDINGS:
            yield Submission("file", Path(path).stem, path)
        else:
            yield from _jsonl(path)


def _folder(folder: Path) -> Iterator[Submission]:
    """Sheets of a folder by name; also one folder a student, as other systems export them."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_symlink():
            yield Submission("broken", path.name, fault=Message(N_("This is a link; links are not followed.")))
        elif path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS and not file.is_symlink())
            yield from (Submission("file", path.name, str(file)) for file in inside[:1])
        elif path.suffix in _ENDINGS:
            yield Submission("file", path.stem, str(path))
        elif path.suffix == ".jsonl":
            yield from _jsonl(str(path))
        elif path.suffix == ".csv":
            yield from _csv(str(path))


def _jsonl(path: str) -> Iterator[Submission]:
    with Path(path).open("rb") as file:
        yield from _lines(file, "line")


def _lines(file: IO[bytes], kind: str) -> Iterator[Submission]:
    """Lines of a stream; one that is too long or not UTF-8 is a broken sheet, and the next line is read."""
    for number, text in enumerate(_texts(file), start=1):
        name = f"#{number}"
        if isinstance(text, Message):
            yield Submission("broken", name, fault=text)
        elif text.strip():
            yield Submission(kind, name, text)


def _texts(file: IO[bytes]) -> Iterator[str | Message]:
    while True:
        line = file.readline(MOST_SHEET_BYTES + 1)
        if not line:
            return
        if len(line) > MOST_SHEET_BYTES:
            while line and not line.endswith(b"\n"):
                line = file.readline(MOST_SHEET_BYTES)
            yield Message(
                N_("This line has more than {limit} bytes, too many for one sheet."), limit=f"{MOST_SHEET_BYTES:,}"
            )
            continue
        try:
            yield as_text(line, "")
        except AttnError as error:
            yield error.message


def _csv(path: str) -> Iterator[Submission]:
    """Rows of a CSV, each with the header. A row may hold line breaks in quotes."""
    with Path(path).open("rb") as file:
        rows = csv.reader(_readable(file))
        header: tuple[str, ...] | None = None
        number = 0
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                number += 1
                yield Submission(
                    "broken", f"#{number}", fault=Message(N_("This row cannot be read: {what}."), what=str(error))
                )
                continue
            if header is None:
                header = tuple(name.strip() for name in row)
                continue
            if row:
                number += 1
                yield Submission("row", f"#{number}", header=header, cells=tuple(row))


def _readable(file: IO[bytes]) -> Iterator[str]:
    for text in _texts(file):
        yield "\n" if isinstance(text, Message) else text


def _from_file(path: str) -> Sheet:
    if path.endswith(".npz"):
        return sheet_from_arrays(arrays_from_npz(path))
    text = as_text(read_bounded(path, MOST_SHEET_BYTES), path)
    if path.endswith(".toml"):
        import tomllib

        try:
            return sheet(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError("is not valid TOML: {what}.", what=str(error)[:200]) from None
    return sheet(parse_json(text))
