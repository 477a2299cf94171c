"""A class marked: from the places where sheets lie to results in order, by one process, many, or a cluster, and into files.

What an earlier run has left in the file is taken over where it is the same work (`earlier`). Nothing here prints: what is to be
said goes to `tell`, and results that are asked for on standard output to `out`.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any

from attncli import __version__
from attncli.core.message import N_, InputError, Language, Listed, Message
from attncli.core.outputs import CLASS, FEEDBACK, FEEDBACK_END, check_output, make_folder, write_whole
from attncli.core.reasons import of_system
from attncli.core.record import Record
from attncli.marking import class_csv, junit
from attncli.marking.earlier import Kept, Ledger, Pairs, Sheet, fingerprint
from attncli.marking.grade import CHUNK, Grader, Picture, SetGrader, chunks
from attncli.marking.marked import Marked
from attncli.marking.report import json_text
from attncli.marking.submissions import BESIDE, Submission, submissions
from attncli.problems.problem import NOTHING, Problem

FORMATS = ("table", "jsonl", "csv", "gradescope", "junit")
#: Formats that are written as the results come.
STREAMED = ("jsonl", "csv", "junit")

#: Chunks that may be on their way at once, for every process.
_AHEAD = 4
#: Sheets that one process marks first, to see how long a sheet takes.
_TRIED = 2 * CHUNK
#: Seconds of work left below which further processes cost more than they save: each has to start.
WORTH = 3.0
#: The name of a page that is not there: no page has it.
_MISSING = "?"
#: Names that a message lists.
_MOST_NAMES = 5

Results = Iterator[dict[str, Any]]
Handed = Callable[[], list[dict[str, Any]]]


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
        self.picture = Picture(list(self.grader.marker.points))
        self.names = Names()
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
        results: Results = self._mapped(waiting, stack, done)
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
                own = Sheet(print, result["student"], self.counts[result["student"] or ""], page)
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
        names = Names()
        for found in waiting:
            if found is None:
                yield None
                continue
            submission = found.carried()
            print = fingerprint(*submission.content_parts())
            if not earlier:
                yield submission, Sheet(print)
                continue
            student = submission.student()
            counts[student] += 1
            page = names.take(student) if self.order.feedback is not None else None
            if page is not None and not (Path(self.order.feedback or "") / f"{page}.md").is_file():
                page = _MISSING  # marked again, and written
            yield submission, Sheet(print, student, counts[student], page)

    def _students_again(self) -> Iterator[str]:
        return (sheet.student() for sheet in self.submissions() if sheet is not None)

    def _seen(self, kept: Kept) -> None:
        """A result that stays is counted like one that was marked now."""
        student = kept.sheet.student or ""
        self.counts[student] += 1
        if self.order.feedback is not None:
            self.names.take(student)

    def _in_turn(self, pairs: Pairs, ledger: Ledger, stack: ExitStack) -> Iterator[Kept | tuple[Sheet, dict[str, Any]]]:
        """Results that stay and results that are new, in the order of the sheets."""
        order: deque[Kept | Sheet] = deque()

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
        results = self._mapped(to_mark(), stack, ledger.kept)
        if self.watched is not None:
            results = self.watched(results, ledger.kept, self._total)
        for result in results:
            while isinstance(order[0], Kept):
                yield order.popleft()  # type: ignore[misc]
            sheet = order.popleft()
            assert isinstance(sheet, Sheet)
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
        names = Names()

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

    # Engines.

    def _mapped(self, waiting: Iterator[Submission | None], stack: ExitStack, done: int) -> Results:
        """Results in the order of the sheets, from one process, many, or a cluster."""
        order, work = self.order, self.work
        if order.dask is not None:
            return _in_order(_dask(work, order.dask, stack), chunks(waiting), 64)
        if order.jobs == 1:
            return _one_by_one(work, chunks(waiting))
        return self._shared(chunks(waiting), stack, done)

    def _shared(self, parts: Iterator[list[Submission]], stack: ExitStack, done: int) -> Results:
        """By several processes, if they are worth their start: one process begins and sees how long a sheet takes."""
        total = self._total()
        if total is not None:
            marked, began = 0, time.perf_counter()
            for part in parts:
                yield from self.work(part)
                marked += len(part)
                if marked >= _TRIED or not part:
                    break
                began = time.perf_counter() if marked <= CHUNK else began  # the first ones also fill what is remembered
            each = (time.perf_counter() - began) / max(1, marked - CHUNK)
            if (total - done - marked) * each < WORTH:
                self.tell(
                    Message(
                        N_("-j {jobs}: one process is as quick for {count} sheets, so one marks them all."),
                        jobs=self.order.jobs,
                        count=total,
                    )
                )
                yield from _one_by_one(self.work, parts)
                return
        yield from _in_order(_pool(self.work, self.order.jobs, stack), parts, self.order.jobs * _AHEAD)


class Work:
    """What a worker needs: the problem and the language. It travels to other processes and machines."""

    def __init__(
        self,
        problem: Problem,
        language: Language,
        *,
        layout: str | None,
        feedback: Callable[[Marked, Language], str] | None,
        names: Mapping[str, str],
        problems: Mapping[str, Problem] = NOTHING,
        owners: Mapping[str, str] = NOTHING,
    ) -> None:
        self.problems = dict(problems)
        self.owners = dict(owners)
        self.names = dict(names)
        self.problem = problem
        self.language = language.code
        self.layout = layout
        self.feedback = feedback
        self._grader: Grader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_grader": None}

    @property
    def grader(self) -> Grader:
        """Made once in every process."""
        if self._grader is None:
            from attncli.locale import language

            how = language(self.language), self.layout, self.feedback, self.names
            if self.problems:
                self._grader = SetGrader(self.problems, self.owners, *how)
            else:
                self._grader = Grader(self.problem, *how)
        return self._grader

    def __call__(self, chunk: list[Submission]) -> list[dict[str, Any]]:
        """The results of some sheets: depends on them alone, so any engine may map it."""
        return self.grader.results(chunk)


def _one_by_one(work: Work, parts: Iterator[list[Submission]]) -> Results:
    return (result for part in parts for result in work(part))


_work: Work | None = None


def _start(work: Work) -> None:
    """Keep the work in a process of the pool, so that it travels once. Ctrl-C is the first process's business; when that one ends,
    however it does, this one ends too."""
    import signal
    import threading

    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    import os
    from multiprocessing import parent_process

    first = parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _do(chunk: list[Submission]) -> list[dict[str, Any]]:
    assert _work is not None
    return _work(chunk)


def _pool(work: Work, jobs: int, stack: ExitStack) -> Callable[[list[Submission]], Handed]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_start, initargs=(work,))
    stack.callback(pool.shutdown, cancel_futures=True)

    def hand(chunk: list[Submission]) -> Handed:
        def result() -> list[dict[str, Any]]:
            try:
                return future.result()
            except BrokenProcessPool:
                raise _broken_pool() from None

        try:
            future = pool.submit(_do, chunk)
        except BrokenProcessPool:
            raise _broken_pool() from None
        return result

    return hand


def _broken_pool() -> InputError:
    return InputError(
        "-j: something ended one of the marking processes, perhaps because memory ran out. What "
        "is marked is kept; run the same command again, with fewer processes, to carry on."
    )


def _dask(work: Work, address: str, stack: ExitStack) -> Callable[[list[Submission]], Handed]:
    """Chunks handed to a cluster, with the bytes of files in them: its machines need not see our disk."""
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ModuleNotFoundError:
        raise InputError(
            "--dask needs Dask, which is not installed. Install it with: pip install 'attncli[dask]'"
        ) from None
    import logging

    connect: Any = Client
    resolve: Any = resolve_address
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        resolve(address)  # a client that fails on this would hang at exit
        client = stack.enter_context(connect(address, timeout=10, set_as_default=False))
        shared = client.scatter(work, broadcast=True)
    except Exception as error:  # Dask has many of its own
        raise InputError(
            "--dask {address}: no cluster answers there ({reason}). Give the scheduler's address, like tcp://127.0.0.1:8786.",
            address=address,
            reason=_reason(error),
        ) from None

    def hand(chunk: list[Submission]) -> Handed:
        def result() -> list[dict[str, Any]]:
            try:
                found: list[dict[str, Any]] = future.result()
            except Exception as error:
                raise InputError(
                    "--dask {address}: the cluster gave up ({reason}). What is done is kept; give the same command again to go on.",
                    address=address,
                    reason=_reason(error),
                ) from None
            return found

        future = client.submit(_apply, shared, [submission.carried() for submission in chunk], pure=False)
        return result

    return hand


def _reason(error: Exception) -> str:
    return str(error)[:120] or type(error).__name__


def _apply(work: Work, chunk: list[Submission]) -> list[dict[str, Any]]:
    return work(chunk)


def _in_order(hand: Callable[[list[Submission]], Handed], parts: Iterator[list[Submission]], ahead: int) -> Results:
    """Results in order, with at most `ahead` chunks on their way, so that memory stays flat."""
    running: deque[Handed] = deque()
    for chunk in parts:
        if chunk:
            running.append(hand(chunk))
        while running and (not chunk or len(running) >= ahead):
            yield from running.popleft()()
    while running:
        yield from running.popleft()()


#: Names that Windows keeps for devices, with whatever ending.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{name}{i}" for name in ("com", "lpt") for i in range(10))})


class Names:
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


__all__ = ["BESIDE", "FORMATS", "STREAMED", "Grading", "Names", "Order"]
