"""What `attncli grade` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from attncli.cli._calculation import problem_of, whole_number
from attncli.cli._check import mapping_for
from attncli.cli._output import write_file
from attncli.cli._say import Say
from attncli.marking.earlier import kept
from attncli.marking.grade import Grader, Picture, chunks, sheet_layout
from attncli.marking.report import json_text
from attncli.marking.submissions import Submission, submissions, unknown_columns
from attncli.message import N_, InputError, Message, unknown
from attncli.problems.problem import Problem
from attncli.reasons import of_system
from attncli.record import Record

FORMATS = ("table", "jsonl", "csv", "gradescope", "junit")
_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".xml": "junit"}
#: Formats that are written as the results come.
_STREAMED = ("jsonl", "csv")
#: Chunks that may be on their way at once, for every process.
_AHEAD = 4

Results = Iterator[dict[str, Any]]


def grade(
    say: Say,
    *,
    exercise: str,
    sheets: Sequence[str],
    format: str | None,
    output: str | None,
    feedback: str | None,
    map_: Sequence[str] | None,
    jobs: str | None,
    dask: str | None,
    layout: str | None,
    lang: str | None,
) -> int:
    """Mark a class and write the results; the exit status is 0 whatever the marks are."""
    chosen = format
    if chosen is None:
        chosen = _ENDINGS.get(Path(output).suffix.lower(), "table") if output else "table"
    if chosen not in FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(FORMATS))
    if chosen == "gradescope" and output is None:
        raise InputError("Gradescope's results are one file a student. Give a folder: -o results")
    if exercise == "-" and "-" in sheets:
        raise InputError("Only one input can come from standard input (-). Give the others as files.")
    processes = whole_number("-j", jobs, 1, 256) or 1
    problem = problem_of(exercise, {}, say)
    meant = mapping_for(problem, map_ or ())
    work = Work(problem, say.language.code, layout=sheet_layout(layout), feedback=feedback is not None, names=meant)
    grader = work.grader
    all_sheets = partial(submissions, sheets, _stdin(), grader.knows, _beside(exercise, output, feedback))
    waiting = all_sheets()
    for path in sheets:
        if path.lower().endswith(".csv") and Path(path).is_file():
            strange = unknown_columns(path, grader.knows, grader.marker.ids)
            if strange is not None:
                say.error(strange)
    names = Names()
    target = Target(output, grader, *_kept(say, output, chosen, waiting, grader, names if feedback else None))
    with ExitStack() as stack:
        results = _mapped(work, waiting, processes, dask, stack)
        # Lines that run over the screen by themselves show how far it is.
        if _on_terminal(sys.stderr) and not (chosen in _STREAMED and output is None and _on_terminal(sys.stdout)):
            results = _progress(results, stack, target.count, _total(sheets, all_sheets))
        if feedback is not None:
            results = _with_feedback(results, Path(feedback), names)
        _WRITERS[chosen](say, results, target)
    return 0


class Target(Record):
    """Where results go.

    Parameters
    ----------
    count, end : results that an earlier run has left there, and where in the file they end
    """

    output: str | None
    grader: Grader
    count: int = 0
    end: int = 0


class Work:
    """What a worker needs: the problem and the language. It travels to other processes and machines."""

    def __init__(
        self, problem: Problem, language: str, *, layout: str | None, feedback: bool, names: Mapping[str, str]
    ) -> None:
        self.problem = problem
        self.language = language
        self.layout = layout
        self.feedback = feedback
        self.names = names
        self._grader: Grader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_grader": None}

    @property
    def grader(self) -> Grader:
        """Made once in every process."""
        if self._grader is None:
            from attncli.locale import language

            feedback = _feedback_text if self.feedback else None
            self._grader = Grader(self.problem, language(self.language), self.layout, feedback, self.names)
        return self._grader

    def __call__(self, chunk: list[Submission]) -> list[dict[str, Any]]:
        """The results of some sheets: depends on them alone, so any engine may map it."""
        return self.grader.results(chunk)


def _feedback_text(marked: Any, language: Any) -> str:
    from attncli.render._marks import as_markdown

    return as_markdown(marked, language)


def _stdin() -> IO[bytes]:
    import io

    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def _beside(*names: str | None) -> frozenset[Path]:
    """Files and folders of this run, which may lie among the sheets."""
    return frozenset(Path(name).resolve() for name in names if name)


def _kept(
    say: Say,
    output: str | None,
    format: str,
    waiting: Iterator[Submission | None],
    grader: Grader,
    names: Names | None,
) -> tuple[int, int]:
    """What an earlier run has left in the output; said, since it is not marked again."""
    if output is None:
        return 0, 0
    count, end = kept(
        output,
        format,
        waiting,
        problem=grader.marker.problem.id,
        steps=list(grader.marker.points),
        seen=str if names is None else names.take,
    )
    if count:
        say.error(
            Message(
                N_(
                    "{path} already holds {count} results from an earlier run; carrying on from "
                    "there. Delete it to start over."
                ),
                path=output,
                count=count,
            )
        )
    return count, end


_work: Work | None = None


def _start(work: Work) -> None:
    """Keep the work in a process of the pool, so that it travels once; stopping is the first process's business."""
    import signal

    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _do(chunk: list[Submission]) -> list[dict[str, Any]]:
    assert _work is not None
    return _work(chunk)


