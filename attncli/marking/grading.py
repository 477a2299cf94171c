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
        self.picture = Picture(list(self.grader.marker.points))
        self.names = FileNames()
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def submissions(self) -> Iterator[Submission | None]:
        """The sheets, from the beginning; of a stream only the first time."""
        order = self.order
        others = (*(name for name in order.inputs if name not in order.sheets), order.output, order.feedback)
        beside = frozenset(Path(name).resolve() for name in others if name)
        return map(self.grader.whose, submissions(order.sheets, order.stdin, self.grader.knows, beside))

    def run(self, out: Callable[[str], object]) -> Picture:
        """Mark everything and write it, results as they come; the picture of the class.

        Raises
        ------
        InputError
            There is no sheet at all; or something cannot be read, or written.
        """
        order = self.order
        self._check_places()
        with ExitStack() as stack:
            if order.format in STREAMED:
                self._streamed(out, stack)
            elif order.format == "gradescope":
                self._as_folders(self._not_empty(self._fresh(self.submissions(), stack)))
            else:
                for result in self._not_empty(self._fresh(self.submissions(), stack)):
                    self.picture.add(result)
        self.picture.several = {name: count for name, count in self.counts.items() if count > 1}
        self._say_what_happened()
        return self.picture

    def _check_places(self) -> None:
        order = self.order
        for option, place in (
            ("-o", order.output if order.format == "gradescope" else None),
            ("--feedback", order.feedback),
        ):
            if place is not None:
                check_output(place, CLASS, order.sheets, option=option, force=True)
        if order.output is not None and order.format in STREAMED and not Path(f"{order.output}{BESIDE}").exists():
            check_output(order.output, CLASS, order.inputs, force=order.force)
        if order.feedback is not None:
            make_folder(Path(order.feedback), "--feedback")

    def _say_what_happened(self) -> None:
        several = self.picture.several
        if several and self.order.format != "table":
            names = Listed([*list(several)[:_MOST_NAMES], *(["…"] if len(several) > _MOST_NAMES else [])])
            self.tell(
                Message(N_("More than one sheet of the same student; all are kept and marked: {names}."), names=names)
            )
        if self.faults:
            names = Listed([*self.faults[:_MOST_NAMES], *(["…"] if len(self.faults) > _MOST_NAMES else [])])
            self.tell(
                Message(
                    N_(
                        "attncli itself failed at sheets: {count} ({names}). They have no points; the reason stands in their results. Please report it (attncli {version})."
                    ),
                    count=len(self.faults),
                    names=names,
                    version=__version__,
                )
            )

    # Results.

    def _fresh(self, waiting: Iterator[Submission | None], stack: ExitStack) -> Results:
        """Results of sheets that are marked now, in their order."""
        return map(self._finished, self._marked(waiting, stack, 0))

    def _marked(self, waiting: Iterator[Submission | None], stack: ExitStack, done: int) -> Results:
        order = self.order

        def left() -> int | None:
            total = self._total()
            return None if total is None else total - done

        results: Results = results_of(
            self.grader, waiting, stack, jobs=order.jobs, dask=order.dask, left=left, tell=self.tell
        )
        return results if self.watched is None else self.watched(results, done, self._total)

    def _total(self) -> int | None:
        """How many sheets there are, where all of them lie in files: these are read through once more."""
        if not all(Path(path).is_file() or Path(path).is_dir() for path in self.order.sheets):
            return None
        return sum(sheet is not None for sheet in self.submissions())

    def _finished(self, result: Result) -> Result:
        """A new result with what concerns the student said, and counted; the student's page of feedback is written."""
        again = self._another(result)
        text = result.pop("feedback", None)
        if self.order.feedback is not None:
            self._page(result, text, again)
        if "fault" in result:
            self.faults.append(result["student"] or "")
        return result

    def _another(self, result: Result) -> Message | None:
        """Say of a second sheet of a student that it is one; both are kept."""
        student = result["student"] or ""
        self.counts[student] += 1
        if self.counts[student] == 1:
            return None
        said = Message(
            N_("This is sheet {number} of {student}; the earlier ones are kept and marked too."),
            number=self.counts[student],
            student=student[:60],
        )
        result["notes"] = [*result.get("notes", ()), said.text(self.order.language)]
        return said

    def _page(self, result: Result, text: str | None, again: Message | None) -> None:
        if text is None:
            text = self.printers.unreadable(result["student"], result.get("malformed") or result["fault"])
        if again is not None:
            text += self.printers.remark(again, self.order.language)
        folder, name = Path(self.order.feedback or ""), self.names.take(result["student"])
        path = folder / f"{name}.md"
        check_output(str(path), FEEDBACK, option="--feedback", force=self.order.force)
        # Not beside and renamed: a page that was cut off is written again, since its result is not there yet.
        try:
            path.write_bytes(text.encode("utf-8", "replace") + FEEDBACK_END)
        except OSError as error:
            raise InputError(
                "--feedback {path}: cannot be written ({reason}).", path=str(path), reason=of_system(error)
            ) from None
        self.page = name

    def _not_empty(self, results: Results) -> Results:
        """The results, if there is one.

        Raises
        ------
        InputError
            There is no sheet.
        """
        first = next(results, None)
        if first is None:
            raise self._nothing()
        return chain([first], results)

    def _nothing(self) -> InputError:
        return InputError(
            "There is no sheet in {places}. Give a folder of sheets, a .jsonl or .csv file, or - with JSON Lines on standard input.",
            places=Listed([Message(N_("standard input")) if path == "-" else path for path in self.order.sheets]),
        )

    # Formats.

    def _streamed(self, out: Callable[[str], object], stack: ExitStack) -> None:
        """Result by result, each whole and at once: what is done is not lost when the run is stopped."""
        order = self.order
        head, text_of, tail = self._writer()
        if order.output is None:
            for number, result in enumerate(self._not_empty(self._fresh(self.submissions(), stack))):
                out((head if number == 0 else "") + text_of(result))
            out(tail)
            return
        waiting = self.submissions()
        first = next((sheet for sheet in waiting if sheet is not None), None)
        if first is None:
            raise self._nothing()  # before a file is made
        waiting = chain([first], waiting)
        ledger = Ledger(order.output, self._fingerprint(), order.problem.id, head, order.inputs, force=order.force)
        stack.callback(ledger.close)
        again = None if "-" in order.sheets else self._students_again
        left = ledger.resume(self._known(waiting, ledger), again, self._seen)
        said = ledger.said()
        if said is not None:
            self.tell(said)
        if ledger.is_done:
            return
        for one in self._in_turn(left, ledger, stack):
            if isinstance(one, Kept):
                ledger.add(ledger.text(one), one.sheet)
                self._seen(one)
            else:
                sheet, result = one
                print = "" if "fault" in result else sheet.print
                page = self.page if order.feedback is not None else None
                own = SheetKey(print, result["student"], self.counts[result["student"] or ""], page)
                ledger.add(text_of(result).encode("utf-8", "replace"), own)
        ledger.finish(tail)
        said = ledger.said_at_the_end()
        if said is not None:
            self.tell(said)

    def _writer(self) -> tuple[str, Callable[[Result], str], str]:
        return self.printers.results(self.order.format, list(self.grader.marker.points), self.order.language)

    def _fingerprint(self) -> str:
        order = self.order
        return fingerprint(
            __version__,
            order.problem,
            order.language.code,
            self.grader.layout,
            order.format,
            dict(order.names),
            *((order.problems, order.owners) if order.problems else ()),
        )

    def _known(self, waiting: Iterator[Submission | None], ledger: Ledger) -> Pairs:
        """Each sheet with what it is known by: its bytes, and where an earlier run has left something whose it is."""
        return self._named(waiting, ledger.has_earlier)

    def _named(self, waiting: Iterator[Submission | None], earlier: bool) -> Pairs:
        counts: Counter[str] = Counter()
        names = FileNames()
        for found in waiting:
            if found is None:
                yield None
                continue
            submission = found.carried()
            print = fingerprint(*submission.content_parts())
            if not earlier:
                yield submission, SheetKey(print)
                continue
            student = submission.student()
            counts[student] += 1
            page = names.take(student) if self.order.feedback is not None else None
            if page is not None and not (Path(self.order.feedback or "") / f"{page}.md").is_file():
                page = _MISSING  # marked again, and written
            yield submission, SheetKey(print, student, counts[student], page)

    def _students_again(self) -> Iterator[str]:
        return (sheet.student() for sheet in self.submissions() if sheet is not None)

    def _seen(self, kept: Kept) -> None:
        """A result that stays is counted like one that was marked now."""
        student = kept.sheet.student or ""
        self.counts[student] += 1
        if self.order.feedback is not None:
            self.names.take(student)

    def _in_turn(self, pairs: Pairs, ledger: Ledger, stack: ExitStack) -> Iterator[Kept | tuple[SheetKey, Result]]:
        """Results that stay and results that are new, in the order of the sheets."""
        order: deque[Kept | SheetKey] = deque()

        def to_mark() -> Iterator[Submission | None]:
            for pair in pairs:
                if pair is None:
                    yield None
                    continue
                submission, sheet = pair
                kept = ledger.take(sheet)
                order.append(sheet if kept is None else kept)
                if kept is None:
                    yield submission

        # Names and counts are taken in order: a result that stays comes before the next one is marked.
        for result in self._marked(to_mark(), stack, ledger.kept):
            while isinstance(order[0], Kept):
                yield order.popleft()  # type: ignore[misc]
            sheet = order.popleft()
            assert isinstance(sheet, SheetKey)
            yield sheet, self._finished(result)
        while order:
            kept = order.popleft()
            assert isinstance(kept, Kept)
            yield kept

    def _as_folders(self, results: Results) -> None:
        """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where Gradescope's autograder looks for it."""
        order, (_, text_of, _) = self.order, self._writer()
        output = order.output or ""
        alone = output.lower().endswith(".json")
        folder = Path(output).parent if alone else Path(output)
        names = FileNames()

        def hand_back(place: Path, result: Result) -> None:
            make_folder(place, "-o")
            path = str(place / (Path(output).name if alone else "results.json"))
            check_output(path, CLASS, order.inputs, force=order.force)
            write_whole(path, text_of(result).encode("utf-8"))

        first: Result | None = None
        for number, result in enumerate(results):
            if number == 0:
                first = result
                continue
            if alone:
                raise InputError(
                    "-o {path}: there are several sheets, and Gradescope's results are one file each. Give a folder: -o results",
                    path=output,
                )
            if first is not None:
                hand_back(folder / names.take(first["student"]), first)
                first = None
            hand_back(folder / names.take(result["student"]), result)
        if first is not None:
            hand_back(folder, first)


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
