"""Matrices and files from where the user keeps them: @FILE, FILE.npz:NAME, standard input.

Every read is bounded, nothing is ever unpickled, and an error names the file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from attncli.core.limits import MOST_ARRAY_BYTES, MOST_ARRAY_CELLS, MOST_ARRAYS, MOST_TEXT_BYTES
from attncli.core.matrix import Matrix
from attncli.core.message import N_, AttnError, InputError, Message, closest
from attncli.core.reasons import of_json, of_system, of_toml
from attncli.problems.matrix_text import Literal, parse_matrix
from attncli.problems.settings import matrix_of, real_array

#: Digits of a whole number in JSON that is read as a number.
_MOST_DIGITS = 40

ReadStdin = Callable[[], bytes]


def read_matrix(text: str, read_stdin: ReadStdin, *, blanks: bool = False) -> Matrix:
    """A matrix from text, from @FILE, or from standard input (-).

    Raises
    ------
    InputError
        Names the file and what is wrong with it.
    """
    if text.strip() == "-":
        data = read_stdin()
        try:
            return parse_matrix(as_text(data, Message(N_("standard input"))), blanks=blanks)
        except AttnError as error:
            raise error.at(Message(N_("standard input"))) from None
    if text.startswith("@"):
        return matrix_from_file(text[1:], blanks=blanks)
    return parse_matrix(text, blanks=blanks)


def matrix_from_file(name: str, *, blanks: bool = False) -> Matrix:
    """The matrix in FILE (.txt .csv .json .npy, anything else is read as text) or FILE.npz:NAME."""
    path, value = value_from_file(name)
    try:
        return parse_matrix(value, blanks=blanks) if isinstance(value, str) else matrix_of(value)
    except AttnError as error:
        raise error.at(path) from None


def read_value(text: str, read_stdin: ReadStdin) -> tuple[str, Any]:
    """A setting's value from text, @FILE or standard input, not yet understood; and the file, or nothing.

    Raises
    ------
    InputError
        Names the file and what is wrong with it.
    """
    if text.strip() == "-":
        return "-", as_text(read_stdin(), Message(N_("standard input")))
    return value_from_file(text[1:]) if text.startswith("@") else ("", text)


def value_from_file(name: str) -> tuple[str, Any]:
    """The path, and the text, array or nested lists that FILE or FILE.npz:NAME holds.

    Raises
    ------
    InputError
        Names the file and what is wrong with it.
    """
    if not name.strip():
        raise InputError("@ needs the name of a file after it, like @matrix.txt.")
    path, _, member = name.partition(".npz:")
    path = f"{path}.npz" if member or name.endswith(".npz:") else name
    ending = Path(path).suffix.lower()
    try:
        if ending == ".npz":
            return path, Matrix(array_from_npz(path, member))
        if ending == ".npy":
            with open_bounded(path, MOST_ARRAY_BYTES, stored=True) as file:
                return path, Matrix(read_array(file))
        text = as_text(read_bounded(path, MOST_TEXT_BYTES), path)
        if ending == ".json":
            return path, parse_json(text)
        return path, _without_header(text) if ending == ".csv" else text
    except AttnError as error:
        raise error.at(path) from None


def beside(name: str, base: Path | None) -> str:
    """The path of a file that another file names after @: relative to it, and in its folder or below.

    Parameters
    ----------
    base : the folder of the file that names it; None where that is no file

    Raises
    ------
    InputError
        It lies elsewhere, or there is no folder to look in.
    """
    if base is None:
        raise InputError(
            "“@{name}” names a file, which only a file or the command line can do. Write the numbers.", name=name[:60]
        )
    place = Path(os.path.realpath(base / name))
    if not name.strip() or Path(name).is_absolute() or not place.is_relative_to(os.path.realpath(base)):
        raise InputError(
            "“@{name}” leads out of the folder of the file that names it. Put the file beside it, and write its name.",
            name=name[:60],
        )
    return str(base / name)


def _without_header(text: str) -> str:
    """The text of a CSV file: cells without quotes.

    Raises
    ------
    InputError
        It has a header row, or another separator than the comma.
    """
    import csv

    if ";" in text:
        raise InputError(
            "this CSV file holds “;”. Separate cells with commas and rows with new lines, and write decimals with a point, like 0.5."
        )
    if '"' in text:
        try:
            text = "\n".join(", ".join(cells) for cells in csv.reader(text.splitlines()))
        except csv.Error as error:
            raise InputError("is not readable as CSV: {what}.", what=str(error)) from None
    first = [cell.strip() for cell in text.lstrip().partition("\n")[0].split(",")]
    if all(cell and (cell[0].isalpha() or cell[0] == "_") for cell in first) and not _reads(first):
        raise InputError(
            "the first row is a header ({names}). Remove it: only numbers are allowed here.",
            names=", ".join(first)[:60],
        )
    return text


def _reads(cells: list[str]) -> bool:
    """Whether these are numbers, like e or inf."""
    try:
        parse_matrix(", ".join(cells), blanks=True)
    except AttnError:
        return False
    return True


def open_bounded(path: str, most: int, *, stored: bool = False) -> IO[bytes]:
    """The file, opened for reading, if it is no folder and not larger than `most` bytes; `stored`: no pipe or device either."""
    if not path:
        raise InputError("the name is empty. Give a file.")
    try:
        if stored and not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):  # noqa: PTH112, PTH116
            raise InputError(
                "this is a pipe or a device, and a file is needed that can be read more than once. Give a file."
            )
        if os.path.isdir(path):  # noqa: PTH112 - pathlib's own stumbles over a name that is too long
            raise InputError("this is a folder. Give a file.")
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
        size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise _not_found(path) from None
    except (OSError, ValueError) as error:
        raise InputError(
            "cannot be opened ({reason}). Check the name and the permissions.", reason=of_system(error)
        ) from None
    if size > most:
        file.close()
        raise InputError(
            "has {size} bytes; the limit here is {limit}. Give a smaller file.", size=f"{size:,}", limit=f"{most:,}"
        )
    return file


def _not_found(path: str) -> InputError:
    folder = Path(path).parent
    try:
        names = [entry.name for entry in list(folder.iterdir())[:1000]]
    except OSError:
        names = []
    likely = closest(Path(path).name, names)
    if likely == Path(path).name:
        return InputError("is a link to a file that is not there. Check where it leads.")
    if likely is None:
        return InputError("there is no such file. Check the name, or where you are.")
    return InputError("there is no such file. Did you mean {likely}?", likely=str(folder / likely))


def read_bounded(path: str, most: int) -> bytes:
    """The bytes of a file; also a device or pipe is read no further than `most`."""
    with open_bounded(path, most) as file:
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise InputError("cannot be read ({reason}).", reason=of_system(error)) from None
    if len(data) > most:
        raise InputError("has more than {limit} bytes, the limit here. Give a smaller file.", limit=f"{most:,}")
    return data


def as_text(data: bytes, where: Message | str) -> str:
    """The text in these bytes, which must be UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "is not UTF-8 text (byte {position} is 0x{byte}). Save it as UTF-8; a NumPy file needs the ending .npy or .npz.",
            position=error.start + 1,
            byte=f"{data[error.start]:02x}",
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, numbers with their text; an error says where."""
    import tomllib

    if _DEEP_KEY.search(text):
        raise InputError("has a key of more than {limit} parts (a.b.c…). Write tables flatter.", limit=_MOST_PARTS)
    try:
        return tomllib.loads(text, parse_float=Literal)
    except tomllib.TOMLDecodeError as error:
        raise InputError("is not valid TOML: {what}.", what=of_toml(error)) from None
    except RecursionError:
        raise InputError("is nested too deep to be read. Write it flatter.") from None
    except ValueError:  # Python reads no integer of more than 4300 digits
        raise InputError("holds a whole number of more than 4300 digits. Write it shorter, like 1e9.") from None


#: Python's TOML reader takes time with the square of a key's parts.
_MOST_PARTS = 50
_PART = r"""(?:(?<![\w-])[\w-]++|"[^"\n]{0,200}+"|'[^'\n]{0,200}+')"""
_DEEP_KEY = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")


