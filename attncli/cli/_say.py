"""Where words go: results to standard output, one message to standard error, in the reader's language."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence

from attncli.core.message import N_, Language, Message
from attncli.core.reasons import of_system
from attncli.locale import CODES, from_environment, language


class OutputClosedError(OSError):
    """Standard output was closed before everything was written."""


class OutputError(OSError):
    """Standard output took no more: the disk it goes to is full, or nobody reads it any longer."""


class ClosedOutput(io.TextIOBase):
    """Stands in for a standard output that was closed before the start: what is written to it is an error."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        raise OutputClosedError


class Say:
    """The language of one run of the command line, and its two outputs."""

    def __init__(self, code: str, *, asked: bool, instead: str = "en", words: Sequence[str] = ()) -> None:
        self.code = code
        #: The command line: which files it names is known from it.
        self.words = tuple(words)
        self.instead = instead if instead in CODES else "en"
        self.asked = asked
        self._language: Language | None = None

    @classmethod
    def from_words(cls, words: Sequence[str], environment: Mapping[str, str]) -> Say:
        """The language named by --lang, else by ATTNCLI_LANG, else by the locale."""
        usual = from_environment(environment)
        code, asked = usual, bool(environment.get("ATTNCLI_LANG", "").strip())
        for i, word in enumerate(words):
            if word == "--lang" and i + 1 < len(words):
                code, asked = words[i + 1], True
            elif word.startswith("--lang="):
                code, asked = word.partition("=")[2], True
        return cls(code, asked=asked, instead=usual, words=words)

    def check(self) -> None:
        """Raise InputError if the language that was asked for does not exist."""
        if self.code not in CODES:
            language(self.code)

    @property
    def language(self) -> Language:
        """The language; where it is unknown the usual one, and English where the terminal cannot show Chinese."""
        if self._language is None:
            code = self.code if self.code in CODES else self.instead
            if code == "zh" and not _can_show_chinese(_encoding()):
                code = "en"
            self._language = language(code)
        return self._language

    def text(self, template: str, **fields: object) -> str:
        """A text in the language. Templates are marked for the catalogues by this name."""
        return Message(template, **fields).text(self.language)

    def out(self, text: str) -> None:
        """Write to standard output, whole; signs that it cannot show are replaced."""
        self.out_bytes(self.fitted(text).encode(_encoding(), "backslashreplace"))

    @staticmethod
    def fitted(text: str) -> str:
        """The text with other signs for those that standard output cannot show."""
        from attncli.render.glyphs import fitted

        encoding = _encoding()
        if encoding.lower().startswith("utf"):
            return text
        return fitted(text, encoding).encode(encoding, "backslashreplace").decode(encoding)

    @staticmethod
    def out_bytes(data: bytes) -> None:
        stream = getattr(sys.stdout, "buffer", None)
        if sys.stdout is None or stream is None:
            raise OutputClosedError
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
            encoding = sys.stderr.encoding or "utf-8"
            with contextlib.suppress(OSError, AttributeError):
                sys.stderr.buffer.write(text.encode(encoding, "backslashreplace"))
                sys.stderr.flush()
        return 2

    @staticmethod
    def interrupted() -> Message:
        return Message(N_("stopped."))

    @staticmethod
    def read_failed(error: OSError) -> Message:
        """What to say where reading failed at a place that has no word of its own for it."""
        if error.filename:
            return Message(
                N_("{path}: cannot be read ({reason})."), path=os.fsdecode(error.filename), reason=of_system(error)
            )
        return Message(N_("the input cannot be read ({reason})."), reason=of_system(error))

    @staticmethod
    def fault(error: BaseException, words: Sequence[str]) -> Message:
        """What to say where attncli itself has failed: everything that a report needs, in one line."""
        from attncli import __version__
        from attncli.marking.grade import where_it_failed

        return Message(
            N_(
                "this is a fault of attncli itself, not of what was given: {what}. Please report it with this line. Version {version}, Python {python}, command: attncli {command}"
            ),
            what=where_it_failed(error),
            version=__version__,
            python=".".join(map(str, sys.version_info[:3])),
            command=shlex.join(word[:100] for word in words)[:600],
        )

    @staticmethod
    def too_deep() -> Message:
        return Message(N_("the input is nested too deep to be read. Write it flatter."))

    @staticmethod
    def too_large() -> Message:
        return Message(N_("this needs more memory than there is. Use smaller matrices."))

    @staticmethod
    def output_failed(error: OSError) -> Message:
        """What to say where writing failed; Python's own attempt to flush at exit is called off."""
        drop_output()
        if isinstance(error, OutputClosedError):
            return Message(N_("the output was closed before everything was written."))
        return Message(
            N_("cannot write the output ({reason}). Check the place and the permissions."),
            reason=of_system(error),
        )


def drop_output() -> None:
    """What is still to be written goes nowhere: Python would try again at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _encoding() -> str:
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
