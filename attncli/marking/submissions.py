"""A class's sheets, one after another: a folder of files, JSON Lines, CSV, or a stream. Never all of them in memory.

A submission is only what has to be read: where it came from and its text, or its file. Reading it can
go wrong, and then it is one malformed result; it never stops the others.
"""

from __future__ import annotations

import csv
import io
import select
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from attncli.core.limits import MOST_ARRAY_BYTES, MOST_COLUMNS, MOST_ROW_LINES, MOST_SHEET_BYTES
from attncli.core.message import N_, AttnError, InputError, Message, closest
from attncli.core.reasons import of_system
from attncli.core.record import Record
from attncli.problems.answers import Sheet, answer, sheet, sheet_data, sheet_from_arrays
from attncli.problems.source import arrays_from_npz, as_text, open_bounded, parse_json, read_bounded

#: What a file of results has beside it.
BESIDE = ".attncli"
_BLOCK = 1 << 16
_ENDINGS = frozenset({".json", ".toml", ".npz"})
_CLASSES = frozenset({".jsonl", ".csv"})
#: Names of files that lie beside sheets and are none; a sheet or a folder of such a name is a student's.
_BESIDE = frozenset({"readme", "thumbs", "desktop", "license"})
#: Strange columns for which a likely one is looked for.
_MOST_LOOKS = 20
#: Characters of a name that a sheet claims.
_MOST_CLAIMED = 60

_TOO_LONG = Message(N_("This line has more than {limit} bytes, too many for one sheet."), limit=f"{MOST_SHEET_BYTES:,}")


_CLAIM = N_("This sheet names “{claimed}”, but it was handed in as that of {name}. It counts for {name}.")


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
        if self.kind == "row":
            return self._row()
        if self.kind == "file" and self._ending == ".npz":
            return sheet_from_arrays(self._arrays(), self.name)
        data = self._data()
        found, claimed = sheet(data), _student(data)
        if not self.placed:
            return found.changed(student=claimed or self.name)
        notes = found.notes
        if claimed and claimed.casefold() != self.name.casefold():
            notes = (*notes, Message(_CLAIM, name=self.name, claimed=claimed[:_MOST_CLAIMED]))
        return found.changed(student=self.name, notes=notes)

    def student(self) -> str:
        """Whose it is, as far as that can be found out."""
        try:
            if self.kind == "row":
                return self._row().student or self.name
            if self.kind == "line" or (self.kind == "file" and not self.placed and self._ending != ".npz"):
                return _student(self._data()) or self.name
        except (AttnError, MemoryError, RecursionError, OSError):
            pass
        return self.name

    def problem(self) -> str | None:
        """The id of the problem that it says it answers."""
        try:
            if self.kind == "row":
                return dict(zip(self.header, self.cells, strict=False)).get("problem", "").strip() or None
            if self.kind == "line" or (self.kind == "file" and self._ending != ".npz"):
                data = self._data()
                name = data.get("problem") if isinstance(data, dict) else None
                return name if isinstance(name, str) and name else None
        except (AttnError, MemoryError, RecursionError, OSError):
            pass
        return None

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
        return (
            self.kind,
            place,
            self.text if self.kind == "line" else self._ending,
            self.header,
            self.cells,
            self.content,
            self.fault,
        )

    @property
    def _ending(self) -> str:
        return Path(self.text).suffix.lower()

    def _data(self) -> Any:
        """What stands in the line or file, by the names of JSON and TOML."""
        if self.fault is not None:
            raise InputError("{fault}", fault=self.fault)
        if self.kind == "line":
            return parse_json(self.text)
        return sheet_data(as_text(self._bytes(), self.text), json=self._ending != ".toml")

    def _bytes(self) -> bytes:
        return read_bounded(self.text, MOST_SHEET_BYTES) if self.content is None else self.content

    def _arrays(self) -> dict[str, Any]:
        import tempfile
        import zipfile

        data = self._bytes()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            size = 0  # the reader below says what is wrong
        if size > MOST_ARRAY_BYTES:
            raise InputError("unpacks to more than {limit} bytes, the limit here.", limit=f"{MOST_ARRAY_BYTES:,}")
        if self.content is None:
            return arrays_from_npz(self.text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.npz"
            path.write_bytes(data)
            return arrays_from_npz(str(path))

    def _row(self) -> Sheet:
        cells = dict(zip(self.header, self.cells, strict=False))
        student = cells.pop("student", "").strip() or self.name
        cells.pop("problem", None)
        return Sheet(student, {name: answer(text) for name, text in cells.items() if name and text.strip()})


def _student(data: Any) -> str | None:
    """The student that a sheet names, or None."""
    name = data.get("student") if isinstance(data, dict) else None
    return str(name).strip() or None if isinstance(name, (str, int, float)) and not isinstance(name, bool) else None


def submissions(
    paths: Sequence[str],
    stdin: IO[bytes],
    known: Callable[[str], bool] = lambda name: True,
    beside: Collection[Path] = (),
) -> Iterator[Submission | None]:
    """Every sheet of these places, in a fixed order; None where the next one of a stream has not arrived yet.

    Parameters
    ----------
    known : whether a column of a CSV is a step of the exercise; others are left out
    beside : resolved paths that lie among the sheets and are none, like the exercise or the results

    Raises
    ------
    InputError
        A place that does not exist or cannot be opened; at once, before any sheet is read.
    """
    if list(paths).count("-") > 1:
        raise InputError("Standard input (-) is given twice. Keep one.")
    for path in paths:
        if path != "-":
            _check(path)
    return _all(paths, stdin, known, beside)


def _check(path: str) -> None:
    if Path(path).is_char_device():
        # One like /dev/zero never comes to the end of its first line.
        raise InputError(
            "{path}: this is a device, not a file of sheets. Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
        )
    try:
        if Path(path).is_dir():
            next(Path(path).iterdir(), None)
        elif _is_csv(path):
            columns(path)
        else:
            _opened(path).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "{path}: cannot be opened ({reason}). Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
            reason=of_system(error),
        ) from None


