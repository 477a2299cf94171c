"""Matrices and files from where the user keeps them: @FILE, FILE.npz:NAME, standard input.

Every read is bounded, nothing is ever unpickled, and an error names the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from attncli.core.limits import MOST_ARRAY_BYTES, MOST_ARRAY_CELLS, MOST_ARRAYS, MOST_TEXT_BYTES
from attncli.core.matrix import FloatArray, Matrix
from attncli.core.message import N_, AttnError, InputError, Message, placed
from attncli.problems.matrix_text import parse_lists, parse_matrix
from attncli.problems.reading import brief, decoded, open_bounded, parse_csv, parse_json, read_bounded

if TYPE_CHECKING:
    from zipfile import ZipFile

    from numpy.typing import NDArray


class Stdin:
    """Standard input, which can be read once."""

    def __init__(self) -> None:
        self.used = False

    def __call__(self) -> bytes:
        if self.used:
            raise InputError("Only one input can come from standard input (-). Give the others as text or as @FILE.")
        self.used = True
        if sys.stdin is None:
            raise InputError("Standard input is closed. Give the matrix as text or as @FILE.")
        data = sys.stdin.buffer.read(MOST_TEXT_BYTES + 1)
        if len(data) > MOST_TEXT_BYTES:
            raise InputError(
                "Standard input has more than {limit} bytes, the limit here.", limit=f"{MOST_TEXT_BYTES:,}"
            )
        return data


def read_matrix(text: str, stdin: Stdin) -> Matrix:
    """A matrix from text, from @FILE, or from standard input (-)."""
    where, value = read_value(text, stdin)
    with placed(where) if where else nullcontext():
        return matrix_of(value)


def read_value(text: str, stdin: Stdin) -> tuple[Message | str, Any]:
    """A setting's value from text, @FILE or standard input, not yet understood; and where it stood, if not here."""
    if text.strip() == "-":
        where = Message("standard input")
        data = stdin()
        with placed(where):
            return where, decoded(data)
    return value_from_file(text[1:]) if text.startswith("@") else ("", text)


def matrix_from_file(name: str, *, blanks: bool = False) -> Matrix:
    """The matrix in FILE (.txt .csv .json .npy, anything else is read as text) or FILE.npz:NAME."""
    path, value = value_from_file(name)
    with placed(path):
        return parse_matrix(value, blanks=blanks) if isinstance(value, str) else matrix_of(value)


def value_from_file(name: str) -> tuple[str, Any]:
    """The path, and the text, matrix or nested lists that FILE or FILE.npz:NAME holds."""
    path, array = array_in(name)
    with placed(path):
        if array is not None:
            return path, Matrix(real_array(array))
        text = decoded(read_bounded(path, MOST_TEXT_BYTES))
        if path.lower().endswith(".json"):
            return path, parse_json(text)
        return path, _without_header(text) if path.lower().endswith(".csv") else text


def array_in(name: str) -> tuple[str, NDArray[Any] | None]:
    """The path, and the array in its own type, of FILE.npy, FILE.npz (its only one) or FILE.npz:NAME; None for other files."""
    if not name.strip():
        raise InputError("@ needs the name of a file after it, like @matrix.txt.")
    path, colon, member = name.partition(".npz:")
    path = f"{path}.npz" if colon else path
    with placed(path):
        if path.lower().endswith(".npy"):
            with open_bounded(path, MOST_ARRAY_BYTES, stored=True) as file:
                return path, stored_array(file)
        if path.lower().endswith(".npz"):
            with _npz(path) as archive:
                members = _names(archive)
                member = members[0] if not member and len(members) == 1 else member
                if member not in members:
                    raise _no_member(path, member, members)
                return path, _member(archive, member)
    return path, None


