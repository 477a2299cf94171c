"""Where a class's sheets lie: folders, files of a whole class, a stream. One sheet after another, never all of them in memory.

One broken line of a file is one broken sheet; it never stops the others.
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

from attncli.core.limits import MOST_COLUMNS, MOST_ROW_LINES, MOST_SHEET_BYTES
from attncli.core.message import N_, AttnError, InputError, Listed, Message, closest, of_system, placed
from attncli.core.record import Record
from attncli.marking.ledger import BESIDE
from attncli.problems.answers import Sheet, column_names, row_data, sheet, sheet_data, sheet_from_arrays
from attncli.problems.reading import decoded, open_bounded, parse_json, read_bounded
from attncli.problems.source import arrays_from_npz

_ENDINGS = frozenset({".json", ".toml", ".npz"})
_CLASSES = frozenset({".jsonl", ".csv"})
#: Names of files that lie beside sheets and are none; a sheet or a folder of such a name is a student's.
_BESIDE = frozenset({"readme", "thumbs", "desktop", "license"})
_BLOCK = 1 << 16
#: Files that a message names, columns that it names, and those for which a likely one is looked for.
_MOST_NAMES, _MOST_COLUMNS, _MOST_LOOKS = 5, 10, 20
#: Characters of a name that a sheet claims, or a column has.
_MOST_CLAIMED, _MOST_OF_COLUMN = 60, 40
_TOO_LONG = Message("This line has more than {limit} bytes, too many for one sheet.", limit=f"{MOST_SHEET_BYTES:,}")


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
        """The sheet."""
        if self._is_arrays:
            return sheet_from_arrays(arrays_from_npz(io.BytesIO(self._bytes())), self.name)
        data = self._data()
        found, claimed = sheet(data), _as_name(data.get("student"))
        if not self.placed:
            return found.changed(student=claimed or self.name)
        if claimed and claimed.casefold() != self.name.casefold():
            claim = N_("This sheet is signed “{claimed}”, but it was handed in for {name}. It counts for {name}.")
            note = Message(claim, name=self.name, claimed=claimed[:_MOST_CLAIMED])
            found = found.changed(notes=(*found.notes, note))
        return found.changed(student=self.name)

    def student(self) -> str:
        """Whose it is, as far as that can be found out."""
        return self.name if self.placed else _as_name(self._claim("student")) or self.name

    def problem(self) -> str | None:
        """The id of the problem that it says it answers."""
        named = self._claim("problem")
        return named.strip() or None if isinstance(named, str) else None

    def _claim(self, key: str) -> object:
        try:
            data = None if self._is_arrays else self._data()
        except (AttnError, MemoryError, RecursionError, OSError):
            return None
        return data.get(key) if isinstance(data, dict) else None

    def carried(self) -> Submission:
        """The same with the file's bytes in it, to be read where the file is not."""
        if self.kind != "file" or self.content is not None:
            return self
        try:
            return self.changed(content=self._bytes())
        except AttnError as error:
            return _broken(self.name, error.message)

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
            return row_data(self.header, self.cells)
        return sheet_data(decoded(self._bytes()), json=self._ending != ".toml")

    def _bytes(self) -> bytes:
        return read_bounded(self.text, MOST_SHEET_BYTES) if self.content is None else self.content


def _as_name(value: object) -> str | None:
    """A student's name, where this can be one."""
    return str(value).strip() or None if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def _broken(name: str, fault: Message) -> Submission:
    return Submission("broken", name, fault=fault)


Submissions = Iterator[Submission | None]


