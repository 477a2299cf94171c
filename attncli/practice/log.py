"""The practice log (FORMATS): JSON Lines, one entry each, appended at once; the learner's state is replayed from it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attncli.core.limits import MOST_ARRAY_BYTES
from attncli.core.message import InputError, of_system
from attncli.core.record import Record

#: Verdicts of a line that is right.
RIGHT = frozenset({"correct", "route", "imprecise", "follow_through"})
#: Verdicts of a line that nothing was written for.
_NO_TRY = frozenset({"shown", "skipped"})
#: Characters of an answer that are kept.
_LONGEST = 2000


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
        fields = {name.rstrip("_"): getattr(self, name) for name in self._fields}
        kind = "done" if self.verdict == "done" else "entry"
        data = {"t": when, "kind": kind, **fields, "answer": self.answer[:_LONGEST], "mistakes": list(self.mistakes)}
        return json.dumps({**data, "t": when}, ensure_ascii=False)


_DIGITS = 10


def entry_of(line: str | bytes) -> LogEntry | None:
    """The entry on a line; None for a torn one, or one of a kind that this version does not know."""
    try:
        data = json.loads(line)
        if not isinstance(data, dict) or data.get("kind") not in ("entry", "done"):
            return None
        return LogEntry(
            datetime.fromisoformat(data["t"]).timestamp(),
            str(data.get("student") or ""),
            str(data["exercise"]),
            str(data["step"]),
            str(data["skill"]),
            int(data["stage"]),
            str(data["answer"]),
            str(data["verdict"]),
            tuple(map(str, data["mistakes"])),
            int(data["hints"]),
            int(data["try"]),
            int(data["seconds"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def entries_of(lines: Iterable[str | bytes]) -> Iterator[LogEntry]:
    """The entries of a log's lines; what is torn is left out."""
    return (entry for line in lines if (entry := entry_of(line)) is not None)


def read(path: Path) -> list[LogEntry]:
    """The entries of a file in the order of their times: logs of two machines are merged by writing one behind the other.

    Raises
    ------
    InputError
        It cannot be read, or holds something else.
    """
    try:
        if path.stat().st_size > MOST_ARRAY_BYTES:
            raise InputError(
                "{path}: more than {limit} bytes, the limit here.", path=str(path), limit=f"{MOST_ARRAY_BYTES:,}"
            )
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError("{path}: cannot be read ({reason}).", path=str(path), reason=of_system(error)) from None
    found = sorted(entries_of(lines), key=lambda entry: entry.t)
    if not found and not _may_be_ours(lines):
        raise InputError(
            "{path}: this is not a practice log. A log has one entry a line, as attncli practice writes them.",
            path=str(path),
        )
    return found


def read_all(paths: Sequence[Path]) -> list[LogEntry]:
    """The entries of several logs, whoever gave no name called by the name of the file.

    Raises
    ------
    InputError
        One of them cannot be read, or holds something else.
    """
    found = [entry if entry.student else entry.changed(student=path.stem) for path in paths for entry in read(path)]
    return sorted(found, key=lambda entry: entry.t)


def _may_be_ours(lines: Sequence[bytes]) -> bool:
    """Whether a file without a single entry is an empty log, or one whose only line is torn."""
    written = [line for line in lines if line.strip()]
    return not written or (len(written) == 1 and written[0].startswith(b'{"t"'))


