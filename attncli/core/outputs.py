"""Files that attncli writes: whole or not at all, never over an input, and never over what somebody else has written.

A file of ours is known by how it begins; one that begins with its title, by the same title. So a command given again writes its
own file again, and nobody's notes are lost to a slip of the hand.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from attncli.core.message import InputError, of_system

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


#: What files are written for. A calculation does not take the place of a saved training.
RUN, MARKS, CLASS, REPORT = "run", "marks", "class", "report"
TRAINING, FEEDBACK, WHY, SHEET = "training", "feedback", "why", "sheet"

#: How files of ours begin.
_FIRST = {
    RUN: (
        rb'\{"schema": ?1, ?"model": ?"[^"]*", ?"arithmetic"',
        rb"step,phase,head,row,column,",
        rb'<!DOCTYPE html>\n<html[^>]*>\n<head>\n(<meta[^>]*>\n)*<meta name="generator" content="attncli">',
        rb'<svg class="attncli-',
        rb"% Put this into a document with ",
        # An archive as `attncli.core.outputs` writes it: nothing packed, no time, no 64-bit sizes as NumPy has them.
        rb"(?s:PK\x03\x04..\x00.\x00\x00\x00\x00\x21\x00.{12}..\x00\x00(?!meta\.npy))",
        # A spreadsheet without a time in it.
        rb"(?s:PK\x03\x04..\x00\x00\x08\x00\x00\x00\x21\x00.{12}..\x00\x00\[Content_Types\]\.xml)",
    ),
    MARKS: (rb'\{"schema": ?1, ?"problem": ?',),
    CLASS: (
        rb'\{"schema": ?1, ?"problem": ?',
        rb"student,score,max_score,first_wrong,",
        rb'<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites>',
        rb'\{\n "(score|output)": [^\n]*\n(.*\n)* "extra_data": \{\n  "problem"',
    ),
    REPORT: (
        rb'\{"schema": ?1, ?"(experiment|models)": ?',
        rb"table,row,column,value\n",
        rb"model,variant,cache_formula,",
        "(# )?(MHA|MQA|GQA|MLA)( · (MHA|MQA|GQA|MLA))* ".encode(),
    ),
    WHY: (),
    SHEET: (
        rb'<!DOCTYPE html>\n<html[^>]*>\n<head>\n<meta name="generator" content="attncli-worksheet">',
        rb"% attncli-worksheet: ",
        rb'student = "[^"\n]*"\n(problem = "[^"\n]*"\n)?\n\[answers\]\n',
    ),
    TRAINING: (rb"(?s:PK\x03\x04.{22}\x08\x00..meta\.npy)",),
    FEEDBACK: (rb"(?s:.*)\n<!-- attncli: feedback -->\n\Z",),
}  # fmt: skip
#: The last line of a page of feedback, which no reader shows.
FEEDBACK_END = b"\n<!-- attncli: feedback -->\n"
_HEAD = 1 << 16


def is_own(path: Path, kind: str, data: bytes = b"") -> bool:
    """Whether attncli has written this file, and for the same purpose.

    Parameters
    ----------
    data : what is to be written, or its beginning: a text under the same title is ours
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    title = data.partition(b"\n")[0]
    return any(re.match(first, head) for first in _FIRST[kind]) or bool(
        title and title[:1] not in b"{<%P" and head.partition(b"\n")[0] == title
    )


def check_output(
    name: str,
    kind: str,
    inputs: Iterable[str | Path] = (),
    data: bytes = b"",
    *,
    option: str = "-o",
    force: bool = False,
) -> None:
    """Refuse a place that is one of the inputs, by whatever link or spelling, or that holds somebody else's file.

    Parameters
    ----------
    data : what is to be written, or its beginning
    force : write over a file that is not ours; an input stays an input

    Raises
    ------
    InputError
        Says which, and what to do.
    """
    path, there = Path(name), _stat(name)
    if there is None:
        return  # nothing is there, or writing will say what is wrong
    # A device such as /dev/null is read from and written to without harm.
    for given in inputs if path.is_file() or path.is_dir() else ():
        status = _stat(given)
        if status is not None and os.path.samestat(status, there):
            raise InputError(
                "{option} {path}: this is one of the inputs ({given}), and would be overwritten. Give another name.",
                option=option,
                path=name,
                given=str(given),
            )
    if force or not path.is_file() or not there.st_size:
        return
    try:
        if is_own(path, kind, data):
            return
    except OSError:
        pass
    raise InputError(
        "{option} {path}: a file is there that attncli did not write for this purpose. Give another name, or --force to write over it.",
        option=option,
        path=name,
    )


