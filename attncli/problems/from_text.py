"""A start from words: a text, and small weights that come with attncli and are shown."""

from __future__ import annotations

from attncli.core.message import N_, InputError, Message
from attncli.locale import CODES, language
from attncli.models.vocabulary import Vocabulary, printable
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import Problem

#: Chosen by hand, not learned: halves, no two rows alike, scores of at most 9 before they are scaled.
_E = "1 1 0 -1; 0.5 1 1 -1; -1 1 0 0.5; 0.5 1 0 0.5; -1 0.5 -0.5 -0.5; -0.5 0.5 1 0.5; -0.5 0.5 0.5 1; -1 1 0 -0.5; 0.5 0 0 1; 0.5 -0.5 -0.5 -1; 1 1 0.5 0.5; 1 0 -1 0.5"
_WEIGHTS = {"W_Q": "1 2; -1 1; 1 -1; 2 2", "W_K": "0 1; -1 1; -2 0; -1 1", "W_V": "1 -1; 0 -2; -2 -2; -1 -1"}
#: Tokens of a text: a screen has room for so many columns.
_MOST_TOKENS = 12
#: Characters of a title.
_LONGEST = 40
#: From here on scripts are written without spaces between words.
_FIRST_WITHOUT_SPACES = "\u2e80"


def from_text(text: str) -> Problem:
    """Attention over the tokens of a text: characters of a script without spaces, else words; each token seen first gets the next row of E.

    Raises
    ------
    InputError
        No token, or more than there are rows.
    """
    plain = printable(" ".join(text.split()))
    split = "characters" if max(plain, default="") >= _FIRST_WITHOUT_SPACES else "words"
    if not plain:
        raise InputError('--text: the text is empty. Write a few words, like --text "I like tea".')
    vocabulary = Vocabulary.built_from(plain, split=split)
    count = len(vocabulary.cut(plain))
    if count > _MOST_TOKENS:
        raise InputError(
            "--text: {count} tokens are too many for the small built-in weights; the limit is {limit}. Write a shorter text.",
            count=count,
            limit=_MOST_TOKENS,
        )
    rows = "; ".join(_E.split("; ")[: len(vocabulary.tokens)])
    shown = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
    title = Message(
        N_("“{text}” through attention, with small weights chosen by hand (nobody trained them)"), text=shown
    )
    return Problem(
        model="embedded_attention",
        inputs={name: parse_matrix(matrix) for name, matrix in {"E": rows, **_WEIGHTS}.items()},
        texts={"text": plain},
        settings={"vocabulary": list(vocabulary.tokens), "split": split},
        title={code: title.text(language(code)) for code in CODES},
    )