def beside(name: str, base: Path | None) -> str:
    """The path of a file that another file names after @: relative to it, and in its folder or below.

    Parameters
    ----------
    base : the folder of the file that names it; None where that is no file
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
    """The text of a CSV file: cells without quotes; a header row, or another separator than the comma, is refused."""
    if ";" in text:
        raise InputError(
            "this CSV file holds “;”. Separate cells with commas and rows with new lines, and write decimals with a point, like 0.5."
        )
    if '"' in text:
        text = "\n".join(map(", ".join, parse_csv(text)))
    first = [cell.strip() for cell in text.lstrip().partition("\n")[0].split(",")]
    if all(cell[:1].isalpha() or cell[:1] == "_" for cell in first):
        try:
            parse_matrix(", ".join(first), blanks=True)  # e and inf are numbers
        except AttnError:
            raise InputError(
                "the first row is a header ({names}). Remove it: only numbers are allowed here.",
                names=", ".join(first)[:60],
            ) from None
    return text


def arrays_from_npz(
    path: str | IO[bytes], most: int = MOST_ARRAY_BYTES, *, writer: str = "numpy.savez"
) -> dict[str, NDArray[Any] | Message]:
    """All arrays of an .npz file as they are stored, or for one that cannot be read the error's message.

    Parameters
    ----------
    path : the file, or what stands in it
    most : bytes that all of them may unpack to
    writer : what writes such files, for the errors
    """
    arrays: dict[str, NDArray[Any] | Message] = {}
    with _npz(path, writer) as archive:
        members = _names(archive)
        if len(members) > MOST_ARRAYS:
            raise InputError("holds {count} arrays; the limit here is {limit}.", count=len(members), limit=MOST_ARRAYS)
        twice = next((name for name in members if members.count(name) > 1), None)
        if twice is not None:
            raise InputError("holds two arrays “{name}”. Keep one.", name=twice)
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
def _npz(path: str | IO[bytes], writer: str = "numpy.savez") -> Iterator[ZipFile]:
    """The archive, open; whatever goes wrong in it is said in one way."""
    import zipfile
    import zlib

    with open_bounded(path, MOST_ARRAY_BYTES, stored=True) if isinstance(path, str) else nullcontext(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError):
            raise InputError(
                "is not a readable .npz file: it is damaged, or something else. Write it with {writer}.", writer=writer
            ) from None


def _names(archive: ZipFile) -> list[str]:
    return [member.removesuffix(".npy") for member in archive.namelist()]


def _member(archive: ZipFile, name: str) -> NDArray[Any]:
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


def _no_member(path: str, name: str, members: list[str]) -> InputError:
    names = ", ".join(members[:20]) or "–"
    if not name:
        return InputError(
            "holds several arrays: {names}. Say which one, like @{path}:{example}.",
            names=names,
            path=path,
            example=members[0] if members else "Q",
        )
    return InputError("holds no array “{name}”. It holds: {names}.", name=name, names=names)


def stored_array(file: IO[bytes]) -> NDArray[Any]:
    """The array of an .npy stream in its own type; the header is checked before anything is allocated, and objects (pickles) are never loaded."""
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
    except (ValueError, SyntaxError, EOFError, MemoryError, OverflowError, TypeError, RecursionError, TokenError):
        raise InputError(
            "is not a readable .npy file: it is damaged, or something else. Write it with numpy.save."
        ) from None
    return array


def matrix_of(value: object) -> Matrix:
    """A matrix from text, from an array, or from nested lists of numbers and entry texts as TOML and JSON have them."""
    if isinstance(value, Matrix):
        return value
    if isinstance(value, str):
        return parse_matrix(value)
    if isinstance(value, (list, tuple)):
        return parse_lists([part.tolist() if isinstance(part, np.ndarray) else part for part in value])
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        return Matrix(real_array(np.asarray(value)))
    if isinstance(value, (int, float, np.generic)):
        return parse_lists([value])
    raise InputError(
        "“{value}” is not a matrix. Write text like “1 2; 3 4”, or rows like [[1, 2], [3, 4]].", value=brief(value)
    )


#: What arrays hold that are no real numbers, by the letter that NumPy has for it.
_KINDS = {
    "c": N_("complex numbers"),
    "S": N_("text"),
    "U": N_("text"),
    "M": N_("dates or times"),
    "m": N_("dates or times"),
    "V": N_("records of several fields"),
}


def real_array(array: NDArray[Any]) -> FloatArray:
    """The array as float64, if it holds real numbers and no NaN."""
    if array.dtype.hasobject:
        raise InputError(
            "holds Python objects, which are never loaded (a pickle can run code)."
            " Save plain numbers: numpy.save(name, array.astype(float))."
        )
    if array.dtype.kind not in "fiub":
        kind = Message(_KINDS.get(array.dtype.kind, N_("something else")))
        raise InputError("holds {kind}, not real numbers. Save plain floats or integers.", kind=kind)
    with np.errstate(over="ignore"):
        values: FloatArray = array.astype(np.float64)
    wrong = np.isnan(values) | (np.isinf(values) & np.isfinite(array))
    if wrong.any():
        index = ",".join(str(i + 1) for i in np.argwhere(wrong)[0])
        raise InputError(
            "holds {value} at [{index}], which is not a number to calculate with. Write a number there.",
            value="NaN" if np.isnan(values[wrong][0]) else brief(array[wrong][0]),
            index=index,
        )
    return values.reshape(1, 1) if values.ndim == 0 else values
