"""Who marks: this process alone, several side by side, or a cluster. The same results in the same order, whoever it is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from attncli.core.message import N_, InputError, Language, Message, of_library
from attncli.marking.marked import Marked
from attncli.marking.results import Grader, SetGrader
from attncli.marking.submission import Submission
from attncli.problems.problem import NOTHING, Problem

#: Sheets that travel to a worker together.
CHUNK = 256
#: Chunks that may be on their way at once, for every process, and for a cluster.
_AHEAD, _AHEAD_OF_A_CLUSTER = 4, 64
#: Sheets that one process marks first, to see how long a sheet takes.
_TRIED = 2 * CHUNK
#: Seconds of work left below which further processes cost more than they save: each has to start.
WORTH = 3.0

Results = Iterator[dict[str, Any]]
Handed = Callable[[], list[dict[str, Any]]]


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


class Engine:
    """Marks sheets in their order: one process, several side by side, or a cluster.

    Parameters
    ----------
    work : what is done with each chunk of sheets
    jobs, dask : processes, or the address of a cluster
    tell : what takes a remark for the person who gave the order
    """

    def __init__(self, work: Work, jobs: int, dask: str | None, tell: Callable[[Message], object]) -> None:
        self.work, self.jobs, self.dask, self.tell = work, jobs, dask, tell

    def results(
        self, waiting: Iterator[Submission | None], stack: ExitStack, done: int, total: Callable[[], int | None]
    ) -> Results:
        """The results of the sheets that wait.

        Parameters
        ----------
        stack : what keeps other processes, until it is closed
        done : sheets that an earlier run has marked
        total : how many there are, if that can be known
        """
        parts = chunks(waiting)
        if self.dask is not None:
            return _in_order(_dask(self.work, self.dask, stack), parts, _AHEAD_OF_A_CLUSTER)
        if self.jobs == 1:
            return _one_by_one(self.work, parts)
        return self._shared(parts, stack, done, total())

    def _shared(self, parts: Iterator[list[Submission]], stack: ExitStack, done: int, total: int | None) -> Results:
        """By several processes, if they are worth their start: one process begins and sees how long a sheet takes."""
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
                        jobs=self.jobs,
                        count=total,
                    )
                )
                yield from _one_by_one(self.work, parts)
                return
        yield from _in_order(_pool(self.work, self.jobs, stack), parts, self.jobs * _AHEAD)


def chunks(items: Iterable[Submission | None], size: int = CHUNK) -> Iterator[list[Submission]]:
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
            reason=of_library(error),
        ) from None

    def hand(chunk: list[Submission]) -> Handed:
        def result() -> list[dict[str, Any]]:
            try:
                found: list[dict[str, Any]] = future.result()
            except Exception as error:
                raise InputError(
                    "--dask {address}: the cluster gave up ({reason}). What is done is kept; give the same command again to go on.",
                    address=address,
                    reason=of_library(error),
                ) from None
            return found

        future = client.submit(_apply, shared, [submission.carried() for submission in chunk], pure=False)
        return result

    return hand


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
