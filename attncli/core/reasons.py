"""Why a file could not be read or written, in our own words: those of the parsers and of the system are English only."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from attncli.core.message import N_, Message

_QUOTE = N_("a quotation mark is missing at the end of a text")
_TWICE = N_("a name occurs twice")
_BACKSLASH = N_("a backslash in a text needs a second one before it")
_SIGN = N_("a character that is not allowed there")

#: The beginnings of what Python's TOML reader says (spaces as _), and what it means.
_TOML = (
    ("Expected_'='", N_("a name is not followed by =")),
    ("Invalid_value", N_('the value cannot be read; text and matrices go in quotes, like "1 2; 3 4"')),
    ("Unclosed_array", N_("a [ is not closed, or a comma is missing after it")),
    ("Unclosed_inline_table", N_("a {{ is not closed, or a comma is missing after it")),
    ("Unterminated_string", _QUOTE),
    ('Expected_"', _QUOTE),
    ("Expected_']", N_("the name of a table is not closed by ]")),
    ("Expected_newline", N_("the line goes on where it should end; a matrix or a text needs quotes")),
    ("Invalid_statement", N_("this is not an entry; write name = value")),
    ("Cannot_overwrite", _TWICE),
    ("Cannot_declare", _TWICE),
    ("Cannot_redefine", _TWICE),
    ("Cannot_mutate", _TWICE),
    ("Duplicate", _TWICE),
    ("Unescaped", _BACKSLASH),
    ("Invalid_hex", _BACKSLASH),
    ("Escaped", _BACKSLASH),
    ("Illegal_character", _SIGN),
    ("Found_invalid_character", _SIGN),
    ("Invalid_initial_character", N_("a name is missing, or begins with a sign that names do not have")),
    ("Invalid_date", N_("this date does not exist")),
)

#: The same for JSON.
_JSON = (
    ("Expecting_value", N_("a value is missing, or cannot be read")),
    ("Expecting_property_name", N_("a name in double quotes is missing; there is no comma before }}")),
    ("Expecting_':'", N_("a : is missing after a name")),
    ("Expecting_','", N_("a comma or a closing bracket is missing")),
    ("Illegal_trailing_comma", N_("there is one comma too many before a closing bracket")),
    ("Unterminated_string", _QUOTE),
    ("Invalid_control_character", N_("a text contains a line break or another control character")),
    ("Invalid_\\", _BACKSLASH),
    ("Extra_data", N_("there is something after the end")),
)

#: What the system says by number.
_SYSTEM = {
    errno.EACCES: N_("you do not have permission"),
    errno.EPERM: N_("you do not have permission"),
    errno.ENOENT: N_("there is no such file or folder"),
    errno.ENOTDIR: N_("part of the path is not a folder"),
    errno.EISDIR: N_("it is a folder"),
    errno.ENOSPC: N_("the disk is full"),
    errno.EROFS: N_("the disk can only be read"),
    errno.ENAMETOOLONG: N_("the name is too long"),
    errno.EEXIST: N_("a file of that name is there already"),
    errno.EMFILE: N_("too many files are open"),
}

_PLACE = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)


def of_toml(error: ValueError) -> Message:
    """What is wrong with a TOML text, and where."""
    wording = str(error)[:200]
    placed = _PLACE.fullmatch(wording)
    if placed is None:
        return _plain(wording)
    what = _known(placed["what"], _TOML)
    if placed["line"] is None:
        return Message(N_("{what} (at the end of the file)"), what=what)
    return Message(N_("{what} (line {line}, column {column})"), what=what, line=placed["line"], column=placed["column"])


def of_json(wording: str) -> Message:
    """What is wrong with a JSON text."""
    return _known(wording, _JSON)


def of_system(error: Exception) -> Message:
    """Why the system refused to read or write."""
    number = getattr(error, "errno", None)
    if number in _SYSTEM:
        return Message(_SYSTEM[number])
    return _plain(getattr(error, "strerror", None) or str(error))


def of_library(error: Exception) -> Message:
    """What another library says, where it says anything; never the address of an object."""
    words = re.sub(r"<[^<>]*\b0x[0-9a-f]+>|\bat 0x[0-9a-f]+", "", str(error))[:120].strip()
    return _plain(words) if words else Message(N_("no reason is given"))


def _known(wording: str, table: tuple[tuple[str, str], ...]) -> Message:
    return next(
        (Message(text) for start, text in table if wording.replace(" ", "_").startswith(start)), _plain(wording)
    )


def _plain(text: str) -> Message:
    """Words that nobody has translated, as they are."""
    return Message("{words}", words=text)


def where_it_failed(error: BaseException) -> str:
    """Of an error that is our own fault: its kind, its words, and the place in the code.

    Nowhere else do Python's names stand in a message: here they are what whoever mends it needs.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    words = re.sub(r" at 0x[0-9a-f]+", "", f"{error}")[:150]
    return f"{type(error).__name__}: {words}{place}"
