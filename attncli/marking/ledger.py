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
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import IO, Any

import numpy as np

from attncli import __version__
from attncli.core.message import N_, AttnError, InputError, Listed, Message
from attncli.core.outputs import CLASS, cannot_write, check_output, is_folder, is_locked_for_us
from attncli.core.record import Record

#: What a file of results has beside it.
BESIDE = ".attncli"
_BLOCK = 1 << 20
#: Bytes of old results that are not put on the disk while they wait to be copied.
_MOST_IN_MEMORY = 16 * _BLOCK
#: Names that a message lists.
_MOST_NAMES = 5

_NEW_WORK = N_(
    "{path}: the exercise, a setting, the language or attncli itself has changed since these results were written. Every sheet is marked again."
)
_SAME = N_("{path} holds the results of all these sheets already; nothing has changed since.")
_CHANGED = N_("{path} holds results of an earlier run. What is new or has changed is marked; the rest stays.")
_INTERRUPTED = N_("{path} holds {count} results of an earlier run that was interrupted; going on after them.")
_TAKEN_OUT = N_("{path}: old results taken out, since their sheets have changed or are gone: {count}.")


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

    @property
    def known_by(self) -> tuple[str, str | None, int]:
        return self.print, self.student, self.number


class Kept(Record):
    """A result of an earlier run.

    Parameters
    ----------
    start : where it begins in the file
    ends : where it ends there, and its line in the file beside
    """

    sheet: SheetKey
    start: int
    ends: tuple[int, int]

    def is_of(self, sheet: SheetKey) -> bool:
        """Whether it belongs to this sheet, and has a page of feedback if one is asked for now."""
        return bool(sheet.print) and sheet.known_by == self.sheet.known_by and sheet.page in (None, self.sheet.page)


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
    """The results of a class in a file: of each sheet in turn `take` what an earlier run has left and `add` the result, then `finish`.

    As long as sheet after sheet is the same as then, nothing is written: its result just stays. From the first other one on the
    file is written again.

    Parameters
    ----------
    name : the file
    work : the fingerprint of the work that the results come from
    problem : the id of the exercise; results of another one are not touched
    head : what the file begins with, before the first result
    inputs : what is never written over
    students : gives the names of all whose sheets are there; None for a stream, which cannot be had twice
    force : begin anew, whatever stands there

    Attributes
    ----------
    has_earlier : whether an earlier run has left something
    kept : how many results have stayed where they were
    is_done : whether all of them have, and the file is whole
    said : what there is to say before work begins, once the first sheet that has to be marked is known
    """

    def __init__(
        self,
        name: str,
        work: str,
        problem: str,
        head: str,
        inputs: Iterable[str],
        students: Callable[[], Iterable[str]] | None = None,
        *,
        force: bool,
    ) -> None:
        self.name = name
        self._place = f"-o {name}"
        self.path = Path(os.path.realpath(name))
        self.work, self.problem = work, problem
        self.head = head.encode("utf-8", "replace")
        self.students = students
        self.has_earlier = False
        self.kept = 0
        self.is_done = False
        self.said: Message | None = None
        self._file: IO[bytes]
        self._beside: IO[bytes] | None = None
        #: What an earlier run has left, one after another; from the first other sheet on what is left of it, to be looked up.
        self._earlier: Iterator[Kept] = iter(())
        self._index: dict[tuple[str, str | None, int], Kept] | None = None
        self._is_new_work = self._was_whole = self._is_writing = False
        #: The file from where what stays ends, to be copied from while it is written over.
        self._old: IO[bytes] | None = None
        #: Where what stays ends, in the file and in the one beside.
        self._ends = 0, 0
        if not name or self.path.is_dir():
            raise is_folder(name, "-o", "marks.csv")
        try:
            if self.path.exists() and not self.path.is_file():
                self._file = self.path.open("wb")  # a device or a pipe keeps nothing
            else:
                check_output(name, CLASS, inputs, force=force or self._is_begun())
                self._open(force=force)
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

    def _open(self, *, force: bool) -> None:
        beside = _opened(Path(f"{self.path}{BESIDE}"))
        if not is_locked_for_us(beside):
            beside.close()  # it is the other one's, empty or not
            raise InputError(
                "another attncli is writing to this file. Wait until it is done, or give another name."
            ).at(self._place)
        self._beside = beside
        if not force and self.path.is_file() and self.path.stat().st_size:
            first = _read(beside.readline(10_000))
            if not isinstance(first, dict) or "work" not in first or first.get("problem") != self.problem:
                raise InputError(
                    "this file holds something other than the results of these sheets. Give another name, or --force to start over."
                ).at(self._place)
            self.has_earlier = True
            self._is_new_work = first["work"] != self.work
            self._earlier = self._entries(beside, str(first.get("head", "")).encode("utf-8", "replace"))
        self._file = _opened(self.path)
        if force:
            self._file.truncate(0)

    def _give_up(self) -> None:
        """Leave nothing behind where nothing was there."""
        if self._beside is not None:
            if not self._beside.seek(0, os.SEEK_END):
                Path(f"{self.path}{BESIDE}").unlink(missing_ok=True)
            self._beside.close()

    # What an earlier run has left.

    def _entries(self, beside: IO[bytes], head: bytes) -> Iterator[Kept]:
        """The results that stand there whole behind the head; an error where somebody has changed them."""
        with self.path.open("rb") as file:
            size = self.path.stat().st_size
            if size < len(head):
                return
            if file.read(len(head)) != head:
                raise self._changed(1)
            for number in count(1):
                line = _read(beside.readline())
                if isinstance(line, dict) and "done" in line:
                    tail = file.read(_BLOCK).decode("utf-8", "replace")
                    self._was_whole = tail == line["done"]
                    if not line["done"].startswith(tail):
                        raise self._changed(number)
                if not isinstance(line, list) or len(line) != 6:
                    return
                *key, length, own = line
                text = file.read(length)
                if len(text) < length:
                    return  # cut off
                if fingerprint(text) != own:
                    raise self._changed(number)
                yield Kept(SheetKey(*key), file.tell() - length, (file.tell(), beside.tell()))

    def _changed(self, number: int) -> AttnError:
        return InputError(
            "this file was changed after attncli wrote it (at result {number} or before). Give another name, or --force to write over it.",
            number=number,
        ).at(self._place)

    def take(self, sheet: SheetKey) -> Kept | None:
        """The result of the next sheet, where it is known already; an error where the results are of another class."""
        if self._index is None:
            entry = None if self._is_new_work else next(self._earlier, None)
            if entry is not None and entry.is_of(sheet):
                self.kept += 1
                self._ends = entry.ends
                return entry
            self._index = self._rest(entry, sheet)
        known = self._index.get(sheet.known_by)
        return self._index.pop(sheet.known_by) if known is not None and known.is_of(sheet) else None

    def no_more(self) -> None:
        """The sheet before was the last one."""
        if self._index is None:
            entry = next(self._earlier, None)
            self.is_done = entry is None and self._was_whole
            self._index = self._rest(entry, None)

    def _rest(self, entry: Kept | None, sheet: SheetKey | None) -> dict[tuple[str, str | None, int], Kept]:
        """What an earlier run has left and does not stay where it is, from this entry on, to be looked up."""
        rest = [*([] if entry is None else [entry]), *self._earlier]
        if rest and (self.students or not self.kept):
            self._check_class(rest, sheet)
        says = {
            _NEW_WORK: self._is_new_work,
            _SAME: self.is_done,
            _CHANGED: rest or self._was_whole,
            _INTERRUPTED: self.kept,
        }
        text = next((text for text, holds in says.items() if holds), None)
        self.said = None if text is None else Message(text, path=self.name, count=self.kept)
        if self._is_new_work or not rest:
            return {}
        self._old = tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY)  # noqa: SIM115 - closed with the ledger
        with self.path.open("rb") as file:
            file.seek(self._ends[0])
            shutil.copyfileobj(file, self._old, _BLOCK)
        return {kept.sheet.known_by: kept for kept in rest}

    def _check_class(self, entries: Iterable[Kept], sheet: SheetKey | None) -> None:
        """Refuse to drop the results of students whose sheets are not there any more: it may be another class.

        Of a stream nobody knows who is still to come; there one student in common will do.
        """
        before = dict.fromkeys(entry.sheet.student or "" for entry in entries)
        present = set(self.students() if self.students else [] if sheet is None else [sheet.student or ""])
        gone = [student for student in before if student not in present]
        if gone and (self.students or len(gone) == len(before)):
            raise InputError(
                "this file holds results of students whose sheets are not here: {names}. Give another name, or --force to start over.",
                names=Listed.first((student[:40] for student in gone), _MOST_NAMES),
            ).at(self._place)

    # Writing.

    def add(self, text: bytes, sheet: SheetKey) -> None:
        """Write the next result, and then what it belongs to."""
        self._write(text, [sheet.print, sheet.student, sheet.number, sheet.page, len(text), fingerprint(text)])

    def keep(self, kept: Kept) -> None:
        """Write the next result as an earlier run has left it; nothing, where it stays where it is."""
        if self._old is not None:
            self._old.seek(kept.start - self._ends[0])
            self.add(self._old.read(kept.ends[0] - kept.start), kept.sheet)

    def finish(self, tail: str) -> Message | None:
        """Everything is there; what to say of results whose sheets are not there any more."""
        self._write(tail.encode(), {"done": tail})
        return Message(_TAKEN_OUT, path=self.name, count=len(self._index)) if self._index else None

    def _write(self, text: bytes, line: object) -> None:
        if not self._is_writing:
            self._is_writing = True
            self._go_on()
        self._put(self._file, text)
        self._put(self._beside, _line(line))

    def _go_on(self) -> None:
        """Take away what does not stay; where nothing does, begin."""
        end, end_beside = self._ends
        if self._beside is not None:
            for file, size in ((self._file, end), (self._beside, end_beside)):
                file.seek(size)
                file.truncate()
        if not end:
            head = self.head.decode("utf-8", "replace")
            work = {"attncli": __version__, "work": self.work, "problem": self.problem, "head": head}
            self._put(self._beside, _line(work))
            self._put(self._file, self.head)

    def _put(self, file: IO[bytes] | None, data: bytes) -> None:
        if file is None:
            return
        try:
            file.write(data)
            file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self.name, error) from None

    def close(self) -> None:
        """Close the files; the lock goes with them."""
        for file in (self._file, self._beside, self._old):
            if file is not None:
                # What could not be written has been said.
                with contextlib.suppress(OSError):
                    file.close()


def _opened(path: Path) -> IO[bytes]:
    """A file to read and write, made where there is none."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")


def _line(data: object) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _read(line: bytes) -> Any:
    """What a line says; None for one that was cut off."""
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None