def submissions(
    paths: Sequence[str],
    stdin: IO[bytes],
    known: Callable[[str], bool] = lambda name: True,
    beside: Collection[Path] = (),
) -> Submissions:
    """Every sheet of these places, in a fixed order; None where the next one of a stream has not arrived yet.

    A place that cannot be opened is an error at once, before any sheet is read.

    Parameters
    ----------
    known : whether a column of a CSV is a step of the exercise; others are left out
    beside : resolved paths that lie among the sheets and are none, like the exercise or the results
    """
    if list(paths).count("-") > 1:
        raise InputError("Standard input (-) is given twice. Keep one.")
    for path in paths:
        if path != "-":
            _check(path)
    return (found for path in paths for found in _in_place(path, stdin, known, beside))


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
            _columns(path)
        else:
            _opened(path).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "{path}: cannot be opened ({reason}). Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
            reason=of_system(error),
        ) from None


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _in_place(path: str, stdin: IO[bytes], known: Callable[[str], bool], beside: Collection[Path]) -> Submissions:
    if path == "-":
        yield from _json_lines(_lines(stdin, live=True))
    elif Path(path).is_dir():
        yield from _in_folder(Path(path), known, beside)
    elif _is_csv(path) or Path(path).suffix.lower() not in _ENDINGS:
        yield from _in_class_file(path, known)
    else:
        yield Submission("file", Path(path).stem, path)


def _in_folder(folder: Path, known: Callable[[str], bool], beside: Collection[Path]) -> Submissions:
    """Sheets of a folder by name; also one folder a student, as other systems export them."""
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if _is_beside(path, ending) or path.resolve() in beside:
            continue
        if path.is_symlink():
            yield _broken(path.stem, Message("This is a link; links are not followed."))
        elif path.is_dir():
            yield _in_own_folder(path)
        elif not path.is_file():
            yield _broken(path.stem, Message("This is not a file."))
        elif ending in _ENDINGS:
            yield Submission("file", path.stem, str(path), placed=True)
        elif ending in _CLASSES:
            try:
                yield from _in_class_file(str(path), known)
            except AttnError as error:
                yield _broken(path.stem, error.message)
        else:
            yield _broken(path.stem, Message("This is not a sheet: sheets end in .json, .toml or .npz."))


def _is_beside(path: Path, ending: str) -> bool:
    """Whether this lies among the sheets and is none: hidden, a readme, or results with what belongs to them."""
    if path.name.startswith((".", "__")) or ending == BESIDE:
        return True
    if ending in _CLASSES and path.with_name(path.name + BESIDE).is_file():
        return True
    return path.stem.casefold() in _BESIDE and ending not in _ENDINGS | _CLASSES and not path.is_dir()


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
        return _broken(folder.name, Message("There is no sheet in this folder."))
    if len(answers) > 1:
        names = Listed.first((file.name for file in answers), _MOST_NAMES)
        text = N_("There are several sheets in this folder: {names}. Keep one.")
        return _broken(folder.name, Message(text, names=names))
    return Submission("file", folder.name, str(answers[0]), placed=True)


# Files of a whole class.


def _opened(path: str) -> IO[bytes]:
    with placed(path):
        return open_bounded(path, sys.maxsize)


def _in_class_file(path: str, known: Callable[[str], bool]) -> Submissions:
    with _opened(path) as file:
        if _is_csv(path):
            yield from _csv_rows(path, file, known)
        else:
            yield from _json_lines(_lines(file))


def _json_lines(lines: Iterable[bytes | Message | None]) -> Submissions:
    """JSON Lines; one that is too long or not UTF-8 is a broken sheet, and the next line is read."""
    number = 0
    for line in lines:
        if line is None:
            yield None
            continue
        number += 1
        try:
            text = line if isinstance(line, Message) else decoded(line).strip()
        except AttnError as error:
            text = error.message
        if isinstance(text, Message):
            yield _broken(f"#{number}", text)
        elif text:
            yield Submission("line", f"#{number}", text)


def _lines(file: Any, live: bool = False) -> Iterator[bytes | Message | None]:
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


def _csv_rows(path: str, file: IO[bytes], known: Callable[[str], bool]) -> Iterator[Submission]:
    """Rows of a CSV, each with the header. A row may hold line breaks in quotes."""
    rows = _rows(file)
    names = _header(path, next(rows, None))
    header = tuple(name if name == "student" or known(name) else "" for name in names)
    # Spreadsheets end with rows of commas.
    written = (row for row in rows if isinstance(row, Message) or any(cell.strip() for cell in row))
    for number, row in enumerate(written, 1):
        if isinstance(row, Message):
            yield _broken(f"#{number}", row)
        elif any(cell.strip() for cell in row[len(header) :]):
            name = row[header.index("student")].strip() or f"#{number}"
            text = N_("This row has {cells} cells for {columns} columns. Put quotes around a cell that holds a comma.")
            yield _broken(name, Message(text, cells=len(row), columns=len(header)))
        else:
            yield Submission("row", f"#{number}", header=header, cells=tuple(row))