def _opened(path: str) -> IO[bytes]:
    try:
        return open_bounded(path, sys.maxsize)
    except AttnError as error:
        raise error.at(path) from None


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _all(
    paths: Sequence[str], stdin: IO[bytes], known: Callable[[str], bool], beside: Collection[Path]
) -> Iterator[Submission | None]:
    for path in paths:
        if path == "-":
            yield from _lines(_texts(stdin, live=True))
        elif Path(path).is_dir():
            yield from _folder(Path(path), known, beside)
        elif _is_csv(path):
            yield from _csv(path, known)
        elif Path(path).suffix.lower() in _ENDINGS:
            yield Submission("file", Path(path).stem, path)
        else:
            yield from _jsonl(path)


def _folder(folder: Path, known: Callable[[str], bool], beside: Collection[Path]) -> Iterator[Submission | None]:
    """Sheets of a folder by name; also one folder a student, as other systems export them."""
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if _is_beside(path, ending) or path.resolve() in beside:
            continue
        if path.is_symlink():
            yield _broken(path, N_("This is a link; links are not followed."))
        elif path.is_dir():
            yield _in_own_folder(path)
        elif not path.is_file():
            yield _broken(path, N_("This is not a file."))
        elif ending in _ENDINGS:
            yield Submission("file", path.stem, str(path), placed=True)
        elif ending == ".jsonl":
            yield from _jsonl(str(path))
        elif ending == ".csv":
            try:
                columns(str(path))
            except AttnError as error:
                yield Submission("broken", path.stem, fault=error.message)
                continue
            yield from _csv(str(path), known)
        else:
            yield _broken(path, N_("This is not a sheet: sheets end in .json, .toml or .npz."))


def _is_beside(path: Path, ending: str) -> bool:
    """Whether this lies among the sheets and is none: hidden, a readme, or results with what belongs to them."""
    if path.name.startswith((".", "__")) or ending == BESIDE:
        return True
    if ending in _CLASSES and path.with_name(path.name + BESIDE).is_file():
        return True
    return path.stem.casefold() in _BESIDE and ending not in _ENDINGS | _CLASSES and not path.is_dir()