def _mapped(work: Work, waiting: Iterator[Submission | None], jobs: int, dask: str | None, stack: ExitStack) -> Results:
    """Results in the order of the sheets, from one process, many, or a cluster."""
    if dask is not None:
        return _in_order(_dask(work, dask, stack), waiting, 64)
    if jobs == 1:
        return (result for chunk in chunks(waiting) for result in work(chunk))
    return _in_order(_pool(work, jobs, stack), waiting, jobs * _AHEAD)


Handed = Callable[[], list[dict[str, Any]]]


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
    return f"{type(error).__name__}: {error}"[:120]


def _apply(work: Work, chunk: list[Submission]) -> list[dict[str, Any]]:
    return work(chunk)


def _in_order(hand: Callable[[list[Submission]], Handed], waiting: Iterator[Submission | None], ahead: int) -> Results:
    """Results in order, with at most `ahead` chunks on their way, so that memory stays flat."""
    from collections import deque

    running: deque[Handed] = deque()
    for chunk in chunks(waiting):
        if chunk:
            running.append(hand(chunk))
        while running and (not chunk or len(running) >= ahead):
            yield from running.popleft()()
    while running:
        yield from running.popleft()()


def _on_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def _total(sheets: Sequence[str], all_sheets: Callable[[], Iterator[Submission | None]]) -> int | None:
    """How many sheets there are, where all of them lie in files: these are read through once more."""
    if not all(Path(path).is_file() or Path(path).is_dir() for path in sheets):
        return None
    return sum(sheet is not None for sheet in all_sheets())


def _progress(results: Results, stack: ExitStack, done: int, total: int | None) -> Results:
    """The same with a progress bar on standard error."""
    from attncli.render._progress import counting

    return counting(results, sys.stderr, stack, done, total)


def _with_feedback(results: Results, folder: Path, names: Names) -> Results:
    """Each student's feedback written to its own file; the result goes on without it."""
    from attncli.render._marks import unreadable_as_markdown

    _make(folder, "--feedback")
    for result in results:
        text = result.pop("feedback", None)
        if text is None:
            text = unreadable_as_markdown(result["student"], result["malformed"])
        path = folder / f"{names.take(result['student'])}.md"
        # Not beside and renamed: a page that was cut off is written again, since its result is not there yet.
        try:
            path.write_bytes(text.encode("utf-8", "replace"))
        except OSError as error:
            raise InputError(
                "--feedback {path}: cannot be written ({reason}).", path=str(path), reason=of_system(error)
            ) from None
        yield result


