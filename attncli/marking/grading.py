"""A class marked: from the places where sheets lie to results in order, by one process, many, or a cluster, and into files.

What an earlier run has left in the file is taken over where it is the same work (`ledger`). Nothing here prints: what is to be
said goes to `tell`, and results that are asked for on standard output to `out`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

from attncli import __version__
from attncli.core.message import N_, InputError, Language, Listed, Message, of_system
from attncli.core.outputs import CLASS, FEEDBACK, FEEDBACK_END, check_output, make_folder, write_whole
from attncli.core.record import Record
from attncli.marking.class_files import Submission, Submissions, submissions
from attncli.marking.grader import Grader, Result, results_of
from attncli.marking.ledger import BESIDE, Kept, Ledger, SheetKey, fingerprint

FORMATS = ("table", "jsonl", "csv", "gradescope", "junit")
Results = Iterator[Result]

#: Formats that are written as the results come.
STREAMED = ("jsonl", "csv", "junit")

#: Students that a picture of the class keeps by name.
MOST_LISTED = 60
#: The name of a page that is not there: no page has it.
_MISSING = "?"
#: Names that a message lists.
_MOST_NAMES = 5


class Order(Record):
    """What is to be graded, and where the results go.

    Parameters
    ----------
    sheets : the places of the sheets ("-": `stdin`)
    output, feedback : the file or folder for results, the folder for pages of feedback
    inputs : files that are never written over
    jobs, dask : processes, or the address of a cluster
    force : write over what stands there, whoever wrote it
    """

    sheets: tuple[str, ...]
    stdin: IO[bytes]
    format: str
    output: str | None
    feedback: str | None
    inputs: tuple[str, ...]
    jobs: int
    dask: str | None
    force: bool


class Printers(Record):
    """How results and pages of feedback are written.

    Parameters
    ----------
    results : of a format, the steps asked for and a language: what a file begins with, a result, what a file ends with
    unreadable : the page of a sheet that cannot be read
    remark : what stands at the end of a page
    """

    results: Callable[[str, Sequence[str], Language], tuple[str, Callable[[Result], str], str]]
    unreadable: Callable[[str, str], str]
    remark: Callable[[Message, Language], str]


class Grading:
    """One run over a class.

    Parameters
    ----------
    grader : what marks a sheet
    printers : how results and pages of feedback are written
    tell : what takes a remark for the person who gave the order
    watched : the same results, counted on a screen: called with them, how many are done, and how many there are if that is known
    """

    def __init__(
        self,
        order: Order,
        grader: Grader,
        printers: Printers,
        tell: Callable[[Message], object],
        watched: Callable[[Results, int, Callable[[], int | None]], Results] | None = None,
    ) -> None:
        self.order = order
        self.grader = grader
        self.printers = printers
        self.tell = tell
        self.watched = watched
        steps = list(grader.marker.points)
        self.head, self.text_of, self.tail = printers.results(order.format, steps, grader.language)
        self.picture = Picture(steps)
        self.faults: list[str] = []
        self._roll = Roll()
        #: What keeps other processes and open files, until it is closed.
        self._open = ExitStack()

    def run(self, out: Callable[[str], object]) -> Picture:
        """Mark everything and write it, results as they come; the picture of the class."""
        order = self.order
        self._check_places()
        with self._open:
            waiting = self._not_empty(self._submissions())
            if order.format == "gradescope":
                self._write_folders(waiting)
            elif order.format == "table":
                for marked in self._marked(waiting):
                    self.picture.add(self._finished(marked)[0])
            elif order.output is not None:
                self._write_file(order.output, waiting)
            else:
                head = self.head
                for marked in self._marked(waiting):
                    out(head + self.text_of(self._finished(marked)[0]))
                    head = ""
                out(self.tail)
        self.picture.several = {name: count for name, count in self._roll.sheets.items() if count > 1}
        self._say_what_happened()
        return self.picture

    def _check_places(self) -> None:
        order = self.order
        if order.output is not None and order.format == "gradescope":
            check_output(order.output, CLASS, order.sheets, force=True)
        elif order.output is not None and order.format in STREAMED and not Path(f"{order.output}{BESIDE}").exists():
            check_output(order.output, CLASS, order.inputs, force=order.force)
        if order.feedback is not None:
            check_output(order.feedback, CLASS, order.sheets, option="--feedback", force=True)
            make_folder(Path(order.feedback), "--feedback")

    def _say_what_happened(self) -> None:
        if self.picture.several and self.order.format != "table":
            names = Listed.first(self.picture.several, _MOST_NAMES)
            text = N_("These students handed in more than one sheet; all are kept and marked: {names}.")
            self.tell(Message(text, names=names))
        if self.faults:
            names = Listed.first(self.faults, _MOST_NAMES)
            text = N_(
                "attncli itself failed on {count} of the sheets ({names}). There are no points for them yet; the reason is in their results. Please report it (attncli {version})."
            )
            self.tell(Message(text, count=len(self.faults), names=names, version=__version__))

    # Sheets.

    def _submissions(self) -> Submissions:
        """The sheets, from the beginning; of a stream only the first time."""
        order = self.order
        others = (*(name for name in order.inputs if name not in order.sheets), order.output, order.feedback)
        beside = frozenset(Path(name).resolve() for name in others if name)
        return map(self.grader.whose, submissions(order.sheets, order.stdin, self.grader.knows, beside))

    def _not_empty(self, waiting: Submissions) -> Submissions:
        """The sheets; an error before any file is made, if there is none."""
        first, waiting = _peeked(waiting)
        if first is None:
            raise InputError(
                "There is no sheet in {places}. Give a folder of sheets, a .jsonl or .csv file, or - with JSON Lines on standard input.",
                places=Listed([Message("standard input") if path == "-" else path for path in self.order.sheets]),
            )
        return waiting

    def _total(self) -> int | None:
        """How many sheets there are, where all of them lie in files: these are read through once more."""
        if not all(Path(path).is_file() or Path(path).is_dir() for path in self.order.sheets):
            return None
        return sum(sheet is not None for sheet in self._submissions())

    # Results.

    def _marked(self, waiting: Submissions, done: int = 0) -> Results:
        """What marking comes to, in order; `done` sheets have results from an earlier run."""
        order = self.order

        def left() -> int | None:
            total = self._total()
            return None if total is None else total - done

        results = results_of(
            self.grader, waiting, self._open, jobs=order.jobs, dask=order.dask, left=left, tell=self.tell
        )
        return results if self.watched is None else self.watched(results, done, self._total)

    def _finished(self, result: Result) -> tuple[Result, int, str]:
        """A new result with what concerns the student said, and the page of feedback written; which sheet of the student it is of,
        and the name of the page."""
        student, page = result["student"] or "", result.pop("feedback", None)
        number, name = self._roll.call(student)
        language = self.grader.language
        again = None
        if number > 1:
            text = N_("This is sheet {number} from {student}; the earlier ones are kept and marked too.")
            again = Message(text, number=number, student=student[:60])
            result["notes"] = [*result.get("notes", ()), again.text(language)]
        if "fault" in result:
            self.faults.append(student)
        if self.order.feedback is not None:
            if page is None:
                page = self.printers.unreadable(student, result.get("malformed") or result["fault"])
            self._write_page(name, page if again is None else page + self.printers.remark(again, language))
        return result, number, name

    def _write_page(self, name: str, text: str) -> None:
        path = self._page_path(name)
        check_output(str(path), FEEDBACK, option="--feedback", force=self.order.force)
        # Not beside and renamed: a page that was cut off is written again, since its result is not there yet.
        try:
            path.write_bytes(text.encode("utf-8", "replace") + FEEDBACK_END)
        except OSError as error:
            raise InputError(
                "--feedback {path}: cannot be written ({reason}).", path=str(path), reason=of_system(error)
            ) from None

    def _page_path(self, name: str) -> Path:
        return Path(self.order.feedback or "") / f"{name}.md"

    # A file of results, which an earlier run may have begun.

    def _write_file(self, output: str, waiting: Submissions) -> None:
        """Result by result, each whole and at once: what is done is not lost when the run is stopped."""
        order, grader = self.order, self.grader
        students = None if "-" in order.sheets else self._students
        ledger = Ledger(output, self._work(), grader.problem.id, self.head, order.inputs, students, force=order.force)
        self._open.callback(ledger.close)
        ahead = Roll() if ledger.has_earlier else None
        #: Sheets whose results are not written yet, each with its result where that is known.
        in_turn: deque[tuple[SheetKey, Kept | None]] = deque()

        def write_known() -> None:
            while in_turn and (kept := in_turn[0][1]) is not None:
                ledger.keep(kept)
                self._roll.call(kept.sheet.student or "")
                in_turn.popleft()

        def to_mark() -> Submissions:
            for found in waiting:
                if found is None:
                    yield None
                    continue
                submission = found.carried()
                sheet = self._key(submission, ahead)
                kept = ledger.take(sheet)
                in_turn.append((sheet, kept))
                write_known()
                if kept is None:
                    yield submission
            ledger.no_more()

        _, left = _peeked(to_mark())
        if ledger.said is not None:
            self.tell(ledger.said)
        if ledger.is_done:
            return
        for marked in self._marked(left, ledger.kept):
            write_known()  # names and counts are taken in the order of the sheets
            sheet, _ = in_turn.popleft()
            result, number, name = self._finished(marked)
            known_as = "" if "fault" in result else sheet.print
            page = None if order.feedback is None else name
            own = SheetKey(known_as, result["student"], number, page)
            ledger.add(self.text_of(result).encode("utf-8", "replace"), own)
        write_known()
        taken_out = ledger.finish(self.tail)
        if taken_out is not None:
            self.tell(taken_out)

    def _work(self) -> str:
        """The fingerprint of what the results depend on beside the sheets."""
        grader = self.grader
        variants = (grader.problems, grader.owners) if grader.problems else ()
        layout = grader.layout or grader.problem.layout
        how = grader.language.code, layout, self.order.format, dict(grader.names)
        return fingerprint(__version__, grader.problem, *how, *variants)

    def _students(self) -> Iterator[str]:
        return (sheet.student() for sheet in self._submissions() if sheet is not None)

    def _key(self, submission: Submission, ahead: Roll | None) -> SheetKey:
        """What a sheet is known by: its bytes, and where an earlier run has left something whose it is."""
        known_as = fingerprint(*submission.content_parts())
        if ahead is None:
            return SheetKey(known_as)
        student = submission.student()
        number, page = ahead.call(student)
        if self.order.feedback is None:
            return SheetKey(known_as, student, number)
        return SheetKey(known_as, student, number, page if self._page_path(page).is_file() else _MISSING)

    # Gradescope.

    def _write_folders(self, waiting: Submissions) -> None:
        """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where Gradescope's autograder looks for it."""
        output = self.order.output or ""
        is_file = output.lower().endswith(".json")
        folder, file = (Path(output).parent, Path(output).name) if is_file else (Path(output), "results.json")
        results = map(self._finished, self._marked(waiting))
        first, second = next(results), next(results, None)
        if is_file and second is not None:
            raise InputError(
                "-o {path}: there are several sheets, and Gradescope's results are one file each. Give a folder: -o results",
                path=output,
            )
        for result, _, name in chain((first,) if second is None else (first, second), results):
            place = folder if second is None else folder / name
            make_folder(place, "-o")
            path = str(place / file)
            check_output(path, CLASS, self.order.inputs, force=self.order.force)
            write_whole(path, self.text_of(result).encode("utf-8"))


