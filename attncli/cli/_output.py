"""Where a run goes: the screen, standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attncli.cli._say import Say
from attncli.message import N_, InputError, Language, Message, unknown
from attncli.reasons import of_system

_ENDINGS = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".csv": "csv", ".npz": "npz",
    ".html": "html", ".htm": "html", ".svg": "svg", ".txt": "table", ".xlsx": "xlsx",
}  # fmt: skip


def show(say: Say, result: Any, words: Mapping[str, Any], lesson: Any = None) -> None:
    """Write a run to the screen or to a file; with a lesson, as a worked example."""
    from attncli import render

    target = words.get("output")
    format = format_of(words.get("format"), target, render.names())
    module = render.get(format)
    view = _view(say, result, words, format, lesson, to_file=target is not None)
    if format == "table" and target is None:
        from attncli.cli._terminal import print_table

        print_table(say, view)
        return
    content: str | bytes = module.render(view)
    if target is not None:
        write_file(target, content if isinstance(content, bytes) else content.encode("utf-8"))
    elif isinstance(content, bytes):
        if sys.stdout is not None and sys.stdout.isatty():
            raise InputError("{format} is not for a screen. Give a file: -o trace.{format}", format=format)
        say.out_bytes(content)
    else:
        say.out(content)


def format_of(format: str | None, target: str | None, known: Sequence[str]) -> str:
    """The format that is asked for, or that the file's ending means: table, where it means none.

    Raises
    ------
    InputError
        It is none of these; the likely one is suggested.
    """
    if format is None:
        meant = _ENDINGS.get(Path(target).suffix.lower(), "table") if target else "table"
        if meant not in known:
            raise InputError(
                "-o {path}: this ending means {format}, which does not exist here. Choose another ending, or --format {choices}.",
                path=target,
                format=meant,
                choices="|".join(known),
            )
        return meant
    if format not in known:
        raise unknown(Message(N_("The format")), format, list(known))
    return format


def language_of(say: Say, *, to_file: bool) -> Language:
    """The language to write in: a file is UTF-8 whatever the screen can show."""
    from attncli.locale import language

    return language(say.code) if to_file else say.language


def _view(say: Say, result: Any, words: Mapping[str, Any], format: str, lesson: Any, *, to_file: bool) -> Any:
    from attncli.render._view import view

    width = None
    if format in ("table", "svg"):
        from attncli.cli._terminal import width as terminal_width

        width = terminal_width(to_file=to_file)
    return view(
        result,
        language_of(say, to_file=to_file),
        expand=bool(words.get("expand")),
        layout=result.problem.layout,
        width=width,
        full=bool(words.get("full")),
        lesson=lesson,
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
        raise _is_folder(name, option, example)
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            "{option} {path}: you cannot write to the folder {folder}, or it does not exist. Choose another path.",
            option=option,
            path=name,
            folder=str(folder),
        )


def _is_folder(name: str, option: str, example: str) -> InputError:
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


def write_file(name: str, data: bytes, option: str = "-o", example: str = "trace.md") -> None:
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
            raise _is_folder(name, option, example)
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
        raise InputError(
            "{option} {path}: cannot be written ({reason}). Check that the folder exists and that you may write there.",
            option=option,
            path=name,
            reason=of_system(error),
        ) from None
    finally:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
