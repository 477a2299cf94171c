"""The practice log (FORMATS): JSON Lines, one entry each, appended at once; the learner's state is replayed from it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from attncli.core.limits import MOST_ARRAY_BYTES
from attncli.core.message import InputError, of_system
from attncli.core.outputs import write_whole
from attncli.core.record import Record

#: Verdicts of a line that is right.
RIGHT = frozenset({"correct", "route", "imprecise", "follow_through"})
#: Verdicts of a line that nothing was written for.
NO_TRY = frozenset({"shown", "skipped"})
#: Characters of an answer that are kept, and digits of a draw's number.
_LONGEST, _DIGITS = 2000, 10


class LogEntry(Record):
    """One thing that a learner did at one line of an exercise.

    Parameters
    ----------
    t : when, in seconds since 1970
    exercise : the recipe and the number of its draw ("attention#3"), or the id of a worked example
    verdict : as `check` gives it; "shown": the result was asked for; "skipped": the line was left; "done": of the whole
        exercise, which has come to its end
    hints : asked for at this line before
    try_ : counted from 1; "try" in the file
    seconds : since the line was asked for
    """

    t: float
    student: str
    exercise: str
    step: str
    skill: str
    stage: int
    answer: str
    verdict: str
    mistakes: tuple[str, ...]
    hints: int
    try_: int
    seconds: int

    @property
    def is_clean(self) -> bool:
        """Right at the first try, without help."""
        return self.verdict in RIGHT and self.try_ == 1 and not self.hints

    @property
    def recipe(self) -> str:
        """The recipe or worked example without the number of the draw."""
        return self.exercise.partition("#")[0]

    @property
    def seed(self) -> int | None:
        """The number of the draw."""
        number = self.exercise.partition("#")[2]
        return int(number) if number.isascii() and number.isdigit() and len(number) < _DIGITS else None

    def line(self) -> str:
        """The entry as a line of the log."""
        when = datetime.fromtimestamp(self.t, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        kind = "done" if self.verdict == "done" else "entry"
        fields = {name.rstrip("_"): getattr(self, name) for name in self._fields if name != "t"}
        return json.dumps({"t": when, "kind": kind, **fields, "answer": self.answer[:_LONGEST]}, ensure_ascii=False)


def entry_of(line: str | bytes) -> LogEntry | None:
    """The entry on a line; None for a torn one, or one of a kind that this version does not know."""
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or data.get("kind") not in ("entry", "done"):
            return None
        return LogEntry(
            datetime.fromisoformat(data["t"]).timestamp(), str(data.get("student") or ""), str(data["exercise"]), str(data["step"]),
            str(data["skill"]), int(data["stage"]), str(data["answer"]), str(data["verdict"]), tuple(map(str, data["mistakes"])),
            int(data["hints"]), int(data["try"]), int(data["seconds"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def read(path: Path) -> list[LogEntry]:
    """The entries of a file in the order of their times: logs of two machines are merged by writing one behind the other."""
    try:
        if path.stat().st_size > MOST_ARRAY_BYTES:
            raise InputError(
                "{path}: more than {limit} bytes, the limit here.", path=str(path), limit=f"{MOST_ARRAY_BYTES:,}"
            )
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError("{path}: cannot be read ({reason}).", path=str(path), reason=of_system(error)) from None
    found = sorted(filter(None, map(entry_of, lines)), key=lambda entry: entry.t)
    if not found and not _may_be_ours(lines):
        raise InputError(
            "{path}: this is not a practice log. A log has one entry a line, as attncli practice writes them.",
            path=str(path),
        )
    return found


def read_all(paths: Sequence[Path]) -> list[LogEntry]:
    """The entries of several logs, whoever gave no name called by the name of the file."""
    found = [entry if entry.student else entry.changed(student=path.stem) for path in paths for entry in read(path)]
    return sorted(found, key=lambda entry: entry.t)


def _may_be_ours(lines: Sequence[bytes]) -> bool:
    """Whether a file without a single entry is an empty log, or one whose only line is torn."""
    written = [line for line in lines if line.strip()]
    return not written or (len(written) == 1 and written[0].startswith(b'{"t"'))


def writer(path: Path) -> Callable[[LogEntry], None]:
    """What appends to a log, every entry at once and in one piece."""
    if path.is_file():
        read(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_opened(path))
    except OSError as error:
        raise _cannot_write(path, error) from None
    return partial(_append, path)


def _append(path: Path, entry: LogEntry) -> None:
    data = entry.line().encode("utf-8", "backslashreplace") + b"\n"
    try:
        handle = _opened(path)
        try:
            os.write(handle, b"\n" + data if _is_torn(handle) else data)
        finally:
            os.close(handle)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _opened(path: Path) -> int:
    """The file, made for its owner alone where it is not there yet."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)


def _cannot_write(path: Path, error: OSError) -> InputError:
    return InputError(
        "The practice log {path} cannot be written ({reason}). Name another file: --log FILE.",
        path=str(path),
        reason=of_system(error),
    )


def _is_torn(handle: int) -> bool:
    """Whether the last line of a file has no end, as a kill in the middle of writing leaves it."""
    try:
        if os.lseek(handle, 0, os.SEEK_END) == 0:
            return False
        os.lseek(handle, -1, os.SEEK_END)
        return os.read(handle, 1) != b"\n"
    except OSError:  # a pipe, or a device
        return False


def default_path(environment: Mapping[str, str], platform: str = sys.platform, home: Path | None = None) -> Path:
    """Where the log is kept if nobody says otherwise: in the user's data folder."""
    own = home if home is not None else Path.home()
    if platform == "win32":
        folder = Path(environment.get("LOCALAPPDATA") or own / "AppData" / "Local")
    elif platform == "darwin":
        folder = own / "Library" / "Application Support"
    else:
        named = environment.get("XDG_DATA_HOME", "")
        # A path that is not absolute is to be overlooked, says the XDG specification.
        folder = Path(named) if named.startswith("/") else own / ".local" / "share"
    return folder / "attncli" / "practice.jsonl"


def forget(path: Path, student: str | None = None) -> int:
    """Take entries out of a log: all of them, with the file, or one student's; returns how many."""
    if not path.exists():
        return 0
    entries = read(path)
    if student is None:
        try:
            path.unlink()
        except OSError as error:
            raise _cannot_write(path, error) from None
        return len(entries)
    kept = [entry for entry in entries if entry.student != student]
    write_whole(str(path), "".join(f"{entry.line()}\n" for entry in kept).encode(), "--log", "practice.jsonl")
    return len(entries) - len(kept)