def parse_json(text: str) -> Any:
    """The value of a JSON text, numbers with their text; an error says the line."""
    return _json(text, parse_constant=Literal, parse_float=Literal, parse_int=_whole)


def plain_json(text: str) -> Any:
    """The value of a JSON text, its numbers as Python has them; an error says the line."""
    return _json(text, parse_constant=_no_number, parse_int=_short)


def _no_number(text: str) -> Any:
    raise InputError("{given} is not a number in JSON. Write a finite number.", given=text)


def _short(text: str) -> int:
    """A whole number; to read one of thousands of digits would take forever."""
    if len(text) > _MOST_DIGITS:
        raise InputError(
            "a whole number there has {count} digits. Write at most {most}.", count=len(text), most=_MOST_DIGITS
        )
    return int(text)


def _json(text: str, **reading: Any) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=_table, **reading)
    except json.JSONDecodeError as error:
        raise InputError(
            "is not valid JSON at line {line}, column {column}: {what}.",
            line=error.lineno,
            column=error.colno,
            what=of_json(error.msg),
        ) from None
    except RecursionError:
        raise InputError("is nested too deep to be read. Write it flatter.") from None


def _whole(text: str) -> Any:
    return int(text) if len(text) <= 400 else Literal(text)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key that stands twice is an error, where Python would keep the last."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise InputError("the key “{key}” occurs twice. Keep one.", key=key[:40])
        table[key] = value
    return table


