"""A class marked: from the places where sheets lie to results in order, by one process, many, or a cluster, and into files.

What an earlier run has left in the file is taken over where it is the same work (`ledger`). Nothing here prints: what is to be
said goes to `tell`, and results that are asked for on standard output to `out`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

from attncli import __version__
from attncli.core.message import N_, InputError, Language, Listed, Message, of_system
from attncli.core.outputs import CLASS, FEEDBACK, FEEDBACK_END, check_output, make_folder, write_whole
from attncli.core.record import Record
from attncli.marking import class_csv, junit
from attncli.marking.engines import Engine, Results, Work
from attncli.marking.ledger import BESIDE, Kept, Ledger, Pairs, SheetKey, fingerprint
from attncli.marking.marked import Marked
from attncli.marking.picture import Picture
from attncli.marking.places import submissions
from attncli.marking.report import json_text
from attncli.marking.submission import Submission
from attncli.problems.problem import NOTHING, Problem

FORMATS = ("table", "jsonl", "csv", "gradescope", "junit")
#: Formats that are written as the results come.
STREAMED = ("jsonl", "csv", "junit")

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


class Pages(Record):
    """How pages of feedback are written: of a marked sheet, of one that cannot be read, and a remark at the end of either."""

    marked: Callable[[Marked, Language], str]
    unreadable: Callable[[str, str], str]
    remark: Callable[[Message, Language], str]


class Grading:
    """One run over a class.

    Parameters
    ----------
    pages : how pages of feedback are written
    tell : what takes a remark for the person who gave the order
    watched : the same results, counted on a screen: called with them, how many are done, and how many there are if that is known
    """

    def __init__(
        self,
        order: Order,
        pages: Pages,
        tell: Callable[[Message], object],
        watched: Callable[[Results, int, Callable[[], int | None]], Results] | None = None,
    ) -> None:
        self.order = order
        self.pages = pages
        self.tell = tell
        self.watched = watched
        self.work = Work(
            order.problem, order.language, layout=order.layout, feedback=None if order.feedback is None else pages.marked,
            names=order.names,
            problems=order.problems, owners=order.owners,
        )  # fmt: skip
        self.grader = self.work.grader
        self.engine = Engine(self.work, order.jobs, order.dask, tell)
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

    def _fresh(self, waiting: Iterator[Submission | None], stack: ExitStack, done: int = 0) -> Results:
        """Results of sheets that are marked now, in their order."""
        results: Results = self.engine.results(waiting, stack, done, self._total)
        if self.watched is not None:
            results = self.watched(results, done, self._total)
        return map(self._counted, self._with_feedback(results))

    def _counted(self, result: dict[str, Any]) -> dict[str, Any]:
        if "fault" in result:
            self.faults.append(result["student"] or "")
        return result

    def _total(self) -> int | None:
        """How many sheets there are, where all of them lie in files: these are read through once more."""
        if not all(Path(path).is_file() or Path(path).is_dir() for path in self.order.sheets):
            return None
        return sum(sheet is not None for sheet in self.submissions())

    def _with_feedback(self, results: Results) -> Results:
        """What concerns the student is said, and each student's feedback is written to its own file."""
        for result in results:
            again = self._another(result)
            text = result.pop("feedback", None)
            if self.order.feedback is not None:
                self._page(result, text, again)
            yield result

    def _another(self, result: dict[str, Any]) -> Message | None:
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

    def _page(self, result: dict[str, Any], text: str | None, again: Message | None) -> None:
        if text is None:
            text = self.pages.unreadable(result["student"], result.get("malformed") or result["fault"])
        if again is not None:
            text += self.pages.remark(again, self.order.language)
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

    def _writer(self) -> tuple[str, Callable[[dict[str, Any]], str], str]:
        """What a file begins with, a result as text, and what it ends with."""
        steps = list(self.grader.marker.points)
        if self.order.format == "csv":
            return class_csv.header(steps), lambda result: class_csv.line(result, steps), ""
        if self.order.format == "junit":
            return junit.START, junit.suite, junit.END
        return "", lambda result: json_text(result) + "\n", ""

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

    def _in_turn(
        self, pairs: Pairs, ledger: Ledger, stack: ExitStack
    ) -> Iterator[Kept | tuple[SheetKey, dict[str, Any]]]:
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
        results = self.engine.results(to_mark(), stack, ledger.kept, self._total)
        if self.watched is not None:
            results = self.watched(results, ledger.kept, self._total)
        for result in results:
            while isinstance(order[0], Kept):
                yield order.popleft()  # type: ignore[misc]
            sheet = order.popleft()
            assert isinstance(sheet, SheetKey)
            yield sheet, self._counted(next(self._with_feedback(iter((result,)))))
        while order:
            kept = order.popleft()
            assert isinstance(kept, Kept)
            yield kept

    def _as_folders(self, results: Results) -> None:
        """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where Gradescope's autograder looks for it."""
        from attncli.marking.gradescope import results as as_results

        order = self.order
        output = order.output or ""
        alone = output.lower().endswith(".json")
        folder = Path(output).parent if alone else Path(output)
        names = FileNames()

        def hand_back(place: Path, result: dict[str, Any]) -> None:
            make_folder(place, "-o")
            path = str(place / (Path(output).name if alone else "results.json"))
            check_output(path, CLASS, order.inputs, force=order.force)
            write_whole(path, (json_text(as_results(result, order.language), indent=1) + "\n").encode("utf-8"))

        first: dict[str, Any] | None = None
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
