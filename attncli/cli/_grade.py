"""What `attncli grade` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from attncli.cli._calculation import problem_of, whole_number, write_file
from attncli.cli._say import Say
from attncli.marking.grade import Grader, Picture, chunks
from attncli.marking.submissions import Submission, submissions
from attncli.message import N_, InputError, Message, unknown
from attncli.problems.problem import Problem

FORMATS = ("table", "jsonl", "csv", "gradescope", "junit")
_ENDINGS = {".jsonl": "jsonl", ".csv": "csv", ".xml": "junit"}
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
    jobs: str | None,
    dask: str | None,
    layout: str | None,
    lang: str | None,
) -> int:
    """Mark a class and write the results; the exit status is 0 whatever the marks are."""
    chosen = format or (_ENDINGS.get(Path(output).suffix.lower(), "table") if output else "table")
    if chosen not in FORMATS:
        raise unknown(Message(N_("The format")), chosen, list(FORMATS))
    if chosen == "gradescope" and output is None:
        raise InputError("Gradescope's results are one file a student. Give a folder: -o results")
    problem = problem_of(exercise, {"layout": layout}, say)
    work = Work(
        problem,
        say.code if say.language.code == say.code else "en",
        layout=problem.layout,
        feedback=feedback is not None,
    )
    done = _done(output, chosen)
    waiting = submissions(sheets, sys.stdin.buffer if sys.stdin is not None else _empty())
    for _ in range(done):
        next(waiting, None)
    with ExitStack() as stack:
        results = _mapped(work, waiting, whole_number("-j", jobs, 1, 256) or 1, dask, stack)
        results = _progress(results, stack, done)
        if feedback is not None:
            results = _with_feedback(results, Path(feedback))
        _WRITERS[chosen](say, results, output, work, done)
    return 0


class Work:
    """What a worker needs: the problem and the language. It travels to other processes and machines."""

    def __init__(self, problem: Problem, language: str, *, layout: str, feedback: bool) -> None:
        self.problem = problem
        self.language = language
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

            self._grader = Grader(self.problem, language(self.language), _feedback_text if self.feedback else None)
        return self._grader

    def __call__(self, chunk: list[Submission]) -> list[dict[str, Any]]:
        """The results of some sheets: depends on them alone, so any engine may map it."""
        return self.grader.results(chunk)


def _feedback_text(marked: Any, language: Any) -> str:
    from attncli.render._marks import as_markdown

    return as_markdown(marked, language)


_work: Work | None = None


def _start(work: Work) -> None:
    """Keep the work in a process of the pool, so that it travels once."""
    global _work
    _work = work


def _do(chunk: list[Submission]) -> list[dict[str, Any]]:
    assert _work is not None
    return _work(chunk)


def _mapped(work: Work, waiting: Iterator[Submission], jobs: int, dask: str | None, stack: ExitStack) -> Results:
    """Results in the order of the sheets, from one process, many, or a cluster."""
    if dask is not None:
        return _in_order(_dask(work, dask, stack), waiting, 64)
    if jobs == 1:
        return (result for chunk in chunks(waiting) for result in work(chunk))
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = stack.enter_context(ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_start, initargs=(work,)))
    return _in_order(lambda chunk: pool.submit(_do, chunk), waiting, jobs * _AHEAD)


def _dask(work: Work, address: str, stack: ExitStack) -> Callable[[list[Submission]], Any]:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise InputError(
            "--dask needs Dask, which is not installed. Install it with: pip install 'attncli[dask]'"
        ) from None
    try:
        client = stack.enter_context(Client(address, timeout=10))
    except (OSError, ValueError) as error:
        raise InputError(
            "--dask {address}: no cluster answers there ({reason}). Give the scheduler's address, like tcp://127.0.0.1:8786.",
            address=address,
            reason=str(error)[:100],
        ) from None
    shared = client.scatter(work, broadcast=True)
    return lambda chunk: client.submit(_apply, shared, chunk, pure=False)


def _apply(work: Work, chunk: list[Submission]) -> list[dict[str, Any]]:
    return work(chunk)


def _in_order(submit: Callable[[list[Submission]], Any], waiting: Iterator[Submission], ahead: int) -> Results:
    """Results in order, with at most `ahead` chunks on their way, so that memory stays flat."""
    from collections import deque

    running: deque[Any] = deque()
    for chunk in chunks(waiting):
        running.append(submit(chunk))
        if len(running) >= ahead:
            yield from running.popleft().result()
    while running:
        yield from running.popleft().result()


def _progress(results: Results, stack: ExitStack, done: int) -> Results:
    """A progress line on a terminal; silence in a pipe."""
    if sys.stderr is None or not sys.stderr.isatty():
        return results
    from attncli.render._progress import counting

    return counting(results, sys.stderr, stack, done)


def _with_feedback(results: Results, folder: Path) -> Results:
    """Each student's feedback written to its own file; the result goes on without it."""
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    for result in results:
        text = result.pop("feedback", "")
        write_file(str(folder / f"{_file_name(result['student'], used)}.md"), text.encode("utf-8"))
        yield result