def _peeked(waiting: Submissions) -> tuple[Submission | None, Submissions]:
    """The next sheet, waited for where it has to be, and all from it on."""
    first = next((sheet for sheet in waiting if sheet is not None), None)
    return first, waiting if first is None else chain([first], waiting)


class Picture:
    """The class as a whole, counted while results go by; its size hardly grows with the class.

    Attributes
    ----------
    sheets, malformed, faults : how many, how many could not be read, and how many we failed at
    students : the first names with their points, None where there are none yet
    unreadable : the first of those that could not be read or marked, each with the reason
    scores : how often each score was reached
    verdicts : by step, in the order of the calculation, how often each verdict
    mistakes : how often each mistake at each step: (step, id) → count
    first_wrong : how often each step was the first wrong one
    several : students with more than one sheet, and how many
    """

    def __init__(self, steps: Sequence[str]) -> None:
        self.sheets = 0
        self.malformed = 0
        self.faults = 0
        self.max_score = 0.0
        self.total = 0.0
        self.students: list[tuple[str, float | None]] = []
        self.unreadable: list[tuple[str, str]] = []
        self.several: dict[str, int] = {}
        self.scores: Counter[float] = Counter()
        self.verdicts: dict[str, Counter[str]] = {step: Counter() for step in steps}
        self.mistakes: Counter[tuple[str, str]] = Counter()
        self.first_wrong: Counter[str] = Counter()

    def add(self, result: Result) -> None:
        """Count one result."""
        self.sheets += 1
        self.max_score = max(self.max_score, result["max_score"])
        if len(self.students) < MOST_LISTED:
            self.students.append((result["student"] or "", result["score"]))
        why = result.get("malformed") or result.get("fault")
        if why and len(self.unreadable) < MOST_LISTED:
            self.unreadable.append((result["student"] or "", why))
        self.malformed += "malformed" in result
        self.faults += "fault" in result
        if result["score"] is not None:
            self.total += result["score"]
            self.scores[round(result["score"], 2)] += 1
        if result["first_wrong"] in self.verdicts:
            self.first_wrong[result["first_wrong"]] += 1
        for step in result["steps"]:
            if step["id"] in self.verdicts:
                self.verdicts[step["id"]][step["verdict"]] += 1
            # Several entries that give the same numbers are one mistake; the likelier first stands for them.
            for mistake in step["mistakes"][:1]:
                self.mistakes[mistake["step"], mistake["id"]] += 1

    @property
    def mean(self) -> float:
        marked = self.sheets - self.faults
        return self.total / marked if marked else 0.0


#: Names that Windows keeps for devices, with whatever ending.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{name}{i}" for name in ("com", "lpt") for i in range(10))})


class Roll:
    """The students as their sheets come, called one after another.

    Attributes
    ----------
    sheets : how many of each student have come
    """

    def __init__(self) -> None:
        self.sheets: Counter[str] = Counter()
        self._used: dict[str, int] = {}

    def call(self, student: str) -> tuple[int, str]:
        """Which sheet of the student this is, and a name for its file that no other has: letters, digits, - and _, so that it
        stays in its folder."""
        self.sheets[student] += 1
        plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in student)
        plain = plain.encode("utf-8", "replace")[:200].decode("utf-8", "ignore").strip("_") or "sheet"
        if plain.casefold() in _DEVICES:
            plain = f"{plain}_"
        number = self._used.get(plain.casefold(), 0) + 1
        name = plain if number == 1 else f"{plain}-{number}"
        while number > 1 and name.casefold() in self._used:
            number += 1
            name = f"{plain}-{number}"
        self._used[plain.casefold()] = number
        self._used.setdefault(name.casefold(), 1)
        return self.sheets[student], name
