"""Matrices and files from where the user keeps them: @FILE, FILE.npz:NAME, standard input.

Every read is bounded, nothing is ever unpickled, and an error names the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from attncli.matrix import Matrix
from attncli.message import N_, AttnError, InputError, Message, closest
from attncli.problems.settings import matrix_of
from attncli.problems.text import parse_matrix

MOST_TEXT_BYTES = 16_000_000
MOST_ARRAY_BYTES = 512_000_000

ReadStdin = Callable[[], bytes]


def read_matrix(text: str, read_stdin: ReadStdin, *, blanks: bool = False) -> Matrix:
    """A matrix from text, from @FILE, or from standard input (-).

    Raises
    ------
    InputError
        Names the file and what is wrong with it.
    """
    if text.strip() == "-":
        try:
            return parse_matrix(as_text(read_stdin(), Message(N_("standard input"))), blanks=blanks)
        except AttnError as error:
            raise error.at(Message(N_("standard input"))) from None
    if text.startswith("@"):
        return matrix_from_file(text[1:], blanks=blanks)
    return parse_matrix(text, blanks=blanks)


def matrix_from_file(name: str, *, blanks: bool = False) -> Matrix:
    """The matrix in FILE (.txt .csv .json .npy, anything else is read as text) or FILE.npz:NAME."""
    path, _, member = name.partition(".npz:")
    path = f"{path}.npz" if member else name
    try:
        if path.endswith(".npz"):
            return Matrix(array_from_npz(path, member))
        if path.endswith(".npy"):
            with open_bounded(path, MOST_ARRAY_BYTES) as file:
                return Matrix(read_array(file))
        text = as_text(read_bounded(path, MOST_TEXT_BYTES), path)
        if path.endswith(".json"):
            return matrix_of(parse_json(text))
        return parse_matrix(text, blanks=blanks)
    except AttnError as error:
        raise error.at(path) from None


def open_bounded(path: str, most: int) -> IO[bytes]:
    """The file, opened for reading, if it is a file and not larger than `most` bytes."""
    try:
        if Path(path).is_dir():
            raise InputError("this is a folder. Give a file.")
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
        size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise _not_found(path) from None
    except (OSError, ValueError) as error:
        raise InputError(
            "cannot be opened ({reason}). Check the name and the permissions.", reason=_reason(error)
        ) from None
    if size > most:
        file.close()
        raise InputError(
            "has {size} bytes; the limit here is {limit}. Give a smaller file.", size=f"{size:,}", limit=f"{most:,}"
        )
    return file


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _not_found(path: str) -> InputError:
    folder = Path(path).parent
    try:
        names = [entry.name for entry in list(folder.iterdir())[:1000]]
    except OSError:
        names = []
    likely = closest(Path(path).name, names)
    if likely is None:
        return InputError("there is no such file. Check the name, or where you are.")
    return InputError("there is no such file. Did you mean {likely}?", likely=str(folder / likely))


def read_bounded(path: str, most: int) -> bytes:
    """The bytes of a file; also a device or pipe is read no further than `most`."""
    with open_bounded(path, most) as file:
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise InputError("cannot be read ({reason}).", reason=_reason(error)) from None
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


def parse_json(text: str) -> Any:
    """The value of a JSON text; an error says the line."""
    import json

    try:
        return json.loads(text, parse_constant=str)
    except json.JSONDecodeError as error:
        raise InputError(
            "is not valid JSON at line {line}, column {column}: {what}.",
            line=error.lineno,
            column=error.colno,
            what=error.msg,
        ) from None
    except RecursionError:
        raise InputError("is nested too deep to be read.") from None
    except ValueError as error:
        raise InputError("is not valid JSON: {what}.", what=str(error)[:100]) from None


def array_from_npz(path: str, name: str) -> Any:
    """The array called `name` in an .npz file (or its only one)."""
    import zipfile

    with open_bounded(path, MOST_ARRAY_BYTES) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = [member.removesuffix(".npy") for member in archive.namelist()]
                if not name and len(members) == 1:
                    name = members[0]
                if name not in members:
                    raise _no_member(path, name, members)
                info = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
                if info.file_size > MOST_ARRAY_BYTES:
                    raise InputError(
                        "the array {name} unpacks to {size} bytes; the limit here is {limit}.",
                        name=name,
                        size=f"{info.file_size:,}",
                        limit=f"{MOST_ARRAY_BYTES:,}",
                    )
                with archive.open(info) as member:
                    return read_array(member)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
            raise InputError(
                "is not a readable .npz file ({reason}). Write it with numpy.savez.", reason=str(error)[:100]
            ) from None


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


def read_array(file: IO[bytes]) -> Any:
    """A float64 array from an .npy stream; the header is checked before anything is allocated.

    Raises
    ------
    InputError
        Objects (pickles) are never loaded; text, complex and structured arrays are no matrices.
    """
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if header is None:
            raise InputError("is an .npy file of version {version}, which is not known here.", version=f"{version}")
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            raise InputError(
                "holds Python objects, which are never loaded (a pickle can run code)."
                " Save plain numbers: numpy.save(name, array.astype(float))."
            )
        if dtype.kind not in "fiub":
            raise InputError("holds {kind}, not real numbers. Save plain floats or integers.", kind=str(dtype))
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize if shape else dtype.itemsize
        if size > MOST_ARRAY_BYTES:
            raise InputError(
                "holds {size} bytes; the limit here is {limit}.", size=f"{size:,}", limit=f"{MOST_ARRAY_BYTES:,}"
            )
        data = file.read(size)
        if len(data) != size:
            raise InputError("stops in the middle of its array. Save it again.")
        array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    except (ValueError, SyntaxError, EOFError, MemoryError, OverflowError, TypeError) as error:
        raise InputError(
            "is not a readable .npy file ({reason}). Write it with numpy.save.", reason=str(error)[:100]
        ) from None
    values = array.astype(np.float64)
    if np.isnan(values).any():
        index = tuple(int(i) + 1 for i in np.argwhere(np.isnan(values))[0])
        raise InputError("holds NaN at {index}, which is not a number to calculate with.", index=str(list(index)))
    return values.reshape(1, -1) if values.ndim == 0 else values