def _file_name(student: str | None, used: set[str]) -> str:
    """A name that stays in its folder: letters, digits, - and _; a second one of the same name gets a number."""
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in student or "sheet")[:80].strip("_") or "sheet"
    name, number = plain, 2
    while name.casefold() in used:
        name, number = f"{plain}-{number}", number + 1
    used.add(name.casefold())
    return name


def _done(output: str | None, format: str) -> int:
    """Sheets that an earlier run has finished already; a line that was cut off in the middle is taken back."""
    if output is None or format not in ("jsonl", "csv") or not Path(output).is_file():
        return 0
    with Path(output).open("rb+") as file:
        lines, end = 0, 0
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(end)
                break
            lines, end = lines + 1, end + len(line)
    return max(0, lines - (format == "csv"))


def _table(say: Say, results: Results, output: str | None, work: Work, done: int) -> None:
    from attncli.cli._terminal import console
    from attncli.render._class import ClassView
    from attncli.render.table import print_parts, trimmed

    picture = Picture()
    for result in results:
        picture.add(result)
    screen, buffer = console()
    print_parts(ClassView(picture, say.language, width=screen.width, encoding=screen.encoding).parts(), screen)
    text = trimmed(buffer.getvalue())
    if output is None:
        say.out(text)
    else:
        write_file(output, text.encode("utf-8"))


def _jsonl(say: Say, results: Results, output: str | None, work: Work, done: int) -> None:
    _written((json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n" for result in results), output, say)


def _csv(say: Say, results: Results, output: str | None, work: Work, done: int) -> None:
    from attncli.marking.class_csv import lines

    steps = list(work.grader.marker.points)
    _written(
        lines(results, steps, header=not (output and Path(output).is_file() and Path(output).stat().st_size)),
        output,
        say,
    )


def _gradescope(say: Say, results: Results, output: str | None, work: Work, done: int) -> None:
    """DIR/STUDENT/results.json; for a single sheet DIR/results.json, where the autograder looks for it."""
    from attncli.marking.gradescope import results as as_results

    assert output is not None
    folder, used = Path(output), set[str]()
    first: dict[str, Any] | None = None
    count = 0
    for result in results:
        count += 1
        if count == 1:
            first = result
            continue
        if first is not None:
            _hand_back(folder / _file_name(first["student"], used), as_results(first, say.language))
            first = None
        _hand_back(folder / _file_name(result["student"], used), as_results(result, say.language))
    if first is not None:
        _hand_back(folder, as_results(first, say.language))


def _hand_back(folder: Path, data: dict[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "-o {path}: cannot be made ({reason}).", path=str(folder), reason=error.strerror or str(error)
        ) from None
    write_file(str(folder / "results.json"), (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


def _junit(say: Say, results: Results, output: str | None, work: Work, done: int) -> None:
    from attncli.marking.junit import document

    if output is None:
        _written(document(results), None, say)
    else:
        write_file(output, "".join(document(results)).encode("utf-8"))


def _written(lines: Iterable[str], output: str | None, say: Say) -> None:
    """Line by line, each whole and at once: what is done is not lost when the run is stopped."""
    if output is None:
        for line in lines:
            say.out(line)
        return
    try:
        file = Path(output).open("ab")  # noqa: SIM115 - closed below, whatever happens
    except OSError as error:
        raise InputError(
            "-o {path}: cannot be written ({reason}). Check that the folder exists and that you may write there.",
            path=output,
            reason=error.strerror or str(error),
        ) from None
    with file:
        for line in lines:
            file.write(line.encode("utf-8"))
            file.flush()


def _empty() -> IO[bytes]:
    import io

    return io.BytesIO()


_WRITERS: dict[str, Callable[[Say, Results, str | None, Work, int], None]] = {
    "table": _table,
    "jsonl": _jsonl,
    "csv": _csv,
    "gradescope": _gradescope,
    "junit": _junit,
}