class Writer:
    """Appends to a log, every entry at once and in one piece.

    Raises
    ------
    InputError
        The file cannot be written, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and path.is_file():
            read(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(self._open())
        except OSError as error:
            raise _cannot_write(path, error) from None

    def __call__(self, entry: LogEntry) -> None:
        data = entry.line().encode("utf-8", "backslashreplace") + b"\n"
        try:
            handle = self._open()
            try:
                os.write(handle, b"\n" + data if _is_torn(handle) else data)
            finally:
                os.close(handle)
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def _open(self) -> int:
        """The file, made for its owner alone where it is not there yet."""
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)


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
    """Take entries out of a log: all of them, with the file, or one student's; returns how many.

    Raises
    ------
    InputError
        The file is no log, or cannot be written.
    """
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
    from attncli.core.outputs import write_whole

    write_whole(str(path), "".join(f"{entry.line()}\n" for entry in kept).encode(), "--log", "practice.jsonl")
    return len(entries) - len(kept)


class Skill:
    """How a learner stands with one skill, as replayed.

    Attributes
    ----------
    box : its box; `due`: when it is to come again, in seconds
    open : rights in a row, at the first try and without help, that are still needed after something went wrong
    mistakes : what went wrong last, by name; `failed`: the entry of it
    """

    def __init__(self) -> None:
        self.box = 0
        self.due = 0.0
        self.open = 0
        self.mistakes: tuple[str, ...] = ()
        self.failed: LogEntry | None = None
        self.tries = self.clean = self.wrong = self.helped = self.shown = 0
        self.last = 0.0


#: Days after which a skill comes again, by box.
BOXES = (0, 1, 2, 4, 8, 16, 32)
DAY = 86400.0
#: Rights in a row after a mistake that has a name; after any other failure one is enough.
_AFTER_A_MISTAKE = 3


class DoneExercise(Record):
    """One exercise that was done: where it stands in the log, and how it went."""

    name: str
    stage: int
    clean: bool
    failures: int
    done: bool = False

    @property
    def recipe(self) -> str:
        return self.name.partition("#")[0]


class Progress:
    """What a log says about one student: skills, and exercises in their order."""

    def __init__(self, entries: Iterable[LogEntry] = (), student: str = "") -> None:
        self.student = student
        self.skills: dict[str, Skill] = {}
        self.exercises: list[DoneExercise] = []
        self.seeds: dict[str, int] = {}
        self.seen: dict[str, set[str]] = {}
        for entry in entries:
            if entry.student == student:
                self.add(entry)

    @classmethod
    def of(cls, path: Path, student: str) -> Progress:
        """What the log there says of a student; nothing, where there is none yet."""
        return cls(read(path) if path.is_file() else (), student)

    def add(self, entry: LogEntry) -> None:
        """Take one more entry into account."""
        self._exercise(entry)
        if entry.seed is not None:
            self.seeds[entry.recipe] = max(entry.seed, self.seeds.get(entry.recipe, 0))
        if entry.verdict == "done":
            return
        self.seen.setdefault(entry.recipe, set()).add(entry.skill)
        skill = self.skills.setdefault(entry.skill, Skill())
        skill.tries += entry.verdict not in _NO_TRY
        skill.last = entry.t
        skill.helped += bool(entry.hints)
        if entry.is_clean:
            skill.clean += 1
            skill.open = max(0, skill.open - 1)
            if not skill.open and entry.t >= skill.due:
                skill.box = min(skill.box + 1, len(BOXES) - 1)
                skill.due = entry.t + BOXES[skill.box] * DAY
            return
        if entry.verdict in RIGHT:
            skill.open = max(skill.open, 1)
            skill.failed = skill.failed or entry
            return
        skill.wrong += entry.verdict == "wrong"
        skill.shown += entry.verdict == "shown"
        skill.box, skill.due = 0, entry.t
        skill.open = max(skill.open, _AFTER_A_MISTAKE if entry.mistakes else 1)
        if entry.mistakes:
            skill.open = _AFTER_A_MISTAKE
            skill.mistakes = entry.mistakes
        skill.failed = entry

    def _exercise(self, entry: LogEntry) -> None:
        last = self.exercises[-1] if self.exercises else None
        if entry.verdict == "done":
            if last is not None and last.name == entry.exercise:
                self.exercises[-1] = last.changed(done=True)
            return
        failed = entry.verdict not in RIGHT
        if last is None or last.name != entry.exercise or last.done:
            self.exercises.append(DoneExercise(entry.exercise, entry.stage, entry.is_clean, int(failed)))
            return
        self.exercises[-1] = last.changed(clean=last.clean and entry.is_clean, failures=last.failures + failed)

    def stage(self, recipe: str) -> int:
        """The stage at which a recipe goes on: up after one without a fault, down after one with two."""
        from attncli.practice.skills import LAST_STAGE

        last = next((one for one in reversed(self.exercises) if one.recipe == recipe), None)
        if last is None:
            return 1
        if last.clean and last.done:
            return min(last.stage + 1, LAST_STAGE)
        return max(1, last.stage - (last.failures > 1))

    def is_known(self, recipe: str) -> bool:
        """Whether a recipe was once done from scratch without a fault."""
        from attncli.practice.skills import LAST_STAGE

        return any(
            one.recipe == recipe and one.stage == LAST_STAGE and one.clean and one.done for one in self.exercises
        )


def by_student(entries: Iterable[LogEntry]) -> dict[str, Progress]:
    """The state of every student of a log."""
    found: dict[str, Progress] = {}
    for entry in entries:
        found.setdefault(entry.student, Progress(student=entry.student)).add(entry)
    return found
