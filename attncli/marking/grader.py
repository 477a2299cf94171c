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
from functools import partial
from typing import Any

from attncli.core.limits import MOST_SECONDS
from attncli.core.message import N_, AttnError, InputError, Language, Message, of_library, of_system, where_it_failed
from attncli.core.record import Record
from attncli.marking.feedback import Marked
from attncli.marking.mark import marker_of
from attncli.marking.sheets import Submission
from attncli.problems.answers import Sheet, renamed
from attncli.problems.problem import NOTHING, Problem

#: Chunks that may be on their way at once, for every process, and for a cluster.
_AHEAD, _AHEAD_OF_A_CLUSTER = 4, 64
#: Seconds of work left below which further processes cost more than they save: each has to start.
WORTH = 3.0

#: What is known of a sheet when it is marked, by the field names of FORMATS.
Result = dict[str, Any]

_WHOSE = N_(
    'It is not clear which problem this sheet answers: it names “{problem}”, and students.csv lists none for {student}. Write problem = "…", as on the empty sheet.'
)
_FAULT = N_(
    "attncli itself failed on this sheet ({what}). It has no points yet: mark it by hand, and please report it."
)
_SLOW = N_("This sheet took more than {limit} seconds of work, the limit. It has no points yet: mark it by hand.")
_LARGE = N_("This sheet needs more memory than there is. It has no points yet: mark it by hand.")
_UNREADABLE = N_("This sheet cannot be read ({reason}).")


class Grader:
    """Turns submissions into results.

    Parameters
    ----------
    layout : which way tokens run on the sheets, where not as in the problem
    feedback : also write each student's feedback, by this function of a marked sheet
    names : names on the sheets that mean steps, where they say it otherwise than anybody would guess
    """

    def __init__(
        self,
        problem: Problem,
        language: Language,
        layout: str | None = None,
        feedback: Callable[[Marked, Language], str] | None = None,
        names: Mapping[str, str] = NOTHING,
    ) -> None:
        self.marker = marker_of(problem)
        self.language = language
        self.layout = layout or problem.layout
        self.feedback = feedback
        self.names = names
        self.max_score = float(sum(self.marker.points.values()))
        self._exercise: tuple[Any, ...] = (problem,)
        self._how = layout, feedback, dict(names)

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes and machines travels what it is made from."""
        return _made, (type(self), self._exercise, self.language.code, self._how)

    def knows(self, name: str) -> bool:
        """Whether this names a step or an input."""
        return name in self.names or self.marker.names.find(name) is not None

    def whose(self, submission: Submission | None) -> Submission | None:
        """The sheet with the student it belongs to, where that follows from more than its place."""
        return submission

    def results(self, chunk: Sequence[Submission]) -> list[Result]:
        """The results of some sheets, in their order. A sheet that cannot be read or marked is one result without steps."""
        read = [self._tried(submission, partial(self._sheet, submission)) for submission in chunk]
        readable = [
            (submission, sheet) for submission, sheet in zip(chunk, read, strict=True) if isinstance(sheet, Sheet)
        ]
        marked = iter(self._results(readable))
        return [next(marked) if isinstance(sheet, Sheet) else sheet for sheet in read]

    def _sheet(self, submission: Submission) -> Sheet:
        return renamed(submission.read(), self.names)

    def _results(self, readable: Sequence[tuple[Submission, Sheet]]) -> list[Result]:
        if len(readable) > 1:
            try:
                with within(MOST_SECONDS):
                    return self._marked([sheet for _, sheet in readable])
            except (Exception, TooSlow):
                pass  # one of them does; which one, and why, comes out where each is marked by itself
        return [self._tried(submission, partial(self._marked_alone, sheet)) for submission, sheet in readable]

    def _marked(self, sheets: Sequence[Sheet]) -> list[Result]:
        return [self._result(marked) for marked in self.marker.mark_many(sheets, self.layout)]

    def _marked_alone(self, sheet: Sheet) -> Result:
        return self._marked([sheet])[0]

    def _tried(self, submission: Submission, work: Callable[[], Any]) -> Any:
        """What the work comes to, or a result that says why there is none."""
        try:
            with within(MOST_SECONDS):
                return work()
        except AttnError as error:
            return self.without_steps(submission, malformed=error.message)
        except OSError as error:
            return self.without_steps(submission, malformed=Message(_UNREADABLE, reason=of_system(error)))
        except TooSlow:
            return self.without_steps(submission, fault=Message(_SLOW, limit=MOST_SECONDS))
        except (MemoryError, RecursionError):
            return self.without_steps(submission, fault=Message(_LARGE))
        except Exception as error:  # a fault of ours must not cost a teacher the whole class
            return self.without_steps(submission, fault=Message(_FAULT, what=where_it_failed(error)))

    def _result(self, marked: Marked) -> Result:
        page = {} if self.feedback is None else {"feedback": self.feedback(marked, self.language)}
        return {**marked.data(self.language), **page}

    def without_steps(self, submission: Submission, **why: Message) -> Result:
        """A sheet that cannot be read has no points; one that we failed at has none yet."""
        return {
            "schema": 1,
            "problem": self.marker.problem.id,
            "student": submission.student(),
            "score": None if "fault" in why else 0.0,
            "max_score": self.max_score,
            "first_wrong": None,
            "steps": [],
            **{name: message.text(self.language) for name, message in why.items()},
        }


def _made(kind: Callable[..., Grader], exercise: Sequence[Any], language_code: str, how: Sequence[Any]) -> Grader:
    from attncli.locale import language

    return kind(*exercise, language(language_code), *how)


class SetGrader(Grader):
    """The same for sheets of several problems that ask for the same steps: each is marked by its own.

    Parameters
    ----------
    problems : by id
    owners : the id of each student's problem, where the sheet itself does not name it
    """

    def __init__(self, problems: Mapping[str, Problem], owners: Mapping[str, str], *how: Any) -> None:
        super().__init__(next(iter(problems.values())), *how)
        self._exercise = dict(problems), dict(owners)
        self.problems = problems
        self.owners = owners
        self._graders: dict[str, Grader] = {}

    def knows(self, name: str) -> bool:
        return name == "problem" or super().knows(name)

    def results(self, chunk: Sequence[Submission]) -> list[Result]:
        found: dict[int, Result] = {}
        groups: dict[str, list[int]] = {}
        for at, sheet in enumerate(chunk):
            problem_id = self._problem_of(sheet)
            if problem_id is None:
                why = Message(_WHOSE, student=sheet.student()[:60], problem=(sheet.problem() or "")[:60])
                found[at] = self.without_steps(sheet, malformed=why)
            else:
                groups.setdefault(problem_id, []).append(at)
        for problem_id, places in groups.items():
            if problem_id not in self._graders:
                self._graders[problem_id] = Grader(self.problems[problem_id], self.language, *self._how)
            results = self._graders[problem_id].results([chunk[at] for at in places])
            found.update(zip(places, results, strict=True))
        return [found[at] for at in range(len(chunk))]

    def whose(self, submission: Submission | None) -> Submission | None:
        """A file that is called like a sheet of the set is that student's; where nobody has it, whoever it names."""
        if submission is None or submission.kind != "file" or submission.name not in self.problems:
            return submission
        owner = next((student for student, mine in self.owners.items() if mine == submission.name), None)
        return submission.changed(placed=False) if owner is None else submission.changed(name=owner, placed=True)

    def _problem_of(self, sheet: Submission) -> str | None:
        """Which problem a sheet answers: the one it names, or its student's."""
        named = sheet.problem()
        if named is not None:
            return named if named in self.problems else None
        return sheet.name if sheet.name in self.problems else self.owners.get(sheet.student())


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