def _columns(path: str) -> tuple[str, ...]:
    """The names of a CSV's columns: student, and a step each."""
    with _opened(path) as file:
        return _header(path, next(_rows(file), None))


def _header(path: str, row: list[str] | Message | None) -> tuple[str, ...]:
    with placed(path):
        if row is None:
            raise InputError(
                "the CSV is empty. Its first line names the columns: student, and a column for every step."
            )
        if isinstance(row, Message):
            raise InputError("{fault}", fault=row)
        names = column_names(row)
        if "student" not in names:
            raise InputError(
                "the first line has no column “student”, only: {names}. Name the columns there, with commas between them.",
                names=_some(names),
            )
        if len(names) > MOST_COLUMNS:
            raise InputError(
                "the first line names {count} columns; the limit is {limit}. Keep student and the columns of the steps.",
                count=f"{len(names):,}",
                limit=f"{MOST_COLUMNS:,}",
            )
        twice = next((name for name, count in Counter(names).items() if name and count > 1), None)
        if twice is not None:
            raise InputError("the column “{name}” occurs twice. Keep one.", name=twice[:_MOST_OF_COLUMN])
    return names


def _some(names: Sequence[str]) -> Listed:
    return Listed.first((name[:_MOST_OF_COLUMN] for name in names), _MOST_COLUMNS)


def _rows(file: IO[bytes]) -> Iterator[list[str] | Message]:
    """Rows of a CSV; a Message for one that cannot be read.

    A quote that is never closed would swallow every row after it. So where a row does not end, or ends
    in the middle of a word, only its first line is given up, and the next line begins a row.
    """
    texts = _texts(file)
    waiting: deque[str | Message] = deque()
    while (line := waiting.popleft() if waiting else next(texts, None)) is not None:
        if isinstance(line, Message):
            yield line
            continue
        taken = [line]
        odd = line.count('"') % 2 == 1
        while odd and len(taken) < MOST_ROW_LINES:
            more = waiting.popleft() if waiting else next(texts, None)
            if not isinstance(more, str):
                waiting.extendleft([] if more is None else [more])
                break
            taken.append(more)
            odd ^= more.count('"') % 2 == 1
        row = Message("This row has a quote that is not closed.") if odd else _cells("\n".join(taken))
        if isinstance(row, Message):
            waiting.extendleft(reversed(taken[1:]))
        yield row


def _texts(file: IO[bytes]) -> Iterator[str | Message]:
    """Lines as text: what is not UTF-8 becomes surrogates, so that quotes and commas still cut the row."""
    encoding = "utf-8-sig"
    for line in _lines(file):
        yield line if isinstance(line, Message) else (line or b"").decode(encoding, "surrogateescape")
        encoding = "utf-8"


def _cells(text: str) -> list[str] | Message:
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        return Message("This is not UTF-8 text. Save the CSV as UTF-8 (in Excel: CSV UTF-8).")
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True))
    except csv.Error as error:
        return Message("This row cannot be read: {what}.", what=str(error))
    return rows[0] if rows else []


def unknown_columns(path: str, known: Callable[[str], bool], steps: Sequence[str]) -> Message | None:
    """What to say about columns of a CSV that are no steps of the exercise, or None."""
    strange = [name for name in _columns(path) if name and name != "student" and not known(name)]
    likely = next(filter(None, (closest(name, list(steps)) for name in strange[:_MOST_LOOKS])), None)
    text = N_("{path}: these columns are not steps and are ignored: {names}.")
    if likely is not None:
        text = N_("{path}: these columns are not steps and are ignored: {names}. Did you mean “{likely}”?")
    return Message(text, path=path, names=_some(strange), likely=likely) if strange else None