def _stat(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None


def is_folder(name: str, option: str, example: str) -> InputError:
    """The error for a folder, or nothing at all, where a file is to be written."""
    if not name:
        return InputError(
            "{option} “”: the name is empty. Give a file name, like {example}.", option=option, example=example
        )
    return InputError(
        "{option} {path}: this is a folder. Give a file name in it, like {example}.",
        option=option,
        path=name,
        example=str(Path(name) / example),
    )


def check_place(name: str, option: str = "-o", example: str = "trace.md") -> None:
    """Before long work: whether a file can go there.

    Raises
    ------
    InputError
        It is a folder, or in none that may be written to.
    """
    path = Path(os.path.realpath(name))
    if not name or path.is_dir():
        raise is_folder(name, option, example)
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            "{option} {path}: you cannot write to the folder {folder}, or it does not exist. Choose another path.",
            option=option,
            path=name,
            folder=str(folder),
        )


def cannot_write(name: str, error: Exception, option: str = "-o") -> InputError:
    """The error for a place that nothing can be written to."""
    return InputError(
        "{option} {path}: cannot be written ({reason}). Check that the folder exists and that you may write there.",
        option=option,
        path=name,
        reason=of_system(error),
    )


def write_whole(name: str, data: bytes, option: str = "-o", example: str = "trace.md") -> None:
    """Write a file whole or not at all: beside it first, then renamed.

    Raises
    ------
    InputError
        It cannot be written there.
    """
    import tempfile

    beside = None
    try:
        path = Path(os.path.realpath(name))  # a link is followed, not replaced
        if not name or path.is_dir():
            raise is_folder(name, option, example)
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or pipe has nothing to rename onto
            return
        handle, beside = tempfile.mkstemp(prefix=".attncli-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        Path(beside).replace(path)
    except (OSError, ValueError) as error:
        raise cannot_write(name, error, option) from None
    finally:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)


#: A byte that no file of ours reaches. Windows lets nobody else read what is locked, so this one is.
_FAR = 2**31 - 2


def is_locked_for_us(file: IO[bytes]) -> bool:
    """Whether from now on this process alone holds the file, as against others that ask for it in this way.

    The system gives the lock back when the file is closed or the process ends, however it does; so there is none that is left
    over, as a file with a process's number in it would be. On a disk of another machine that knows no locks everybody holds it.
    """
    try:
        import fcntl
    except ImportError:
        return _is_locked_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _is_locked_on_windows(file: IO[bytes]) -> bool:
    msvcrt: Any = importlib.import_module("msvcrt")
    file.seek(_FAR)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EDEADLK)
    finally:
        file.seek(0)
    return True


def make_folder(folder: Path, option: str) -> None:
    """Make a folder for files, with those above it.

    Raises
    ------
    InputError
        It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "{option} {path}: this folder cannot be created ({reason}).",
            option=option,
            path=str(folder),
            reason=of_system(error),
        ) from None


#: A spreadsheet reads text that starts with one of these as a formula (OWASP, CSV injection), also with the wide ones of a
#: Chinese input method.
_FORMULA = frozenset("=+-@\t\r＝＋－＠")


def spreadsheet_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe goes before =, +, -, @."""
    return f"'{text}" if text and text.lstrip()[:1] in _FORMULA else text


#: The earliest time a zip file can hold; numpy.savez writes the present one.
_TIME = (1980, 1, 1, 0, 0, 0)


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """A file that numpy.load(…, allow_pickle=False) reads: every array under its name, in its own type."""
    import zipfile  # these not above: whoever asks for help writes no arrays

    import numpy as np

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _TIME)
            entry.create_system = 3  # the same on every system
            archive.writestr(entry, _bytes(np.asarray(array)))
    return out.getvalue()


def _bytes(array: NDArray[Any]) -> bytes:
    import numpy as np

    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return out.getvalue()