def _broken(path: Path, why: str, **fields: object) -> Submission:
    return Submission("broken", path.stem, fault=Message(why, **fields))


def _in_own_folder(folder: Path) -> Submission:
    """The sheet in a student's own folder: the file called answers, else the only one that can be a sheet."""
    try:
        inside = sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in _ENDINGS and not file.is_symlink() and file.is_file()
        )
    except OSError:
        inside = []
    answers = [file for file in inside if file.stem.casefold() == "answers"] or inside
    if not answers:
        return Submission("broken", folder.name, fault=Message(N_("There is no sheet in this folder.")))
    if len(answers) > 1:
        names = ", ".join(file.name for file in answers[:5])
        return Submission(
            "broken",
            folder.name,
            fault=Message(N_("There are several sheets in this folder: {names}. Keep one."), names=names),
        )
    return Submission("file", folder.name, str(answers[0]), placed=True)


def _jsonl(path: str) -> Iterator[Submission | None]:
    with _opened(path) as file:
        yield from _lines(_texts(file))


def _lines(texts: Iterable[bytes | Message | None]) -> Iterator[Submission | None]:
    """JSON Lines; one that is too long or not UTF-8 is a broken sheet, and the next line is read."""
    number = 0
    for line in texts:
        if line is None:
            yield None
            continue
        number += 1
        name = f"#{number}"
        if isinstance(line, Message):
            yield Submission("broken", name, fault=line)
            continue
        try:
            text = as_text(line, "").strip()
        except AttnError as error:
            yield Submission("broken", name, fault=error.message)
            continue
        if text:
            yield Submission("line", name, text)


def _texts(file: Any, live: bool = False) -> Iterator[bytes | Message | None]:
    """Lines without their line break; a Message for one that is too long, of which no more is kept than fits.

    Parameters
    ----------
    live : somebody may be waiting for the answer to the last line: say None before waiting for the next
    """
    rest, dropped = b"", False
    while True:
        if live and not _arrived(file):
            yield None
        block = file.read1(_BLOCK)
        *lines, tail = block.split(b"\n")
        for line in lines:
            whole, rest = rest + line, b""
            too_long, dropped = dropped or len(whole) > MOST_SHEET_BYTES, False
            yield _TOO_LONG if too_long else whole
        if not dropped:
            rest += tail
        if len(rest) > MOST_SHEET_BYTES:
            rest, dropped = b"", True
        if not block:
            break
    if rest or dropped:
        yield _TOO_LONG if dropped else rest


def _arrived(file: Any) -> bool:
    """Whether reading would not have to wait."""
    try:
        return bool(select.select([file.fileno()], [], [], 0)[0])
    except io.UnsupportedOperation:
        return True  # bytes in memory
    except (OSError, ValueError):
        return False  # cannot be known here


def columns(path: str) -> tuple[str, ...]:
    """The names of a CSV's columns: student, and a step each.

    Raises
    ------
    InputError
        The first line names no column student, or one twice; names the file.
    """
    with _opened(path) as file:
        return _header(path, next(_rows(_texts(file)), None))


def _header(path: str, row: list[str] | Message | None) -> tuple[str, ...]:
    if row is None:
        raise InputError(
            "{path}: the CSV is empty. Its first line names the columns: student, and a column for every step.",
            path=path,
        )
    if isinstance(row, Message):
        raise InputError("{where}: {what}", where=path, what=row)
    names = tuple("student" if name.strip().casefold() == "student" else name.strip() for name in row)
    if "student" not in names:
        raise InputError(
            "{path}: the first line names no column student, but: {names}. Name the columns there, with commas between them.",
            path=path,
            names=", ".join(name[:40] for name in names[:20]),
        )
    if len(names) > MOST_COLUMNS:
        raise InputError(
            "{path}: the first line names {count} columns; the limit is {limit}. Keep student and the columns of the steps.",
            path=path,
            count=f"{len(names):,}",
            limit=f"{MOST_COLUMNS:,}",
        )
    twice = next((name for name, count in Counter(names).items() if name and count > 1), None)
    if twice is not None:
        raise InputError("{path}: the column “{name}” stands twice. Keep one.", path=path, name=twice[:40])
    return names


