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
from attncli.marking.ledger import BESIDE
from attncli.marking.sheets import Submission, column_names
from attncli.problems.reading import decoded, open_bounded

_ENDINGS = frozenset({".json", ".toml", ".npz"})
_CLASSES = frozenset({".jsonl", ".csv"})
#: Names of files that lie beside sheets and are none; a sheet or a folder of such a name is a student's.
_BESIDE = frozenset({"readme", "thumbs", "desktop", "license"})
_BLOCK = 1 << 16
#: Files that a message names, columns that it names, and those for which a likely one is looked for.
_MOST_NAMES, _MOST_COLUMNS, _MOST_LOOKS = 5, 10, 20
_TOO_LONG = Message("This line has more than {limit} bytes, too many for one sheet.", limit=f"{MOST_SHEET_BYTES:,}")


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
            opened(path).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "{path}: cannot be opened ({reason}). Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
            reason=of_system(error),
        ) from None


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _all(
    paths: Sequence[str], stdin: IO[bytes], known: Callable[[str], bool], beside: Collection[Path]
) -> Iterator[Submission | None]:
    for path in paths:
        if path == "-":
            yield from json_lines(texts_of(stdin, live=True))
        elif Path(path).is_dir():
            yield from _folder(Path(path), known, beside)
        elif _is_csv(path):
            yield from csv_rows_of(path, known)
        elif Path(path).suffix.lower() in _ENDINGS:
            yield Submission("file", Path(path).stem, path)
        else:
            yield from json_lines_of(path)


def _folder(folder: Path, known: Callable[[str], bool], beside: Collection[Path]) -> Iterator[Submission | None]:
    """Sheets of a folder by name; also one folder a student, as other systems export them."""
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if _is_beside(path, ending) or path.resolve() in beside:
            continue
        if path.is_symlink():
            yield _broken(path.stem, N_("This is a link; links are not followed."))
        elif path.is_dir():
            yield _in_own_folder(path)
        elif not path.is_file():
            yield _broken(path.stem, N_("This is not a file."))
        elif ending in _ENDINGS:
            yield Submission("file", path.stem, str(path), placed=True)
        elif ending == ".jsonl":
            yield from json_lines_of(str(path))
        elif ending == ".csv":
            try:
                columns(str(path))
            except AttnError as error:
                yield Submission("broken", path.stem, fault=error.message)
                continue
            yield from csv_rows_of(str(path), known)
        else:
            yield _broken(path.stem, N_("This is not a sheet: sheets end in .json, .toml or .npz."))


def _is_beside(path: Path, ending: str) -> bool:
    """Whether this lies among the sheets and is none: hidden, a readme, or results with what belongs to them."""
    if path.name.startswith((".", "__")) or ending == BESIDE:
        return True
    if ending in _CLASSES and path.with_name(path.name + BESIDE).is_file():
        return True
    return path.stem.casefold() in _BESIDE and ending not in _ENDINGS | _CLASSES and not path.is_dir()


def _broken(name: str, why: str, **fields: object) -> Submission:
    return Submission("broken", name, fault=Message(why, **fields))


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
        return _broken(folder.name, N_("There is no sheet in this folder."))
    if len(answers) > 1:
        text = N_("There are several sheets in this folder: {names}. Keep one.")
        return _broken(folder.name, text, names=Listed.first((file.name for file in answers), _MOST_NAMES))
    return Submission("file", folder.name, str(answers[0]), placed=True)


# Files of a whole class.


def opened(path: str) -> IO[bytes]:
    """A file of a class, to be read line by line.

    Raises
    ------
    InputError
        It cannot be opened; names the file.
    """
    with placed(path):
        return open_bounded(path, sys.maxsize)


def json_lines_of(path: str) -> Iterator[Submission | None]:
    with opened(path) as file:
        yield from json_lines(texts_of(file))


def json_lines(texts: Iterable[bytes | Message | None]) -> Iterator[Submission | None]:
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
            text = decoded(line).strip()
        except AttnError as error:
            yield Submission("broken", name, fault=error.message)
            continue
        if text:
            yield Submission("line", name, text)


def texts_of(file: Any, live: bool = False) -> Iterator[bytes | Message | None]:
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
    with opened(path) as file:
        return _header(path, next(_rows(texts_of(file)), None))


def _header(path: str, row: list[str] | Message | None) -> tuple[str, ...]:
    if row is None:
        raise InputError(
            "{path}: the CSV is empty. Its first line names the columns: student, and a column for every step.",
            path=path,
        )
    if isinstance(row, Message):
        raise InputError("{where}: {what}", where=path, what=row)
    names = column_names(row)
    if "student" not in names:
        raise InputError(
            "{path}: the first line has no column “student”, only: {names}. Name the columns there, with commas between them.",
            path=path,
            names=Listed.first((name[:40] for name in names), _MOST_COLUMNS),
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
        raise InputError("{path}: the column “{name}” occurs twice. Keep one.", path=path, name=twice[:40])
    return names


def csv_rows_of(path: str, known: Callable[[str], bool]) -> Iterator[Submission]:
    """Rows of a CSV, each with the header. A row may hold line breaks in quotes."""
    with opened(path) as file:
        rows = _rows(texts_of(file))
        names = _header(path, next(rows, None))
        header = tuple(name if name == "student" or known(name) else "" for name in names)
        number = 0
        for row in rows:
            number += 1
            if isinstance(row, Message):
                yield Submission("broken", f"#{number}", fault=row)
            elif any(cell.strip() for cell in row[len(header) :]):
                name = row[header.index("student")].strip() or f"#{number}"
                text = N_(
                    "This row has {cells} cells for {columns} columns. Put quotes around a cell that holds a comma."
                )
                yield _broken(name, text, cells=len(row), columns=len(header))
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
        row = Message("This row has a quote that is not closed.") if odd else _cells(taken)
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
        return Message("This is not UTF-8 text. Save the CSV as UTF-8 (in Excel: CSV UTF-8).")
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True))
    except csv.Error as error:
        return Message("This row cannot be read: {what}.", what=str(error))
    return rows[0] if rows else []


def unknown_columns(path: str, known: Callable[[str], bool], steps: Sequence[str]) -> Message | None:
    """What to say about columns of a CSV that are no steps of the exercise, or None."""
    strange = [name for name in columns(path) if name and name != "student" and not known(name)]
    if not strange:
        return None
    names = Listed.first((name[:40] for name in strange), _MOST_COLUMNS)
    likely = next((found for name in strange[:_MOST_LOOKS] if (found := closest(name, list(steps))) is not None), None)
    if likely is None:
        return Message("{path}: these columns are not steps and are ignored: {names}.", path=path, names=names)
    text = N_("{path}: these columns are not steps and are ignored: {names}. Did you mean “{likely}”?")
    return Message(text, path=path, names=names, likely=likely)
