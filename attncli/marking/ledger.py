"""Results in a file, and beside it (FILE.attncli) what each of them belongs to, so that the next run marks only what has changed.

The file itself stays clean for others. In the one beside it stands, a line each: which work the results are of (problem, settings,
language, version), then for every result the fingerprint of its sheet, whose it is, its length and its own fingerprint, and at the end
that it is whole. A result is written first and its line after it; so whatever kills the run, every line stands for a whole result.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import IO, Any

import numpy as np

from attncli import __version__
from attncli.core.message import N_, InputError, Listed, Message
from attncli.core.outputs import CLASS, cannot_write, check_output, is_folder, is_locked_for_us
from attncli.core.record import Record
from attncli.marking.sheets import Submission

#: What a file of results has beside it.
BESIDE = ".attncli"
_BLOCK = 1 << 20
#: Names that a message lists.
_MOST_NAMES = 5

#: A sheet and what it is known by.
Pairs = Iterator[tuple[Submission, "SheetKey"] | None]


class SheetKey(Record):
    """A sheet as far as it is known again.

    Parameters
    ----------
    print : its fingerprint; an empty one is never known again
    student : whose it is; None: not looked up yet
    number : which sheet of this student it is, from 1
    page : the name of its page of feedback, where one is asked for
    """

    print: str
    student: str | None = None
    number: int = 1
    page: str | None = None


class Kept(Record):
    """A result of an earlier run: of which sheet, and where its text stands."""

    sheet: SheetKey
    start: int
    size: int


def fingerprint(*things: object) -> str:
    """The same for the same things, in every run and on every machine."""
    digest = hashlib.sha256()
    for part in _parts(things):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:32]


def _parts(thing: object) -> Iterator[bytes]:
    yield type(thing).__name__.encode()
    if isinstance(thing, bytes):
        yield thing
    elif isinstance(thing, Mapping):
        for name, value in thing.items():
            yield from _parts(name)
            yield from _parts(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from _parts(value)
    elif isinstance(thing, np.ndarray):
        yield f"{thing.dtype} {thing.shape}".encode()
        yield np.ascontiguousarray(thing).tobytes()
    elif isinstance(thing, Record):
        for name in thing._fields:
            yield from _parts(getattr(thing, name))
    else:
        yield str(thing).encode("utf-8", "backslashreplace")


class Ledger:
    """The results of a class in a file: `resume`, then `take` what is known or `add` what is new, then `finish`.

    Parameters
    ----------
    name : the file
    work : the fingerprint of the work that the results come from
    problem : the id of the exercise; results of another one are not touched
    head : what the file begins with, before the first result
    inputs : what is never written over
    force : begin anew, whatever stands there
    """

    def __init__(self, name: str, work: str, problem: str, head: str, inputs: Iterable[str], *, force: bool) -> None:
        self.name = name
        self.path = Path(os.path.realpath(name))
        self.work, self.problem = work, problem
        self.head = head.encode("utf-8", "replace")
        #: Results that stay where they are, and those whose sheets are not there any more.
        self.kept = self.left = 0
        self._is_new_work = self._was_whole = self.is_done = False
        self._file: IO[bytes]
        self._old: IO[bytes] | None = None
        self._beside: IO[bytes] | None = None
        self._index: dict[str, deque[Kept]] = {}
        if not name or self.path.is_dir():
            raise is_folder(name, "-o", "marks.csv")
        try:
            if self.path.exists() and not self.path.is_file():
                self._file = self.path.open("wb")  # a device or a pipe keeps nothing
                return
            check_output(name, CLASS, inputs, force=force or self._is_begun())
            self._beside = _opened(Path(f"{self.path}{BESIDE}"))
            if not is_locked_for_us(self._beside):
                self._beside.close()
                self._beside = None  # it is the other one's, empty or not
                raise InputError(
                    "-o {path}: another attncli is writing to this file. Wait until it is done, or give another name.",
                    path=self.name,
                )
            if self.has_earlier and not force:
                self._check_problem()
            self._file = _opened(self.path)
            if force:
                self._cut(self._file, 0)
        except OSError as error:
            self._give_up()
            raise cannot_write(name, error) from None
        except InputError:
            self._give_up()
            raise

    def _is_begun(self) -> bool:
        """Whether nothing but the beginning of the head stands there, or not even that."""
        if not self.path.is_file() or self.path.stat().st_size > len(self.head):
            return False
        return self.head.startswith(self.path.read_bytes())

    def _give_up(self) -> None:
        """Leave nothing behind where nothing was there."""
        if self._beside is not None:
            if not self._beside.seek(0, os.SEEK_END):
                Path(f"{self.path}{BESIDE}").unlink(missing_ok=True)
            self._beside.close()

    @property
    def has_earlier(self) -> bool:
        """Whether an earlier run has left something that may be taken over."""
        return self._beside is not None and self.path.is_file() and self.path.stat().st_size > 0

    def _check_problem(self) -> None:
        """Refuse results that nobody knows any more what they belong to."""
        head = self._first()
        if head is None or head.get("problem") != self.problem:
            raise InputError(
                "-o {path}: this file holds something other than the results of these sheets. Give another name, or --force to start over.",
                path=self.name,
            )

    def _first(self) -> dict[str, Any] | None:
        """What the file beside says of the work, or None."""
        assert self._beside is not None
        self._beside.seek(0)
        data = _read(self._beside.readline(10_000))
        return data if isinstance(data, dict) and "work" in data else None

    # Taking over what is there.

    def resume(self, sheets: Pairs, again: Callable[[], Iterator[str]] | None, seen: Callable[[Kept], None]) -> Pairs:
        """Take over what an earlier run has left of these sheets; the sheets that are left.

        As long as sheet after sheet is the same as then, its result just stays. From the first other one on the file is written
        again: what is known is copied, the rest marked.

        Parameters
        ----------
        sheets : with what they are known by; None where the next one has to be waited for
        again : gives the names of all students; None for a stream, which cannot be had twice
        seen : called with every result that stays
        """
        first = self._first() if self.has_earlier else None
        head = b"" if first is None else str(first.get("head", "")).encode("utf-8", "replace")
        if first is None or self.path.stat().st_size < len(head):
            self._begin()
            return sheets
        entries = self._entries(head)
        if first["work"] != self.work:
            known = list(entries)
            pair, sheets = (None, sheets) if again else _peeked(sheets)
            self._check_class(known, pair, again)
            self._is_new_work = True
            self._begin()
            return sheets
        at = len(self.head)
        for entry in entries:
            pair, rest = _peeked(sheets)
            if pair is None or not _same(pair[1], entry):
                known = [entry, *entries]
                if again or not self.kept:
                    self._check_class(known, pair, again)
                self._set_aside(known, at)
                self._go_on(at)
                return rest
            next(rest)
            seen(entry)
            self.kept += 1
            at = entry.start + entry.size
        pair, sheets = _peeked(sheets)
        self.is_done = pair is None and self._was_whole
        if not self.is_done:
            self._go_on(at)
        return sheets

    def _check_class(
        self,
        entries: Sequence[Kept],
        pair: tuple[Submission, SheetKey] | None,
        again: Callable[[], Iterator[str]] | None,
    ) -> None:
        """Refuse to drop the results of students whose sheets are not there any more: it may be another class.

        Of a stream nobody knows who is still to come; there one student in common will do.
        """
        present = set(again() if again else [] if pair is None else [pair[1].student or ""])
        before = dict.fromkeys(entry.sheet.student or "" for entry in entries)
        gone = [student for student in before if student not in present]
        if gone and (again or len(gone) == len(before)):
            raise InputError(
                "-o {path}: this file holds results of students whose sheets are not here: {names}. Give another name, or --force to start over.",
                path=self.name,
                names=Listed.first((student[:40] for student in gone), _MOST_NAMES),
            )

    def _entries(self, head: bytes) -> Iterator[Kept]:
        """The results that stand there whole behind the head, as they were written.

        Raises
        ------
        InputError
            Somebody has changed the file since.
        """
        assert self._beside is not None
        with self.path.open("rb") as file:
            if file.read(len(head)) != head[: self.path.stat().st_size]:
                raise self._changed(1)
            place = self._beside.tell()
            for number in count(1):
                self._beside.seek(place)
                data = _read(self._beside.readline())
                place = self._beside.tell()
                if isinstance(data, dict) and "done" in data:
                    tail = file.read(_BLOCK).decode("utf-8", "replace")
                    self._was_whole = tail == data["done"]
                    if not data["done"].startswith(tail):
                        raise self._changed(number)
                if not isinstance(data, list) or len(data) != 6:
                    return
                *key, size, print = data
                start, found = file.tell(), file.read(size)
                if len(found) < size:
                    return  # cut off
                if fingerprint(found) != print:
                    raise self._changed(number)
                yield Kept(SheetKey(*key), start, size)

    def _changed(self, number: int) -> InputError:
        return InputError(
            "-o {path}: this file was changed after attncli wrote it (at result {number} or before). Give another name, or --force to write over it.",
            path=self.name,
            number=number,
        )

    def _set_aside(self, entries: list[Kept], at: int) -> None:
        """Keep the results from here on in a place of their own, to be copied from."""
        import tempfile

        self._old = tempfile.SpooledTemporaryFile(max_size=64 * _BLOCK)  # noqa: SIM115 - closed with the ledger
        with self.path.open("rb") as file:
            file.seek(at)
            while block := file.read(_BLOCK):
                self._old.write(block)
        for entry in entries:
            self._index.setdefault(entry.sheet.print, deque()).append(entry.changed(start=entry.start - at))
        self.left = len(entries)

    def take(self, sheet: SheetKey) -> Kept | None:
        """The result of a sheet, where it is known already."""
        found = self._index.get(sheet.print)
        if not found or not _same(sheet, found[0]):
            return None
        self.left -= 1
        return found.popleft()

    # Writing.

    def _begin(self) -> None:
        if self._beside is not None:
            self._cut(self._file, 0)
            self._cut(self._beside, 0)
            head = {
                "attncli": __version__,
                "work": self.work,
                "problem": self.problem,
                "head": self.head.decode("utf-8", "replace"),
            }
            self._put(self._beside, json.dumps(head).encode() + b"\n")
        self._put(self._file, self.head)

    def _go_on(self, at: int) -> None:
        """Write on at this place, after the results that stay."""
        assert self._beside is not None
        self._beside.seek(0)
        for _ in range(self.kept + 1):
            self._beside.readline()
        self._cut(self._beside, self._beside.tell())
        self._cut(self._file, at)

    def _cut(self, file: IO[bytes], at: int) -> None:
        file.seek(at)
        file.truncate()

    def _put(self, file: IO[bytes], data: bytes) -> None:
        try:
            file.write(data)
            file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self.name, error) from None

    def add(self, text: bytes, sheet: SheetKey) -> None:
        """Write a result, and then what it belongs to."""
        self._put(self._file, text)
        if self._beside is not None:
            entry = [sheet.print, sheet.student, sheet.number, sheet.page, len(text), fingerprint(text)]
            self._put(self._beside, json.dumps(entry).encode() + b"\n")

    def copy(self, kept: Kept) -> None:
        """Write a result that was taken."""
        assert self._old is not None
        self._old.seek(kept.start)
        self.add(self._old.read(kept.size), kept.sheet)

    def finish(self, tail: str) -> None:
        """Everything is there."""
        self._put(self._file, tail.encode())
        if self._beside is not None:
            self._put(self._beside, json.dumps({"done": tail}).encode() + b"\n")

    def close(self) -> None:
        """Close the files; the lock goes with them."""
        for file in (self._file, self._beside, self._old):
            if file is not None:
                # What could not be written has been said.
                with contextlib.suppress(OSError):
                    file.close()

    def said(self) -> Message | None:
        """What to say before work begins, where an earlier run has left something."""
        if self._is_new_work:
            text = N_(
                "{path}: the exercise, a setting, the language or attncli itself has changed since these results were written. Every sheet is marked again."
            )
        elif self.is_done:
            text = N_("{path} holds the results of all these sheets already; nothing has changed since.")
        elif self._index or self._was_whole:
            text = N_("{path} holds results of an earlier run. What is new or has changed is marked; the rest stays.")
        elif self.kept:
            text = N_("{path} holds {count} results of an earlier run that was interrupted; going on after them.")
        else:
            return None
        return Message(text, path=self.name, count=self.kept)

    def said_at_the_end(self) -> Message | None:
        """What to say of results whose sheets are not there any more."""
        text = N_("{path}: old results taken out, since their sheets have changed or are gone: {count}.")
        return Message(text, path=self.name, count=self.left) if self.left else None


def _peeked(sheets: Pairs) -> tuple[tuple[Submission, SheetKey] | None, Pairs]:
    """The next sheet, waited for where it has to be, and all from it on."""
    pair = next((pair for pair in sheets if pair is not None), None)
    return pair, sheets if pair is None else chain([pair], sheets)


def _same(sheet: SheetKey, entry: Kept) -> bool:
    """Whether this is the sheet of the result, with a page of feedback if one is asked for now."""
    then = entry.sheet
    same = bool(then.print) and (sheet.print, sheet.student, sheet.number) == (then.print, then.student, then.number)
    return same and sheet.page in (None, then.page)


def _opened(path: Path) -> IO[bytes]:
    """A file to read and write, made where there is none."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")


def _read(line: bytes) -> Any:
    """What a line says; None for one that was cut off."""
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None
