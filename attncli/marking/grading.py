"""A class marked: from the places where sheets lie to results in order, by one process, many, or a cluster, and into files.

What an earlier run has left in the file is taken over where it is the same work (`ledger`). Nothing here prints: what is to be
said goes to `tell`, and results that are asked for on standard output to `out`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

from attncli import __version__
from attncli.core.message import N_, InputError, Language, Listed, Message, of_system
from attncli.core.outputs import CLASS, FEEDBACK, FEEDBACK_END, check_output, make_folder, write_whole
from attncli.core.record import Record
from attncli.marking.class_files import submissions
from attncli.marking.feedback import Marked
from attncli.marking.grader import Grader, Result, SetGrader, results_of
from attncli.marking.ledger import BESIDE, Kept, Ledger, Pairs, SheetKey, fingerprint
from attncli.marking.sheets import Submission
from attncli.problems.problem import NOTHING, Problem

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
    problem, sheets : the exercise, and the places of the sheets ("-": `stdin`)
    language : of everything written
    layout : which way tokens run on the sheets, where not as in the problem
    output, feedback : the file or folder for results, the folder for pages of feedback
    inputs : files that are never written over
    names : names on the sheets that mean steps
    jobs, dask : processes, or the address of a cluster
    force : write over what stands there, whoever wrote it
    problems, owners : of a set of variants: the problems by id, and the id of each student's; `problem` is one of them
    """

    problem: Problem
    sheets: tuple[str, ...]
    stdin: IO[bytes]
    language: Language
    format: str
    layout: str | None = None
    output: str | None = None
    feedback: str | None = None
    inputs: tuple[str, ...] = ()
    names: Mapping[str, str] = NOTHING
    jobs: int = 1
    dask: str | None = None
    force: bool = False
    problems: Mapping[str, Problem] = NOTHING
    owners: Mapping[str, str] = NOTHING


class Printers(Record):
    """How results and pages of feedback are written.

    Parameters
    ----------
    results : of a format, the steps asked for and a language: what a file begins with, a result, what a file ends with
    page, unreadable : a page of a marked sheet, and of one that cannot be read
    remark : what stands at the end of a page
    """

    results: Callable[[str, Sequence[str], Language], tuple[str, Callable[[Result], str], str]]
    page: Callable[[Marked, Language], str]
    unreadable: Callable[[str, str], str]
    remark: Callable[[Message, Language], str]


