"""Sheets in, results out: by this process alone, several side by side, or a cluster, and the same results in the same order.

A result depends on its sheet and the problem alone, so `Grader.results` may be mapped over chunks of sheets anywhere.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar, cast

from attncli.core.limits import MOST_SECONDS
from attncli.core.message import N_, AttnError, InputError, Language, Message, of_library, of_system, where_it_failed
from attncli.core.record import Record
from attncli.marking.class_files import Submission
from attncli.marking.feedback import Marked
from attncli.marking.mark import Marker, marker_of
from attncli.problems.answers import Sheet, renamed
from attncli.problems.problem import NOTHING, Problem

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

#: Chunks that may be on their way at once, for every process, and for a cluster.
_AHEAD, _AHEAD_OF_A_CLUSTER = 4, 64
#: Seconds of work left below which further processes cost more than they save: each has to start.
WORTH = 3.0

T = TypeVar("T")

_WHOSE = N_(
    'It is not clear which problem this sheet answers: it names “{problem}”, and students.csv lists none for {student}. Write problem = "…", as on the empty sheet.'
)
_FAULT = N_(
    "attncli itself failed on this sheet ({what}). It has no points yet: mark it by hand, and please report it."
)
_SLOW = N_("This sheet took more than {limit} seconds of work, the limit. It has no points yet: mark it by hand.")
_LARGE = N_("This sheet needs more memory than there is. It has no points yet: mark it by hand.")
_UNREADABLE = N_("This sheet cannot be read ({reason}).")


class Result(TypedDict):
    """What is known of a sheet when it is marked (FORMATS).

    A sheet without steps is `malformed`, or the `fault` is ours; `feedback` is its page, until that is written.
    """

    schema: int
    problem: str
    student: str | None
    score: float | None
    max_score: float
    first_wrong: str | None
    steps: Sequence[Mapping[str, Any]]
    malformed: NotRequired[str]
    fault: NotRequired[str]
    notes: NotRequired[Sequence[str]]
    feedback: NotRequired[str]


class Grader:
    """Turns submissions into results.

    Parameters
    ----------
    problem : the exercise; of a set of variants any of them
    layout : which way tokens run on the sheets, where not as in the problem
    feedback : also write each student's feedback, by this function of a marked sheet
    names : names on the sheets that mean steps, where they say it otherwise than anybody would guess
    problems : of a set, whose variants ask for the same steps: all of them by id
    owners : the id of each student's variant, where the sheet itself does not name it
    """

    def __init__(
        self,
        problem: Problem,
        language: Language,
        layout: str | None = None,
        feedback: Callable[[Marked, Language], str] | None = None,
        names: Mapping[str, str] = NOTHING,
        problems: Mapping[str, Problem] = NOTHING,
        owners: Mapping[str, str] = NOTHING,
    ) -> None:
        self.problem = problem
        self.language = language
        self.layout = layout
        self.feedback = feedback
        self.names = names
        self.problems = problems
        self.owners = owners
        self.marker = marker_of(problem)
        self._markers: dict[str, Marker] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes and machines travels what it is made from."""
        rest = self.layout, self.feedback, self.names, self.problems, self.owners
        return _made, (self.problem, self.language.code, *rest)

    def knows(self, name: str) -> bool:
        """Whether this names a step or an input; in a set, also what says which problem a sheet answers."""
        is_problem = name == "problem" and bool(self.problems)
        return is_problem or name in self.names or self.marker.names.find(name) is not None

    def whose(self, submission: Submission | None) -> Submission | None:
        """The sheet with the student it belongs to, where that follows from more than its place: in a set, a file that is called
        like a variant is its student's; where nobody has it, whoever the sheet names."""
        if submission is None or submission.kind != "file" or submission.name not in self.problems:
            return submission
        owner = next((student for student, mine in self.owners.items() if mine == submission.name), None)
        return submission.changed(placed=False) if owner is None else submission.changed(name=owner, placed=True)

    def results(self, chunk: Sequence[Submission]) -> list[Result]:
        """The results of some sheets, in their order. A sheet that cannot be read or marked is one result without steps."""
        groups: dict[Marker | None, list[int]] = {}
        for at, submission in enumerate(chunk):
            groups.setdefault(self._marker_of(submission), []).append(at)
        found: dict[int, Result] = {}
        for marker, places in groups.items():
            found.update(zip(places, self._results(marker, [chunk[at] for at in places]), strict=True))
        return [found[at] for at in range(len(chunk))]

    def _marker_of(self, submission: Submission) -> Marker | None:
        """What marks a sheet: in a set, by the problem that it names, or its student's; None where that is not clear."""
        if not self.problems:
            return self.marker
        named = submission.problem()
        if named is None:
            own = submission.name in self.problems
            named = submission.name if own else self.owners.get(submission.student(), "")
        if named not in self._markers and named in self.problems:
            self._markers[named] = marker_of(self.problems[named])
        return self._markers.get(named)

    def _results(self, marker: Marker | None, submissions: Sequence[Submission]) -> list[Result]:
        """The results of sheets of one problem."""
        if marker is None:
            return [self._without_steps(self.marker, one, _not_clear(one)) for one in submissions]
        read = [_tried(self._read, one) for one in submissions]
        marked = iter(self._marked(marker, [sheet for sheet in read if isinstance(sheet, Sheet)]))
        found = [next(marked) if isinstance(sheet, Sheet) else sheet for sheet in read]
        return [
            self._without_steps(marker, one, result) if isinstance(result, NotMarked) else result
            for one, result in zip(submissions, found, strict=True)
        ]

    def _read(self, submission: Submission) -> Sheet:
        return renamed(submission.read(), self.names)

    def _marked(self, marker: Marker, sheets: Sequence[Sheet]) -> Sequence[Result | NotMarked]:
        if len(sheets) > 1:
            try:
                with within(MOST_SECONDS):
                    return self._together(marker, sheets)
            except (Exception, TooSlow):
                pass  # one of them does; which one, and why, comes out where each is marked by itself
        return [_tried(self._alone, marker, sheet) for sheet in sheets]

    def _together(self, marker: Marker, sheets: Sequence[Sheet]) -> list[Result]:
        return [self._result(marked) for marked in marker.mark_many(sheets, self.layout or marker.problem.layout)]

    def _alone(self, marker: Marker, sheet: Sheet) -> Result:
        return self._together(marker, [sheet])[0]

    def _result(self, marked: Marked) -> Result:
        result = cast("Result", marked.data(self.language))
        if self.feedback is not None:
            result["feedback"] = self.feedback(marked, self.language)
        return result

    def _without_steps(self, marker: Marker, submission: Submission, why: NotMarked) -> Result:
        """A sheet that cannot be read has no points; one that we failed at has none yet."""
        result: Result = {
            "schema": 1,
            "problem": marker.problem.id,
            "student": submission.student(),
            "score": None if why.is_fault else 0.0,
            "max_score": float(sum(marker.points.values())),
            "first_wrong": None,
            "steps": [],
        }
        result["fault" if why.is_fault else "malformed"] = why.said.text(self.language)
        return result