def array_from_npz(path: str, name: str) -> Any:
    """The array called `name` in an .npz file (or its only one)."""
    with _npz(path) as archive:
        members = _names(archive)
        if not name and len(members) == 1:
            name = members[0]
        if name not in members:
            raise no_member(path, name, members)
        return real_array(_member(archive, name))


def arrays_from_npz(path: str, most: int = MOST_ARRAY_BYTES, *, writer: str = "numpy.savez") -> dict[str, Any]:
    """All arrays of an .npz file as they are stored, or for one that cannot be read the error's message.

    Parameters
    ----------
    most : bytes that all of them may unpack to
    writer : what writes such files, for the errors
    """
    arrays: dict[str, Any] = {}
    with _npz(path, writer) as archive:
        members = _names(archive)
        twice = (
            next((name for name in members if members.count(name) > 1), None) if len(members) < MOST_ARRAYS else None
        )
        if twice is not None:
            raise InputError("holds two arrays “{name}”. Keep one.", name=twice)
        if len(members) > MOST_ARRAYS:
            raise InputError("holds {count} arrays; the limit here is {limit}.", count=len(members), limit=MOST_ARRAYS)
        # What a member says of its size is also all that is unpacked of it.
        sizes = [info.file_size for info in archive.infolist()]
        if max(sizes, default=0) > most or sum(size for size in sizes if size <= MOST_ARRAY_BYTES) > most:
            raise InputError("unpacks to more than {limit} bytes, the limit here.", limit=f"{most:,}")
        for name in members:
            try:
                stored = _member(archive, name)
                real_array(stored)
                arrays[name] = stored
            except AttnError as error:
                arrays[name] = error.message
    return arrays


@contextmanager
def _npz(path: str, writer: str = "numpy.savez") -> Iterator[Any]:
    """The archive, open; whatever goes wrong in it is said in one way."""
    import zipfile
    import zlib

    with open_bounded(path, MOST_ARRAY_BYTES, stored=True) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError):
            raise InputError(
                "is not a readable .npz file: it is damaged, or something else. Write it with {writer}.", writer=writer
            ) from None


def _names(archive: Any) -> list[str]:
    return [member.removesuffix(".npy") for member in archive.namelist()]


def _member(archive: Any, name: str) -> Any:
    info = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    if info.file_size > MOST_ARRAY_BYTES:
        raise InputError(
            "the array {name} unpacks to {size} bytes; the limit here is {limit}.",
            name=name,
            size=f"{info.file_size:,}",
            limit=f"{MOST_ARRAY_BYTES:,}",
        )
    with archive.open(info) as member:
        return stored_array(member)


def no_member(path: str, name: str, members: list[str]) -> InputError:
    names = ", ".join(members[:20]) or "–"
    if not name:
        return InputError(
            "holds several arrays: {names}. Say which one, like @{path}:{example}.",
            names=names,
            path=path,
            example=members[0] if members else "Q",
        )
    return InputError("holds no array “{name}”. It holds: {names}.", name=name, names=names)


def read_array(file: IO[bytes]) -> Any:
    """A float64 array from an .npy stream.

    Raises
    ------
    InputError
        As `stored_array`; NaN is not a number to calculate with.
    """
    return real_array(stored_array(file))


def stored_array(file: IO[bytes]) -> Any:
    """The array of an .npy stream in its own type; the header is checked before anything is allocated.

    Raises
    ------
    InputError
        Objects (pickles) are never loaded; text, complex and structured arrays are no matrices.
    """
    from tokenize import TokenError

    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if header is None:
            raise InputError("is an .npy file of version {version}, which is not known here.", version=f"{version}")
        shape, fortran, dtype = header(file)
        if dtype.hasobject or dtype.kind not in "fiub":
            real_array(np.empty(0, dtype))
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize if shape else dtype.itemsize
        if size > MOST_ARRAY_BYTES:
            raise InputError(
                "holds an array of {size} bytes ({shape}); the limit here is {limit}. Give a smaller one.",
                size=f"{size:,}",
                shape="×".join(map(str, shape))[:60],
                limit=f"{MOST_ARRAY_BYTES:,}",
            )
        if size // dtype.itemsize > MOST_ARRAY_CELLS:
            raise InputError(
                "holds an array of {count} numbers ({shape}); the limit here is {limit}. Give a smaller one.",
                count=f"{size // dtype.itemsize:,}",
                shape="×".join(map(str, shape))[:60],
                limit=f"{MOST_ARRAY_CELLS:,}",
            )
        data = file.read(size)
        if len(data) != size:
            raise InputError("stops in the middle of its array. Save it again.")
        array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    except (
        ValueError,
        SyntaxError,
        EOFError,
        MemoryError,
        OverflowError,
        TypeError,
        RecursionError,
        TokenError,
    ):
        raise InputError(
            "is not a readable .npy file: it is damaged, or something else. Write it with numpy.save."
        ) from None
    return array
