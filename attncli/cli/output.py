"""Where words go: results to standard output or into a file, one message to standard error, in the reader's language."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from attncli.core.message import InputError, Language, Message, unknown
from attncli.core.outputs import RUN, check_output, write_whole
from attncli.locale import CODES, from_environment, language

if TYPE_CHECKING:
    from attncli.core.report import Report
    from attncli.problems.lesson import Lesson
    from attncli.problems.problem import Run
    from attncli.render.document import Block
    from attncli.render.view import View

#: What was given to a command, by the names of its words: text, a list of texts, or whether a flag stands there.
Words: TypeAlias = Mapping[str, Any]

# Words.


class OutputError(OSError):
    """Standard output took no more: the disk it goes to is full, nobody reads it any longer, or (without a number) it was closed."""


class ClosedOutput(io.TextIOBase):
    """Stands in for a standard output that was closed before the start: what is written to it is an error."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        raise OutputError


class Say:
    """The language of one run of the command line, and its two outputs.

    Parameters
    ----------
    words : the command line; it may name the language, and which files it names is known from it
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self.words = tuple(words)
        #: The code that --lang gives, else ATTNCLI_LANG, else the locale; `_usual`: without --lang.
        self.code = self._usual = from_environment(environment)
        for word, after in zip(words, (*words[1:], None), strict=False):
            if word == "--lang" and after is not None:
                self.code = after
            elif word.startswith("--lang="):
                self.code = word.partition("=")[2]

    def check(self) -> None:
        """Raise InputError if the language that was asked for does not exist."""
        if self.code not in CODES:
            language(self.code)

    @cached_property
    def language(self) -> Language:
        """The language; where it is unknown the usual one, and English where the terminal cannot show Chinese."""
        code = next((code for code in (self.code, self._usual) if code in CODES), "en")
        return language("en" if code == "zh" and not _can_show_chinese(encoding()) else code)

    def text(self, template: str, **fields: object) -> str:
        """A text in the language. Templates are marked for the catalogues by this name."""
        return Message(template, **fields).text(self.language)

    def out(self, text: str) -> None:
        """Write to standard output, whole; signs that it cannot show are replaced."""
        self.out_bytes(self.fitted(text).encode(encoding(), "backslashreplace"))

    @staticmethod
    def fitted(text: str) -> str:
        """The text with other signs for those that standard output cannot show."""
        from attncli.locale.fit import fitted

        known = encoding()
        if known.lower().startswith("utf"):
            return text
        return fitted(text, known).encode(known, "backslashreplace").decode(known)

    @staticmethod
    def out_bytes(data: bytes) -> None:
        """Write to standard output.

        Raises
        ------
        OutputError
            It takes no more, or was closed.
        """
        stream = getattr(sys.stdout, "buffer", None)
        if sys.stdout is None or stream is None:
            raise OutputError
        left = memoryview(data)
        try:
            while left:  # with PYTHONUNBUFFERED a pipe takes only what fits into it
                written = stream.write(left)
                if not written:
                    raise OutputError(errno.EAGAIN, os.strerror(errno.EAGAIN))  # a pipe that does not wait is full
                left = left[written:]
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error

    def error(self, message: Message) -> int:
        """One message on standard error; returns the exit status 2."""
        text = f"attncli: {_visible(message.text(self.language))}\n"
        if sys.stderr is not None:
            if is_terminal(sys.stderr):  # in a pipe it stays one line
                from attncli.locale.fit import wrap

                text = wrap(text.rstrip(), width(stream=sys.stderr)) + "\n"
            with contextlib.suppress(OSError, AttributeError):
                sys.stderr.buffer.write(text.encode(sys.stderr.encoding or "utf-8", "backslashreplace"))
                sys.stderr.flush()
        return 2


def encoding() -> str:
    """The encoding of standard output, which may be closed."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _can_show_chinese(encoding: str) -> bool:
    try:
        "苹果".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _visible(text: str) -> str:
    """One line without control characters and without endless words: what came from a file must not drive the terminal."""
    shown = "".join(c if c.isprintable() else " " if c in "\r\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return re.sub(r"\S{200,}", lambda word: f"{word.group()[:100]}…{word.group()[-20:]}", shown)


# The screen.

WIDTH = 80
NARROWEST = 20


def width(*, to_file: bool = False, stream: TextIO | None = None) -> int:
    """Characters a line of standard output, or of `stream`, has: COLUMNS if it is set, else the terminal's, else 80."""
    stream = stream or sys.stdout
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < 10 and int(columns) > 0:
        return max(NARROWEST, min(int(columns), 1000))
    if not to_file and is_terminal(stream):
        try:
            # A terminal that was never told its size says 0.
            return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns or WIDTH)
        except (OSError, ValueError):
            return WIDTH
    return WIDTH


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks at what goes there."""
    return stream is not None and bool(stream.isatty())


class TypedLines:
    """What somebody types, line by line: edited on a terminal, read as it comes from a pipe and shown there, too.

    Raises
    ------
    InputError
        Standard input is closed.
    """

    #: Bytes of a line that are read, and characters of it that are shown.
    LONGEST, SHOWN = 200_000, 500

    def __init__(self, say: Say) -> None:
        if sys.stdin is None:
            raise InputError("Your answers are read from standard input, which is closed.")
        self.say = say
        self.is_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
        if self.is_terminal:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - input() then edits the line and remembers the ones before

    def __call__(self, prompt: str) -> str | None:
        """One line; None at the end of the input."""
        if self.is_terminal:
            return self._edited(prompt)
        data = sys.stdin.buffer.readline(self.LONGEST)
        line = data.decode("utf-8", "replace").rstrip("\r\n")
        shown = "".join(sign if sign.isprintable() else " " for sign in line[: self.SHOWN])
        self.say.out(f"{prompt}{shown}\n")
        return line if data else None

    def _edited(self, prompt: str) -> str | None:
        try:
            return input(self.say.fitted(prompt))
        except EOFError:
            self.say.out("\n")
            return None
        except UnicodeDecodeError:
            return "\N{REPLACEMENT CHARACTER}"


# Where a result goes.

_ENDINGS = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".csv": "csv", ".npz": "npz",
    ".html": "html", ".htm": "html", ".svg": "svg", ".txt": "table", ".xlsx": "xlsx",
}  # fmt: skip
#: Formats of a report.
REPORTS = ("table", "json", "markdown", "csv")


class _Buffer(io.StringIO):
    """Text kept back until all of it is there, with the encoding of the screen it is for."""

    encoding = "utf-8"


class Output:
    """Where the result of a command goes, as its options say: the screen, or the file of -o.

    A file is UTF-8, without colours and as wide as nobody said otherwise, whatever the screen can show.

    Parameters
    ----------
    words : of the command, by parameter name; of these format, output, force, expand and full are read
    """

    def __init__(self, say: Say, words: Words) -> None:
        self.say = say
        self.asked: str | None = words.get("format")
        self.expand, self.full, self.force = (bool(words.get(name)) for name in ("expand", "full", "force"))
        self.target: str | None = words.get("output")
        self.to_file = self.target is not None
        self.language = language(say.code) if self.to_file else say.language
        self.encoding = "utf-8" if self.to_file else encoding().lower()
        self.width = width(to_file=self.to_file)

    def format(self, known: Sequence[str], endings: Mapping[str, str] = _ENDINGS) -> str:
        """The format that is asked for, or that the file's ending means: table, where it means none.

        Raises
        ------
        InputError
            It is none of these; the likely one is suggested.
        """
        if self.asked is not None:
            if self.asked not in known:
                raise unknown(Message("The format"), self.asked, list(known))
            return self.asked
        meant = endings.get(Path(self.target).suffix.lower(), "table") if self.target else "table"
        if meant not in known:
            raise InputError(
                "-o {path}: this ending means {format}, which does not exist here. Choose another ending, or --format {choices}.",
                path=self.target, format=meant, choices="|".join(known),
            )  # fmt: skip
        return meant

    def text(self, blocks: Iterable[Block], language: Language | None = None, *, coloured: bool = True) -> str:
        """The text of blocks: a table of a file, or what a screen shows in the colours it has.

        Parameters
        ----------
        language : of the blocks, where their rows are columns
        """
        from attncli.render.document import say_in
        from attncli.render.terminal import coloured_text, plain_text

        said = say_in(language or self.language)
        has_colours = is_terminal(sys.stdout) or bool(os.environ.get("FORCE_COLOR"))
        if self.to_file or not coloured or not has_colours:
            return plain_text(blocks, said, width=self.width, encoding=self.encoding)
        from rich.console import Console

        buffer = _Buffer()
        buffer.encoding = self.encoding
        # With a height too, Rich does not look at the environment again.
        console = Console(file=buffer, width=self.width, height=25, force_terminal=True, legacy_windows=False)
        coloured_text(blocks, said, console)
        return buffer.getvalue()

    def view(self, run: Run, lesson: Lesson | None = None, format: str = "table") -> View:
        """What is to be shown of a run, as the options say."""
        from attncli.render.view import view

        room = self.width if format in ("table", "svg") else None
        return view(run, self.language, expand=self.expand, width=room, full=self.full, lesson=lesson)

    def show(self, run: Run, lesson: Lesson | None = None) -> None:
        """Write a run; with a lesson, as a worked example."""
        from attncli import render

        format = self.format(render.formats())
        if self.target is not None:
            check_output(self.target, RUN, inputs_of(self.say.words), force=True)  # before long work
        print_run = render.printer(format)
        render.check_size(run, format, expand=self.expand)
        view = self.view(run, lesson, format)
        if format == "table" and self.target is None:
            from attncli.render.run import screen

            self.say.out(self.text(screen(view), view.language))
            return
        content = print_run(view)
        if isinstance(content, bytes) and self.target is None and is_terminal(sys.stdout):
            raise InputError("{format} is not for a screen. Give a file: -o trace.{format}", format=format)
        self.write(content, RUN)

    def page(self, blocks: Iterable[Block], format: str, *, coloured: bool = True) -> str:
        """Blocks as Markdown, or as a table."""
        if format != "markdown":
            return self.text(blocks, coloured=coloured)
        from attncli.render.document import say_in
        from attncli.render.markdown import as_markdown

        return as_markdown(blocks, say_in(self.language))

    def write_report(self, report: Report, format: str = "table") -> None:
        """Write what an experiment, a training or a continuation has found."""
        from attncli.core.outputs import REPORT
        from attncli.render import data
        from attncli.render.report import page

        if format == "json":
            text = data.report_json(report, self.language)
        elif format == "csv":
            text = data.report_csv(report, self.language)
        else:
            text = self.page(page(report), format, coloured=False)
        self.write(text, REPORT)

    def write(self, content: str | bytes, kind: str, example: str = "trace.md") -> None:
        """Write what is complete."""
        if self.target is not None:
            data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
            write_file(self.say, self.target, data, kind, example=example, force=self.force)
        elif isinstance(content, bytes):
            self.say.out_bytes(content)
        else:
            self.say.out(content)


def write_file(
    say: Say, name: str, data: bytes, kind: str, option: str = "-o", example: str = "trace.md", *, force: bool
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
#: Characters of a path beyond which no system has files.
_LONGEST = 4096


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