class Names:
    """File names for students: letters, digits, - and _, so they stay in their folder; each is given once."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, student: str | None) -> str:
        plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in student or "")
        plain = plain.encode("utf-8", "replace")[:200].decode("utf-8", "ignore").strip("_") or "sheet"
        key = plain.casefold()
        number = self._used.get(key, 0) + 1
        name = plain if number == 1 else f"{plain}-{number}"
        while number > 1 and name.casefold() in self._used:
            number += 1
            name = f"{plain}-{number}"
        self._used[key] = number
        self._used.setdefault(name.casefold(), 1)
        return name


def _make(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "{option} {path}: this folder cannot be created ({reason}).",
            option=option,
            path=str(folder),
            reason=of_system(error),
        ) from None


def _table(say: Say, results: Results, target: Target) -> None:
    from attncli.cli._terminal import console
    from attncli.render._class import ClassView
    from attncli.render._view import localized
    from attncli.render.table import print_parts, trimmed

    picture = Picture(list(target.grader.marker.points))
    for result in results:
        picture.add(result)
    screen, buffer = console()
    marker = target.grader.marker
    view = ClassView(
        picture,
        say.language,
        title=localized(marker.problem.title, say.language.code) or marker.problem.id,
        width=screen.width,
        encoding=screen.encoding,
        author=marker.undetectable(),
    )
    print_parts(view.parts(), screen)
    text = trimmed(buffer.getvalue())
    if target.output is None:
        say.out(text)
    else:
        write_file(target.output, text.encode("utf-8"))


def _jsonl(say: Say, results: Results, target: Target) -> None:
    _written((json_text(result) + "\n" for result in results), target, say)


def _csv(say: Say, results: Results, target: Target) -> None:
    from attncli.marking import class_csv

    steps = list(target.grader.marker.points)
    first = [] if target.end else [class_csv.header(steps)]
    _written(chain(first, class_csv.lines(results, steps)), target, say)


def _junit(say: Say, results: Results, target: Target) -> None:
    from attncli.marking import junit

    first = [] if target.end else [junit.START]
    _written(chain(first, map(junit.suite, results), [junit.END]), target, say)


def _gradescope(say: Say, results: Results, target: Target) -> None:
    """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where the autograder looks for it."""
    from attncli.marking.gradescope import results as as_results

    assert target.output is not None
    alone = target.output.lower().endswith(".json")
    folder = Path(target.output).parent if alone else Path(target.output)
    names = Names()
    first: dict[str, Any] | None = None

    def hand_back(place: Path, result: dict[str, Any]) -> None:
        _make(place, "-o")
        name = Path(target.output or "").name if alone else "results.json"
        write_file(str(place / name), (json_text(as_results(result, say.language), indent=1) + "\n").encode("utf-8"))

    for number, result in enumerate(results):
        if number == 0:
            first = result
            continue
        if alone:
            raise InputError(
                "-o {path}: there are several sheets, and Gradescope's results are one file each. Give a folder: -o results",
                path=target.output,
            )
        if first is not None:
            hand_back(folder / names.take(first["student"]), first)
            first = None
        hand_back(folder / names.take(result["student"]), result)
    if first is not None:
        hand_back(folder, first)


def _written(lines: Iterable[str], target: Target, say: Say) -> None:
    """Result by result, each whole and at once: what is done is not lost when the run is stopped."""
    if target.output is None:
        for line in lines:
            say.out(line)
        return
    try:
        regular = Path(target.output).is_file()
        file = Path(target.output).open("r+b" if regular else "wb")  # noqa: SIM115 - closed below, whatever happens
    except OSError as error:
        raise InputError(
            "-o {path}: cannot be written ({reason}). Check that the folder exists and that you may write there.",
            path=target.output,
            reason=of_system(error),
        ) from None
    with file:
        if regular:
            file.truncate(target.end)
            file.seek(target.end)
        for line in lines:
            file.write(line.encode("utf-8", "replace"))
            file.flush()


_WRITERS: dict[str, Callable[[Say, Results, Target], None]] = {
    "table": _table,
    "jsonl": _jsonl,
    "csv": _csv,
    "gradescope": _gradescope,
    "junit": _junit,
}