class Elsewhere(Record):
    """Where sheets are marked by other processes.

    Parameters
    ----------
    submit : hands a chunk over; gives back what has its results when they are there
    ahead : chunks that may be on their way at once
    faults : what may go wrong there, and how it is said
    """

    submit: Callable[[Sequence[Submission]], Any]
    ahead: int
    faults: type[Exception]
    told: Callable[[Exception], InputError]

    def results(self, parts: Chunks) -> Iterator[Result]:
        """The results in order, with a bounded number of chunks on their way, so that memory stays flat."""
        running: deque[Any] = deque()
        for chunk in parts:
            if chunk:
                running.append(self._safely(self.submit, chunk))
            while running and (not chunk or len(running) >= self.ahead):
                yield from self._safely(running.popleft().result)
        while running:
            yield from self._safely(running.popleft().result)

    def _safely(self, work: Callable[..., Any], *args: Any) -> Any:
        try:
            return work(*args)
        except self.faults as error:
            raise self.told(error) from None


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
        return _cluster(grader, dask, stack).results(parts)
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
    yield from _pool(grader, jobs, stack).results(parts)


def chunks(items: Iterable[Submission | None], size: int) -> Chunks:
    """The items in lists of up to `size`, read as they are needed; an empty list where the next has to be waited for."""
    found: list[Submission] = []
    for item in items:
        if item is not None:
            found.append(item)
        elif found:
            yield found
            found = []
        if item is None:
            yield []
        elif len(found) == size:
            yield found
            found = []
    if found:
        yield found


#: In a process of the pool, what it marks with: it travels once.
_grader: Grader | None = None


def _start(grader: Grader) -> None:
    """Begin a process of the pool. Ctrl-C is the first process's business; when that one ends, however it does, this one
    ends too."""
    global _grader
    _grader = grader
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    import os
    from multiprocessing import parent_process

    first = parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _do(chunk: Sequence[Submission]) -> list[Result]:
    assert _grader is not None
    return _grader.results(chunk)


def _pool(grader: Grader, jobs: int, stack: ExitStack) -> Elsewhere:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_start, initargs=(grader,))
    stack.callback(pool.shutdown, cancel_futures=True)
    broken = InputError(
        "-j: something ended one of the marking processes, perhaps because memory ran out. What "
        "is marked is kept; run the same command again, with fewer processes, to carry on."
    )
    return Elsewhere(lambda chunk: pool.submit(_do, chunk), jobs * _AHEAD, BrokenProcessPool, lambda error: broken)


def _results(grader: Grader, chunk: Sequence[Submission]) -> list[Result]:
    return grader.results(chunk)


def _cluster(grader: Grader, address: str, stack: ExitStack) -> Elsewhere:
    """Chunks handed to a Dask cluster, with the bytes of files in them: its machines need not see our disk."""
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
        return client.submit(_results, shared, [submission.carried() for submission in chunk], pure=False)

    def told(error: Exception) -> InputError:
        return InputError(
            "--dask {address}: the cluster gave up ({reason}). What is done is kept; give the same command again to go on.",
            address=address,
            reason=of_library(error),
        )

    return Elsewhere(submit, _AHEAD_OF_A_CLUSTER, Exception, told)