def _csv(path: str, known: Callable[[str], bool]) -> Iterator[Submission]:
    """Rows of a CSV, each with the header. A row may hold line breaks in quotes."""
    with _opened(path) as file:
        rows = _rows(_texts(file))
        names = _header(path, next(rows, None))
        header = tuple(name if name == "student" or known(name) else "" for name in names)
        number = 0
        for row in rows:
            number += 1
            if isinstance(row, Message):
                yield Submission("broken", f"#{number}", fault=row)
            elif any(cell.strip() for cell in row[len(header) :]):
                fault = Message(
                    N_(
                        "This row has {cells} cells for {columns} columns. Put quotes around a cell that holds a comma."
                    ),
                    cells=len(row),
                    columns=len(header),
                )
                name = row[header.index("student")].strip() or f"#{number}"
                yield Submission("broken", name, fault=fault)
            elif any(cell.strip() for cell in row):
                yield Submission("row", f"#{number}", header=header, cells=tuple(row))
            else:
                number -= 1  # spreadsheets end with rows of commas


def _rows(lines: Iterator[bytes | Message | None]) -> Iterator[list[str] | Message]:
    """Rows of a CSV; a Message for one that cannot be read.

    A quote that is never closed would swallow every row after it. So where a row does not end, or ends
    in the middle of a word, only its first line is given up, and the next line begins a row.
    """
    waiting: deque[str | Message] = deque()
    texts = _decoded(lines)
    while True:
        line = waiting.popleft() if waiting else next(texts, None)
        if line is None:
            return
        if isinstance(line, Message):
            yield line
            continue
        taken = [line]
        odd = line.count('"') % 2 == 1
        while odd and len(taken) < MOST_ROW_LINES:
            more = waiting.popleft() if waiting else next(texts, None)
            if more is None:
                break
            if isinstance(more, Message):
                waiting.appendleft(more)
                break
            taken.append(more)
            odd ^= more.count('"') % 2 == 1
        row = Message(N_("This row has a quote that is not closed.")) if odd else _cells(taken)
        if isinstance(row, Message):
            waiting.extendleft(reversed(taken[1:]))
        yield row


def _decoded(lines: Iterator[bytes | Message | None]) -> Iterator[str | Message]:
    first = True
    for line in lines:
        if line is None:
            continue
        # What is not UTF-8 becomes surrogates, so that quotes and commas still cut the row.
        yield line if isinstance(line, Message) else line.decode("utf-8-sig" if first else "utf-8", "surrogateescape")
        first = False


def _cells(lines: Sequence[str]) -> list[str] | Message:
    text = "\n".join(lines)
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        return Message(N_("This is not UTF-8 text. Save the CSV as UTF-8 (in Excel: CSV UTF-8)."))
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True))
    except csv.Error as error:
        return Message(N_("This row cannot be read: {what}."), what=str(error))
    return rows[0] if rows else []


def unknown_columns(path: str, known: Callable[[str], bool], steps: Sequence[str]) -> Message | None:
    """What to say about columns of a CSV that are no steps of the exercise, or None."""
    strange = [name for name in columns(path) if name and name != "student" and not known(name)]
    if not strange:
        return None
    names = ", ".join(name[:40] for name in strange[:10]) + (", …" if len(strange) > 10 else "")
    likely = next((found for name in strange[:_MOST_LOOKS] if (found := closest(name, list(steps))) is not None), None)
    if likely is None:
        return Message(N_("{path}: these columns are not steps and are ignored: {names}."), path=path, names=names)
    return Message(
        N_("{path}: these columns are not steps and are ignored: {names}. Did you mean “{likely}”?"),
        path=path,
        names=names,
        likely=likely,
    )
