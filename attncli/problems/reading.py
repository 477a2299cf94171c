"""Files as text and as data: TOML, JSON. Every read is bounded, and what is wrong is said in our own words and languages."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from attncli.arithmetic.expression import shown
from attncli.core.message import N_, InputError, Message, closest, of_system, unknown, untranslated

if TYPE_CHECKING:
    from pydantic import ValidationError

#: Digits of a whole number in JSON that is read as a number.
_MOST_DIGITS = 40


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


def decoded(data: bytes) -> str:
    """The text in these bytes, which must be UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "is not UTF-8 text (byte {position} is 0x{byte}). Save it as UTF-8; a NumPy file needs the ending .npy or .npz.",
            position=error.start + 1,
            byte=f"{data[error.start]:02x}",
        ) from None


class Literal(float):
    """A number of a file with its text: 0.50 keeps its two decimals, 1e400 is not taken for infinity."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Literal:
        number = super().__new__(cls, text)
        number.text = text.replace("_", "")
        return number


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


def toml_key(name: str) -> str:
    """A name as TOML writes it before an equals sign."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


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


def _no_number(text: str) -> NoReturn:
    raise InputError("{given} is not a number in JSON. Write a finite number.", given=text)


def _short(text: str) -> int:
    """A whole number; to read one of thousands of digits would take forever."""
    if len(text) > _MOST_DIGITS:
        raise InputError(
            "a whole number there has {count} digits. Write at most {most}.", count=len(text), most=_MOST_DIGITS
        )
    return int(text)


def _json(text: str, **reading: Any) -> Any:
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


def _whole(text: str) -> int | Literal:
    return int(text) if len(text) <= 400 else Literal(text)


def _table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a key that stands twice is an error, where Python would keep the last."""
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise InputError("the key “{key}” occurs twice. Keep one.", key=key[:40])
        table[key] = value
    return table


def parse_csv(text: str, *, strict: bool = False) -> list[list[str]]:
    """The rows of a small CSV that have cells."""
    import csv
    import io

    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), strict=strict) if row]
    except csv.Error as error:
        raise InputError("this is not a CSV that can be read ({reason}).", reason=str(error)) from None


#: Tables in one another that are opened.
_MOST_TABLES = 8


def flat(
    table: Mapping[str, object],
    is_part: Callable[[object, dict[str, object]], bool] = lambda name, value: True,
    part: str = "",
) -> Iterator[tuple[str, object]]:
    """The entries of a table; those of a part of a model may stand in a table of its own: [self] with A is self.A."""
    for name, value in table.items():
        if isinstance(value, dict) and value and part.count(".") < _MOST_TABLES and is_part(name, value):
            yield from flat(value, is_part, f"{part}{name}.")
        else:
            yield f"{part}{name}", value


def brief(value: object) -> str:
    """A value for a message, as a file writes it: short, whatever it is. Only who calls from Python can give other objects."""
    try:
        if value is None or isinstance(value, (bool, list, dict)):
            return shown(json.dumps(value, ensure_ascii=False, default=str))
        return shown(re.sub(r" at 0x[0-9a-f]+", "", str(value)))
    except (ValueError, RecursionError):  # an integer of more digits than Python writes out, or lists without end
        return "…"


# --- What the parsers say, in our own words: theirs are English only ------------------------------------------------

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

_PLACE = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)


def of_toml(error: ValueError) -> Message:
    """What is wrong with a TOML text, and where."""
    wording = str(error)[:200]
    placed = _PLACE.fullmatch(wording)
    if placed is None:
        return untranslated(wording)
    what = _known(placed["what"], _TOML)
    if placed["line"] is None:
        return Message("{what} (at the end of the file)", what=what)
    return Message("{what} (line {line}, column {column})", what=what, line=placed["line"], column=placed["column"])


def of_json(wording: str) -> Message:
    """What is wrong with a JSON text."""
    return _known(wording, _JSON)


def _known(wording: str, table: tuple[tuple[str, str], ...]) -> Message:
    return next(
        (Message(text) for start, text in table if wording.replace(" ", "_").startswith(start)), untranslated(wording)
    )


# --- What pydantic finds wrong, said in our words and languages: the key, what stands there, what was expected --------

_EXPECTED = {
    "string_type": N_("text in quotes"),
    "string_unicode": N_("text in quotes"),
    "int_type": N_("a whole number"),
    "int_parsing": N_("a whole number"),
    "int_from_float": N_("a whole number"),
    "float_type": N_("a number"),
    "float_parsing": N_("a number"),
    "bool_type": N_("true or false"),
    "dict_type": N_("a table of keys"),
    "model_type": N_("a table of keys"),
    "list_type": N_("a list in [ ]"),
    "too_short": N_("a list of 1 to 3 numbers"),
    "too_long": N_("a list of 1 to 3 numbers"),
    "finite_number": N_("a finite number"),
}


_RELATIONS = {"greater_than_equal": ("≥", "ge"), "less_than_equal": ("≤", "le"), "greater_than": (">", "gt")}


def complaint(
    error: ValidationError,
    root: str,
    known: Callable[[list[str]], list[str]],
    expected: Mapping[str, str] | None = None,
) -> InputError:
    """The error for pydantic's first complaint.

    Parameters
    ----------
    root : what the file as a whole is called
    known : the keys that may stand where an unknown one was found, from the path to it
    expected : what was expected, by kind of complaint, where it is not what it usually is
    """
    errors = error.errors()
    # A misspelt key is also a missing one; what stands there says more than what does not.
    found = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    path = [str(part) for part in found["loc"] if part != "[key]"]
    if path[:1] == ["decimals"] and path[-1] == "default":
        path.pop()
    key = ".".join(path) or root
    kind, context = found["type"], found.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown(Message("The key"), key, known(path))
    if kind == "missing":
        return InputError("the key “{key}” is missing. Add it.", key=key)
    given = brief(found.get("input"))
    if kind == "literal_error":
        choices = context["expected"].replace(" or ", ", ")
        return InputError(
            "{key}: “{given}” is not allowed here. Write {choices}.", key=key, given=given, choices=choices
        )
    if kind in _RELATIONS:
        sign, bound = _RELATIONS[kind]
        return InputError(
            "{key}: {given} is out of range: it must be {relation} {bound}.",
            key=key,
            given=given,
            relation=sign,
            bound=f"{context[bound]:g}",
        )
    if kind == "string_pattern_mismatch":
        return InputError(
            "{key}: “{given}” does not work as a name. Use letters, digits, “-”, “_” and “.”.", key=key, given=given
        )
    words = (expected or {}).get(kind) or _EXPECTED.get(kind)
    if words is None:
        return InputError("{key}: “{given}” is not allowed here.", key=key, given=given)
    return InputError("{key}: found “{given}”, expected {expected}.", key=key, given=given, expected=Message(words))
