r"""A text as a screen can show it: broken into lines of a width, with signs that its encoding has.

Chinese has no spaces between words: a line may end after any character, but not before a closing sign nor after an
opening one. A Chinese character takes two columns of a terminal (Unicode Standard Annex 11, East Asian Width).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

_CLOSING = frozenset("，。；：！？、）”’》】」』〉…·%,.;:!?)]}")
#: A name longer than this stands on a line of its own.
_LONGEST_NAME = 30
#: Columns a text needs beside its name; where there are fewer, it goes below.
_BESIDE = 32
#: A space that stays within its line.
NO_BREAK = "\N{NO-BREAK SPACE}"
#: What a command begins with.
_CALLED = (
    r"(?:attncli (?:forward|backward|why|check|grade|worksheet|examples|models|compare|train|generate|lab|practice|--help)"
    r"|pip[ ]install)(?![\w-])"
)
#: A word behind it: with quotes, and with full stops that end no sentence.
_ARGUMENT = r"""(?:'[^']*'|"[^"]*"|[.,;](?=[^\s'"])|[^\s'".,;(（。，；）])+"""
#: A word behind it that cannot be one of the sentence around it.
_CERTAIN = r"(?:list|run|show|verify|report|forget|--?[a-z-]+|[A-Z]{2,})(?!\w)"
#: What is to be typed: behind a colon to the end of the sentence, elsewhere as far as is certain.
_COMMAND = rf"(?:(?<=: )|(?<=：)){_CALLED}(?: {_ARGUMENT})*|{_CALLED}(?: {_CERTAIN})*"
#: A word or a command, and the spaces before it.
_WORD = rf"([^\S{NO_BREAK}]*)((?:{_COMMAND})|(?:(?!{_CALLED})[\S{NO_BREAK}])+)"
_OPENING = frozenset("（“‘《【「『〈([{")


def columns(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


@lru_cache(4096)
def _columns_of(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if _is_wide(sign) else 1


def _is_wide(sign: str) -> bool:
    return unicodedata.east_asian_width(sign) in "WF"


def padded(text: str, width: int) -> str:
    """The text with spaces up to a number of columns."""
    return text + " " * (width - columns(text))


def wrap(text: str, width: int, first: str = "", rest: str = "") -> str:
    """The text in lines of at most `width` columns; the first begins with `first`, the others with `rest`.

    Spaces within a line stay as many as they are. A command stays on one line, however long, to be copied.
    """
    if "\n" not in text and columns(first) + columns(text) <= width:
        return (first + text).rstrip(" ").replace(NO_BREAK, " ")
    lines: list[str] = []
    line, empty = first, True
    for gap, piece in _pieces(text):
        if empty and line.strip() and columns(line + piece) > width >= columns(rest + piece):
            lines.append(line.rstrip(" "))
            line, gap = rest, ""
        if not empty and columns(line) + len(gap) + columns(piece) > width:
            lines.append(line)
            line, gap, empty = rest, "", True
        line += gap + piece
        empty = False
        while columns(line) > width and " " not in piece:
            cut = fitting(line, max(width, columns(rest) + 2))
            if cut == len(line):
                break
            lines.append(line[:cut])
            line = rest + line[cut:]
    return "\n".join([*lines, line]).rstrip(" ").replace(NO_BREAK, " ")


def definitions(rows: Sequence[tuple[str, str]], width: int, indent: str = "", *, least: int = 0) -> Iterator[str]:
    """Names with their texts: beside each other where there is room, else each text below its name.

    Parameters
    ----------
    least : columns that names have at least, so that several lists line up
    """
    longest = min(max((columns(name) for name, _ in rows), default=0), _LONGEST_NAME)
    longest = max(longest, min(least, _LONGEST_NAME))
    rest = " " * (len(indent) + longest + 2)
    beside = width - len(rest) >= _BESIDE
    if not beside:
        rest = indent + " " * 4
    for name, text in rows:
        if beside and columns(name) <= longest:
            yield wrap(text, width, padded(indent + name, len(rest)), rest)
        else:
            yield indent + name
            yield wrap(text, width, rest, rest)


def _pieces(text: str) -> list[tuple[str, str]]:
    """What stays together on a line, and the spaces before it."""
    pieces: list[tuple[str, str]] = []
    for spaces, word in re.findall(_WORD, text):
        gap = spaces if "\n" not in spaces else " " if pieces else ""
        last = "" if spaces or not pieces else pieces[-1][1][-1]
        for sign in [word] if " " in word else word:  # a command is one sign
            first = sign[0]
            together = last and (
                first in _CLOSING or last in _OPENING or not (_is_wide(first) or _is_wide(last) or last in "”’")
            )
            if together:
                pieces[-1] = (pieces[-1][0], pieces[-1][1] + sign)
            else:
                pieces.append((gap, sign))
            gap, last = "", sign[-1]
    return pieces


def fitting(line: str, width: int) -> int:
    """How many characters of a line fit; at least one."""
    used = 0
    for position, sign in enumerate(line):
        used += _columns_of(sign)
        if used > width and position:
            return position
    return len(line)


# Signs: ᵀ becomes ^T, √ becomes sqrt, only where it must.

#: 10⁻⁸ and 2.5 · 10⁻⁶, which are 1e-8 and 2.5e-6 where no small digits are.
_POWER = r"(?:(\d+(?:\.\d+)?) · )?10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

#: A root of something without brackets: sqrtd_k could not be read.
_ROOT = r"√([\w.]+'?)"

_PLAIN = {
    "γ": "gamma", "β": "beta", "μ": "mu", "α": "alpha", "λ": "lambda", "π": "pi", "θ": "theta", "φ": "phi", "ω": "omega", "ρ": "rho", "δ": "delta", "τ": "tau", "Φ": "Phi", "Θ": "Theta", "Π": "prod", "≈": "~=", "±": "+-",
    "ᵀ": "^T", "²": "^2", "−": "-", "∞": "inf", "√": "sqrt", "×": "*", "·": "*", "⊙": "(*)", "Σ": "sum", "η": "eta",
    "Δ": "Delta", "σ": "sigma", "∂": "d", "→": "->", "…": "...", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-",
    "✓": "ok", "✗": "x", "≤": "<=", "≥": ">=", "∛": "cbrt", "ε": "eps", "│": "|", "├": "|", "└": "`", "─": "-", "↑": "^",
    **{sign: f"_{i}" for i, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")}, **{sign: f"^{i}" for i, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "，": ", ", "。": ". ", "；": "; ", "：": ": ", "（": " (", "）": ") ", "、": ", ", "\N{REPLACEMENT CHARACTER}": "?",
}  # fmt: skip


def fits(text: str, encoding: str) -> bool:
    """Whether every sign of the text exists in this encoding."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitted(text: str, encoding: str) -> str:
    """The text with every sign that the encoding lacks replaced by one that it has."""
    if encoding.startswith("utf") or fits(text, encoding):
        return text
    if not fits("⁻⁸", encoding):
        text = re.sub(_POWER, lambda found: f"{found[1] or 1}e-{found[2].translate(_DIGITS)}", text)
    if not fits("√", encoding):
        text = re.sub(_ROOT, r"√(\1)", text)
    return "".join(_fitted_sign(sign, encoding) for sign in text)


def _fitted_sign(sign: str, encoding: str) -> str:
    if fits(sign, encoding):
        return sign
    return _PLAIN.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii")