def _made(problem: Problem, language_code: str, *rest: Any) -> Grader:
    from attncli.locale import language

    return Grader(problem, language(language_code), *rest)


class NotMarked(Record):
    """Why a sheet has no marks."""

    said: Message
    is_fault: bool = False


def _not_clear(submission: Submission) -> NotMarked:
    problem, student = (submission.problem() or "")[:60], submission.student()[:60]
    return NotMarked(Message(_WHOSE, student=student, problem=problem))


def _tried(work: Callable[..., T], *args: object) -> T | NotMarked:
    """What the work at one sheet comes to, or why it comes to nothing."""
    try:
        with within(MOST_SECONDS):
            return work(*args)
    except AttnError as error:
        return NotMarked(error.message)
    except OSError as error:
        return NotMarked(Message(_UNREADABLE, reason=of_system(error)))
    except TooSlow:
        return NotMarked(Message(_SLOW, limit=MOST_SECONDS), is_fault=True)
    except (MemoryError, RecursionError):
        return NotMarked(Message(_LARGE), is_fault=True)
    except Exception as error:  # a fault of ours must not cost a teacher the whole class
        return NotMarked(Message(_FAULT, what=where_it_failed(error)), is_fault=True)


class TooSlow(BaseException):
    """The time is over. No `except Exception` on the way may swallow it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlow after so many seconds of work, where the system can: in the first thread, and not on Windows.

    What the machine does for others meanwhile does not count: a mark must not depend on who else is busy.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Who marks.

Chunks = Iterator[Sequence[Submission]]


def _side_by_side(parts: Chunks, submit: Callable[[Sequence[Submission]], Any], ahead: int) -> Iterator[Result]:
    """The results in order, with a bounded number of chunks on their way, so that memory stays flat.

    Parameters
    ----------
    submit : hands a chunk over; gives back what has its results when they are there
    """
    running: deque[Any] = deque()
    for chunk in parts:
        if chunk:
            running.append(submit(chunk))
        while running and (not chunk or len(running) >= ahead):
            yield from running.popleft().result()
    while running:
        yield from running.popleft().result()


def results_of(
    grader: Grader,
    waiting: Iterator[Submission | None],
    stack: ExitStack,
    *,
    jobs: int,
    dask: str | None,
    left: Callable[[], int | None],
    tell: Callable[[Message], object],
) -> Iterator[Result]:
    """The results of the sheets that wait.

    Parameters
    ----------
    stack : what keeps other processes, until it is closed
    jobs, dask : processes, or the address of a cluster
    left : how many sheets there are to mark, if that can be known
    tell : what takes a remark for the person who gave the order
    """
    parts = chunks(waiting, grader.marker.together)
    if dask is not None:
        return _by_cluster(grader, dask, parts, stack)
    if jobs == 1:
        return _one_by_one(grader, parts)
    return _shared(grader, parts, stack, jobs, left(), tell)


def _one_by_one(grader: Grader, parts: Chunks) -> Iterator[Result]:
    return (result for part in parts for result in grader.results(part))


def _shared(
    grader: Grader, parts: Chunks, stack: ExitStack, jobs: int, left: int | None, tell: Callable[[Message], object]
) -> Iterator[Result]:
    """By several processes, if they are worth their start: one process begins and sees how long a sheet takes."""
    if left is not None:
        marked, began, first = 0, time.perf_counter(), grader.marker.together
        for part in parts:
            yield from grader.results(part)
            marked += len(part)
            if marked >= 2 * first or not part:
                break
            began = time.perf_counter() if marked <= first else began  # the first ones also fill what is remembered
        each = (time.perf_counter() - began) / max(1, marked - first)
        if (left - marked) * each < WORTH:
            text = N_("-j {jobs}: one process is as quick for {count} sheets, so one marks them all.")
            tell(Message(text, jobs=jobs, count=left))
            yield from _one_by_one(grader, parts)
            return
    yield from _by_processes(grader, jobs, parts, stack)


def chunks(items: Iterable[Submission | None], size: int) -> Chunks:
    """The items in lists of up to `size`, read as they are needed; an empty list where the next has to be waited for."""
    found: list[Submission] = []
    for item in items:
        if item is not None:
            found.append(item)
        if found and (item is None or len(found) == size):
            yield found
            found = []
        if item is None:
            yield []
    if found:
        yield found


def processes(jobs: int, stack: ExitStack, start: Callable[..., None], *given: object) -> ProcessPoolExecutor:
    """Processes that work side by side until the stack is closed; each begins by calling `start` with what it is given."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=start, initargs=given)
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool


def begin() -> None:
    """Begin a process of a pool. Ctrl-C is the first process's business; when that one ends, however it does, this one ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    import os
    from multiprocessing import parent_process

    first = parent_process()
    if first is not None:
        first.join()
        os._exit(1)


#: In a process of the pool, what it marks with: it travels once.
_grader: Grader | None = None


def _begin_with(grader: Grader) -> None:
    global _grader
    _grader = grader
    begin()


def _do(chunk: Sequence[Submission]) -> list[Result]:
    assert _grader is not None
    return _grader.results(chunk)


def _by_processes(grader: Grader, jobs: int, parts: Chunks, stack: ExitStack) -> Iterator[Result]:
    from concurrent.futures.process import BrokenProcessPool

    pool = processes(jobs, stack, _begin_with, grader)
    try:
        yield from _side_by_side(parts, lambda chunk: pool.submit(_do, chunk), jobs * _AHEAD)
    except BrokenProcessPool:
        raise InputError(
            "-j: something ended one of the marking processes, perhaps because memory ran out. What "
            "is marked is kept; run the same command again, with fewer processes, to carry on."
        ) from None


def _by_cluster(grader: Grader, address: str, parts: Chunks, stack: ExitStack) -> Iterator[Result]:
    """By a Dask cluster, with the bytes of files in what it is handed: its machines need not see our disk."""
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
        shared = client.scatter(grader, broadcast=True)
    except Exception as error:  # Dask has many of its own
        raise InputError(
            "--dask {address}: no cluster answers there ({reason}). Give the scheduler's address, like tcp://127.0.0.1:8786.",
            address=address,
            reason=of_library(error),
        ) from None

    def submit(chunk: Sequence[Submission]) -> Any:
        return client.submit(Grader.results, shared, [submission.carried() for submission in chunk], pure=False)

    try:
        yield from _side_by_side(parts, submit, _AHEAD_OF_A_CLUSTER)
    except AttnError:
        raise  # of the sheets
    except Exception as error:
        raise InputError(
            "--dask {address}: the cluster gave up ({reason}). What is done is kept; give the same command again to go on.",
            address=address,
            reason=of_library(error),
        ) from None
