"""Where a class's sheets lie: folders, files of a whole class, a stream. One after another, never all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO

from attncli.core.message import N_, AttnError, InputError, Message, of_system
from attncli.marking.class_files import columns, csv_rows_of, json_lines, json_lines_of, opened, texts_of
from attncli.marking.ledger import BESIDE
from attncli.marking.submission import Submission

_ENDINGS = frozenset({".json", ".toml", ".npz"})
_CLASSES = frozenset({".jsonl", ".csv"})
#: Names of files that lie beside sheets and are none; a sheet or a folder of such a name is a student's.
_BESIDE = frozenset({"readme", "thumbs", "desktop", "license"})


def submissions(
    paths: Sequence[str],
    stdin: IO[bytes],
    known: Callable[[str], bool] = lambda name: True,
    beside: Collection[Path] = (),
) -> Iterator[Submission | None]:
    """Every sheet of these places, in a fixed order; None where the next one of a stream has not arrived yet.

    Parameters
    ----------
    known : whether a column of a CSV is a step of the exercise; others are left out
    beside : resolved paths that lie among the sheets and are none, like the exercise or the results

    Raises
    ------
    InputError
        A place that does not exist or cannot be opened; at once, before any sheet is read.
    """
    if list(paths).count("-") > 1:
        raise InputError("Standard input (-) is given twice. Keep one.")
    for path in paths:
        if path != "-":
            _check(path)
    return _all(paths, stdin, known, beside)


def _check(path: str) -> None:
    if Path(path).is_char_device():
        # One like /dev/zero never comes to the end of its first line.
        raise InputError(
            "{path}: this is a device, not a file of sheets. Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
        )
    try:
        if Path(path).is_dir():
            next(Path(path).iterdir(), None)
        elif _iscsv_rows_of(path):
            columns(path)
        else:
            opened(path).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "{path}: cannot be opened ({reason}). Give a folder of sheets, a .jsonl or .csv file, or -.",
            path=path,
            reason=of_system(error),
        ) from None


def _iscsv_rows_of(path: str) -> bool:
    return path.lower().endswith(".csv")


def _all(
    paths: Sequence[str], stdin: IO[bytes], known: Callable[[str], bool], beside: Collection[Path]
) -> Iterator[Submission | None]:
    for path in paths:
        if path == "-":
            yield from json_lines(texts_of(stdin, live=True))
        elif Path(path).is_dir():
            yield from _folder(Path(path), known, beside)
        elif _iscsv_rows_of(path):
            yield from csv_rows_of(path, known)
        elif Path(path).suffix.lower() in _ENDINGS:
            yield Submission("file", Path(path).stem, path)
        else:
            yield from json_lines_of(path)


def _folder(folder: Path, known: Callable[[str], bool], beside: Collection[Path]) -> Iterator[Submission | None]:
    """Sheets of a folder by name; also one folder a student, as other systems export them."""
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if _is_beside(path, ending) or path.resolve() in beside:
            continue
        if path.is_symlink():
            yield _broken(path, N_("This is a link; links are not followed."))
        elif path.is_dir():
            yield _in_own_folder(path)
        elif not path.is_file():
            yield _broken(path, N_("This is not a file."))
        elif ending in _ENDINGS:
            yield Submission("file", path.stem, str(path), placed=True)
        elif ending == ".jsonl":
            yield from json_lines_of(str(path))
        elif ending == ".csv":
            try:
                columns(str(path))
            except AttnError as error:
                yield Submission("broken", path.stem, fault=error.message)
                continue
            yield from csv_rows_of(str(path), known)
        else:
            yield _broken(path, N_("This is not a sheet: sheets end in .json, .toml or .npz."))


def _is_beside(path: Path, ending: str) -> bool:
    """Whether this lies among the sheets and is none: hidden, a readme, or results with what belongs to them."""
    if path.name.startswith((".", "__")) or ending == BESIDE:
        return True
    if ending in _CLASSES and path.with_name(path.name + BESIDE).is_file():
        return True
    return path.stem.casefold() in _BESIDE and ending not in _ENDINGS | _CLASSES and not path.is_dir()


def _broken(path: Path, why: str, **fields: object) -> Submission:
    return Submission("broken", path.stem, fault=Message(why, **fields))


def _in_own_folder(folder: Path) -> Submission:
    """The sheet in a student's own folder: the file called answers, else the only one that can be a sheet."""
    try:
        inside = sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in _ENDINGS and not file.is_symlink() and file.is_file()
        )
    except OSError:
        inside = []
    answers = [file for file in inside if file.stem.casefold() == "answers"] or inside
    if not answers:
        return Submission("broken", folder.name, fault=Message(N_("There is no sheet in this folder.")))
    if len(answers) > 1:
        names = ", ".join(file.name for file in answers[:5])
        return Submission(
            "broken",
            folder.name,
            fault=Message(N_("There are several sheets in this folder: {names}. Keep one."), names=names),
        )
    return Submission("file", folder.name, str(answers[0]), placed=True)