class Grading:
    """One run over a class.

    Parameters
    ----------
    printers : how results and pages of feedback are written
    tell : what takes a remark for the person who gave the order
    watched : the same results, counted on a screen: called with them, how many are done, and how many there are if that is known
    """

    def __init__(
        self,
        order: Order,
        printers: Printers,
        tell: Callable[[Message], object],
        watched: Callable[[Results, int, Callable[[], int | None]], Results] | None = None,
    ) -> None:
        self.order = order
        self.printers = printers
        self.tell = tell
        self.watched = watched
        how = order.language, order.layout, None if order.feedback is None else printers.page, order.names
        self.grader = SetGrader(order.problems, order.owners, *how) if order.problems else Grader(order.problem, *how)
        steps = list(self.grader.marker.points)
        self.head, self.text_of, self.tail = printers.results(order.format, steps, order.language)
        self.picture = Picture(steps)
        self.faults: list[str] = []
        #: Sheets so far by student, names of pages that are taken, and the last of them.
        self._counts: Counter[str] = Counter()
        self._pages = FileNames()
        self._page: str | None = None
        #: What keeps other processes and open files, until it is closed.
        self._open = ExitStack()

    def run(self, out: Callable[[str], object]) -> Picture:
        """Mark everything and write it, results as they come; the picture of the class.

        Raises
        ------
        InputError
            There is no sheet at all; or something cannot be read, or written.
        """
        order = self.order
        self._check_places()
        with self._open:
            waiting = self._not_empty(self._submissions())
            if order.format == "gradescope":
                self._write_folders(self._results(waiting))
            elif order.format == "table":
                for result in self._results(waiting):
                    self.picture.add(result)
            elif order.output is not None:
                self._write_file(order.output, waiting)
            else:
                head = self.head
                for result in self._results(waiting):
                    out(head + self.text_of(result))
                    head = ""
                out(self.tail)
        self.picture.several = {name: count for name, count in self._counts.items() if count > 1}
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

    def _submissions(self) -> Iterator[Submission | None]:
        """The sheets, from the beginning; of a stream only the first time."""
        order = self.order
        others = (*(name for name in order.inputs if name not in order.sheets), order.output, order.feedback)
        beside = frozenset(Path(name).resolve() for name in others if name)
        return map(self.grader.whose, submissions(order.sheets, order.stdin, self.grader.knows, beside))

    def _not_empty(self, waiting: Iterator[Submission | None]) -> Iterator[Submission | None]:
        """The sheets, if there is one.

        Raises
        ------
        InputError
            There is no sheet; before a file is made.
        """
        first = next((sheet for sheet in waiting if sheet is not None), None)
        if first is not None:
            return chain([first], waiting)
        raise InputError(
            "There is no sheet in {places}. Give a folder of sheets, a .jsonl or .csv file, or - with JSON Lines on standard input.",
            places=Listed([Message("standard input") if path == "-" else path for path in self.order.sheets]),
        )

    def _total(self) -> int | None:
        """How many sheets there are, where all of them lie in files: these are read through once more."""
        if not all(Path(path).is_file() or Path(path).is_dir() for path in self.order.sheets):
            return None
        return sum(sheet is not None for sheet in self._submissions())

    # Results.

    def _results(self, waiting: Iterator[Submission | None]) -> Results:
        """Results of sheets that are marked now, in their order."""
        return map(self._finished, self._marked(waiting))

    def _marked(self, waiting: Iterator[Submission | None], done: int = 0) -> Results:
        """What marking comes to; `done` sheets have results from an earlier run."""
        order = self.order

        def left() -> int | None:
            total = self._total()
            return None if total is None else total - done

        results: Results = results_of(
            self.grader, waiting, self._open, jobs=order.jobs, dask=order.dask, left=left, tell=self.tell
        )
        return results if self.watched is None else self.watched(results, done, self._total)

    def _finished(self, result: Result) -> Result:
        """A new result with what concerns the student said, and counted; the student's page of feedback is written."""
        student, page = result["student"] or "", result.pop("feedback", None)
        self._counts[student] += 1
        again = None
        if self._counts[student] > 1:
            text = N_("This is sheet {number} from {student}; the earlier ones are kept and marked too.")
            again = Message(text, number=self._counts[student], student=student[:60])
            result["notes"] = [*result.get("notes", ()), again.text(self.order.language)]
        if "fault" in result:
            self.faults.append(student)
        if self.order.feedback is not None:
            if page is None:
                page = self.printers.unreadable(student, result.get("malformed") or result["fault"])
            self._write_page(
                student, page + ("" if again is None else self.printers.remark(again, self.order.language))
            )
        return result

    def _write_page(self, student: str, text: str) -> None:
        self._page = self._pages.take(student)
        path = self._page_path(self._page)
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

    def _write_file(self, output: str, waiting: Iterator[Submission | None]) -> None:
        """Result by result, each whole and at once: what is done is not lost when the run is stopped."""
        order = self.order
        ledger = Ledger(output, self._fingerprint(), order.problem.id, self.head, order.inputs, force=order.force)
        self._open.callback(ledger.close)
        again = None if "-" in order.sheets else self._students_again
        left = ledger.resume(self._known(waiting, has_earlier=ledger.has_earlier), again, self._seen)
        self._tell(ledger.said())
        if ledger.is_done:
            return
        self._write_in_turn(left, ledger)
        ledger.finish(self.tail)
        self._tell(ledger.said_at_the_end())

    def _tell(self, message: Message | None) -> None:
        if message is not None:
            self.tell(message)

    def _fingerprint(self) -> str:
        order = self.order
        variants = (order.problems, order.owners) if order.problems else ()
        how = order.language.code, self.grader.layout, order.format, dict(order.names)
        return fingerprint(__version__, order.problem, *how, *variants)

    def _known(self, waiting: Iterator[Submission | None], *, has_earlier: bool) -> Pairs:
        """Each sheet with what it is known by: its bytes, and where an earlier run has left something whose it is."""
        counts: Counter[str] = Counter()
        names = FileNames()
        for found in waiting:
            if found is None:
                yield None
                continue
            submission = found.carried()
            print = fingerprint(*submission.content_parts())
            if not has_earlier:
                yield submission, SheetKey(print)
                continue
            student = submission.student()
            counts[student] += 1
            page = names.take(student) if self.order.feedback is not None else None
            if page is not None and not self._page_path(page).is_file():
                page = _MISSING  # marked again, and written
            yield submission, SheetKey(print, student, counts[student], page)

    def _students_again(self) -> Iterator[str]:
        return (sheet.student() for sheet in self._submissions() if sheet is not None)

    def _seen(self, kept: Kept) -> None:
        """A result that stays is counted like one that was marked now."""
        student = kept.sheet.student or ""
        self._counts[student] += 1
        if self.order.feedback is not None:
            self._pages.take(student)

    def _write_in_turn(self, pairs: Pairs, ledger: Ledger) -> None:
        """Results that stay and results that are new, in the order of the sheets."""
        order: deque[tuple[SheetKey, Kept | None]] = deque()

        def to_mark() -> Iterator[Submission | None]:
            for pair in pairs:
                if pair is None:
                    yield None
                    continue
                submission, sheet = pair
                kept = ledger.take(sheet)
                order.append((sheet, kept))
                if kept is None:
                    yield submission

        def keep() -> None:
            while order and (kept := order[0][1]) is not None:
                ledger.copy(kept)
                self._seen(kept)
                order.popleft()

        for marked in self._marked(to_mark(), ledger.kept):
            keep()  # names and counts are taken in the order of the sheets
            sheet, _ = order.popleft()
            result = self._finished(marked)
            print = "" if "fault" in result else sheet.print
            own = SheetKey(print, result["student"], self._counts[result["student"] or ""], self._page)
            ledger.add(self.text_of(result).encode("utf-8", "replace"), own)
        keep()

    # Gradescope.

    def _write_folders(self, results: Results) -> None:
        """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where Gradescope's autograder looks for it."""
        output = self.order.output or ""
        is_file = output.lower().endswith(".json")
        folder, name = (Path(output).parent, Path(output).name) if is_file else (Path(output), "results.json")
        names = FileNames()

        def hand_back(place: Path, result: Result) -> None:
            make_folder(place, "-o")
            path = str(place / name)
            check_output(path, CLASS, self.order.inputs, force=self.order.force)
            write_whole(path, self.text_of(result).encode("utf-8"))

        first, second = next(results), next(results, None)
        if second is None:
            hand_back(folder, first)
        elif is_file:
            raise InputError(
                "-o {path}: there are several sheets, and Gradescope's results are one file each. Give a folder: -o results",
                path=output,
            )
        else:
            for result in chain((first, second), results):
                hand_back(folder / names.take(result["student"]), result)


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


class FileNames:
    """File names for students: letters, digits, - and _, so they stay in their folder; each is given once."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, student: str | None) -> str:
        plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in student or "")
        plain = plain.encode("utf-8", "replace")[:200].decode("utf-8", "ignore").strip("_") or "sheet"
        if plain.casefold() in _DEVICES:
            plain = f"{plain}_"
        key = plain.casefold()
        number = self._used.get(key, 0) + 1
        name = plain if number == 1 else f"{plain}-{number}"
        while number > 1 and name.casefold() in self._used:
            number += 1
            name = f"{plain}-{number}"
        self._used[key] = number
        self._used.setdefault(name.casefold(), 1)
        return name
