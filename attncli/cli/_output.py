"""Where a run goes: the screen, standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attncli.cli._say import Say
from attncli.core.message import N_, InputError, Language, Message, unknown
from attncli.core.outputs import RUN, check_output, is_folder, write_whole

_ENDINGS = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".csv": "csv", ".npz": "npz",
    ".html": "html", ".htm": "html", ".svg": "svg", ".txt": "table", ".xlsx": "xlsx",
}  # fmt: skip


def show(say: Say, result: Any, words: Mapping[str, Any], lesson: Any = None) -> None:
    """Write a run to the screen or to a file; with a lesson, as a worked example."""
    from attncli import render

    target = words.get("output")
    format = format_of(words.get("format"), target, render.formats())
    if target is not None:
        check_output(target, RUN, inputs_of(say.words), force=True)  # before long work
    printed = render.printer(format)
    render.check_size(result, format, expand=bool(words.get("expand")))
    view = view_of(say, result, words, format, lesson, to_file=target is not None)
    if format == "table" and target is None:
        from attncli.cli._terminal import print_table

        print_table(say, view)
        return
    content: str | bytes = printed(view)
    if target is not None:
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        write_file(say, target, data, RUN, force=bool(words.get("force")))
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


def view_of(say: Say, result: Any, words: Mapping[str, Any], format: str, lesson: Any, *, to_file: bool) -> Any:
    """What is to be shown of a run, as the options say."""
    from attncli.render.view import view

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
        raise is_folder(name, option, example)
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            "{option} {path}: you cannot write to the folder {folder}, or it does not exist. Choose another path.",
            option=option,
            path=name,
            folder=str(folder),
        )


def write_file(
    say: Say,
    name: str,
    data: bytes,
    kind: str,
    option: str = "-o",
    example: str = "trace.md",
    *,
    force: bool,
) -> None:
    """Write a file whole or not at all, over nothing but a file that attncli has written for the same purpose.

    Raises
    ------
    InputError
        It cannot be written there, is one of the inputs, or is somebody else's.
    """
    check_output(name, kind, inputs_of(say.words), data[:_TITLE], option=option, force=force)
    write_whole(name, data, option, example)


#: Bytes of what is to be written that are looked at for its title.
_TITLE = 4096


#: Options whose values are places to write to.
_TARGETS = ("-o", "--output", "--save", "--feedback")


def inputs_of(words: Sequence[str]) -> list[str]:
    """Files that the words of a command line may mean as inputs: FILE, @FILE, NAME=@FILE.npz:MEMBER."""
    found: list[str] = []
    before = ""
    for word in words:
        if before not in _TARGETS and not word.startswith(_TARGETS):
            for text in (word, word.partition("=")[2], word.partition("@")[2]):
                found += [text, f"{text.partition('.npz:')[0]}.npz"] if ".npz:" in text else [text]
        before = word
    return [name for name in found if name and len(name) < _LONGEST]


#: Characters of a path beyond which no system has files.
_LONGEST = 4096
