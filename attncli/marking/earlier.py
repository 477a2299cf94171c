"""What an earlier run has left in its output, so that the next one goes on where it was interrupted."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from attncli.marking import class_csv, junit
from attncli.marking.submissions import Submission
from attncli.message import AttnError, InputError
from attncli.problems.source import parse_json

#: Formats that are written result by result and can be continued.
CONTINUED = ("jsonl", "csv", "junit")

_SUITE = re.compile(rf"{re.escape(junit.SUITE_START)}(\"[^\"]*\"|'[^']*') tests=")


def kept(
    path: str,
    format: str,
    waiting: Iterator[Submission | None],
    *,
    problem: str,
    steps: Sequence[str],
    seen: Callable[[str], object] = str,
) -> tuple[int, int]:
    """How many results are there already, and where in the file they end; their sheets are taken from `waiting`.

    Parameters
    ----------
    seen : called with every student whose result is there

    Raises
    ------
    InputError
        The file holds something else than results of these sheets.
    """
    count = end = 0
    if format not in CONTINUED or not Path(path).is_file():
        return 0, 0
    with Path(path).open("rb") as file:
        for name, after in _RECORDS[format](_whole_lines(file), path, problem, steps):
            if name is not None:
                submission = next((one for one in waiting if one is not None), None)
                student = None if submission is None else submission.student()
                if student is None or _SPELLED[format](student) != name:
                    raise _other(path)
                seen(student)
                count += 1
            end = after
    return count, end


def _other(path: str) -> InputError:
    return InputError(
        "-o {path}: this file does not hold results of these sheets. Give another name, or delete it to start over.",
        path=path,
    )


def _whole_lines(file: IO[bytes]) -> Iterator[tuple[str, int]]:
    """Lines and where they end, up to one that was cut off."""
    end = 0
    for line in file:
        if not line.endswith(b"\n"):
            return
        end += len(line)
        yield line.decode("utf-8", "replace"), end


_Records = Iterator[tuple[str | None, int]]


def _jsonl(lines: Iterator[tuple[str, int]], path: str, problem: str, steps: Sequence[str]) -> _Records:
    for line, end in lines:
        try:
            data = parse_json(line)
        except AttnError:
            raise _other(path) from None
        if not isinstance(data, dict) or data.get("problem") != problem or not isinstance(data.get("student"), str):
            raise _other(path)
        yield data["student"], end


def _csv(lines: Iterator[tuple[str, int]], path: str, problem: str, steps: Sequence[str]) -> _Records:
    for number, (line, end) in enumerate(lines):
        if number == 0:
            if line != class_csv.header(steps):
                raise _other(path)
            yield None, end
            continue
        yield next(csv.reader([line]), [""])[0], end


def _junit(lines: Iterator[tuple[str, int]], path: str, problem: str, steps: Sequence[str]) -> _Records:
    name, begun = None, ""
    for line, end in lines:
        if begun != junit.START:
            begun += line
            if not junit.START.startswith(begun):
                raise _other(path)
            if begun == junit.START:
                yield None, end
        elif found := _SUITE.match(line):
            name = found[1]
        elif line == junit.SUITE_END:
            yield name, end


_RECORDS = {"jsonl": _jsonl, "csv": _csv, "junit": _junit}
_SPELLED: dict[str, Callable[[str], str]] = {"jsonl": str, "csv": class_csv.spelled, "junit": junit.spelled}
