"""A vocabulary: tokens and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attncli.core.message import InputError
from attncli.core.record import Record

#: Tokens a vocabulary, and a text, may have.
MOST = 100_000


def printable(text: str) -> str:
    """The text itself, if every sign of it can be shown as a token of its own.

    Raises
    ------
    InputError
        Names the first that cannot: a control sign, one without width, or a byte that is no text.
    """
    place = next((i for i, sign in enumerate(text) if not sign.isprintable()), None)
    if place is None:
        return text
    code = ord(text[place])
    if 0xDC80 <= code <= 0xDCFF:  # as Python hands on a byte of the command line that is not UTF-8
        raise InputError(
            "Character {place} of the text is the byte 0x{byte}, which is not UTF-8. Write the text in UTF-8.",
            place=place + 1,
            byte=f"{code - 0xDC00:02x}",
        )
    raise InputError(
        "Character {place} of the text is U+{code}, which cannot be shown. Leave it out.",
        place=place + 1,
        code=f"{code:04X}",
    )


class Vocabulary(Record):
    """Tokens in the order of their ids, counted from 0.

    Parameters
    ----------
    tokens : the known tokens
    split : "characters" (longest known token first, else one character) or "words" (cut at white space)
    unknown : a token of the vocabulary that stands in for unknown ones; None: they are an error
    """

    tokens: tuple[str, ...]
    split: str = "characters"
    unknown: str | None = None

    @classmethod
    def of(cls, tokens: Sequence[str], *, split: str = "characters", unknown: str | None = None) -> Vocabulary:
        """The vocabulary with these tokens; an unknown token that is not among them is added at the end.

        Raises
        ------
        InputError
            No token, an empty one, or one that stands twice.
        """
        words = list(tokens)
        if unknown is not None and unknown not in words:
            words.append(unknown)
        if not words:
            raise InputError("The vocabulary is empty. Give at least one token.")
        if len(words) > MOST:
            raise InputError("The vocabulary has {count} tokens; the limit is {limit}.", count=len(words), limit=MOST)
        seen: dict[str, int] = {}
        for token_id, word in enumerate(words):
            if not word:
                raise InputError("The vocabulary: token {id} is empty. Write a character or a word.", id=token_id)
            if word in seen:
                raise InputError(
                    "The vocabulary: “{word}” occurs twice, as id {first} and as id {second}. Keep one.",
                    word=word,
                    first=seen[word],
                    second=token_id,
                )
            seen[word] = token_id
        return cls(tuple(words), split, unknown)

    @classmethod
    def built_from(cls, corpus: str, *, split: str = "characters", unknown: str | None = None) -> Vocabulary:
        """The tokens of a text in the order in which they first appear."""
        pieces: Iterable[str] = corpus.split() if split == "words" else (c for c in corpus if not c.isspace())
        return cls.of(tuple(dict.fromkeys(pieces)), split=split, unknown=unknown)

    def cut(self, text: str) -> list[str]:
        """The tokens of a text, known or not."""
        if len(text) > MOST:
            raise InputError("The text has {count} characters; the limit is {limit}.", count=len(text), limit=MOST)
        if self.split == "words":
            return text.split()
        longest = max(map(len, self.tokens))
        known = set(self.tokens)
        pieces, start = [], 0
        while start < len(text):
            if text[start].isspace() and text[start] not in known:
                start += 1
                continue
            size = next((n for n in range(longest, 0, -1) if text[start : start + n] in known), 1)
            pieces.append(text[start : start + size])
            start += size
        return pieces

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens.

        Raises
        ------
        InputError
            An unknown token, named with its place; or an empty text.
        """
        ids = {token: token_id for token_id, token in enumerate(self.tokens)}
        out = []
        for position, piece in enumerate(self.cut(text), start=1):
            token_id = ids.get(piece, ids.get(self.unknown) if self.unknown is not None else None)
            if token_id is None:
                raise InputError(
                    "“{token}” (token {position} of the text) is not in the vocabulary: {known}. Add it there, or name an"
                    " unknown token (setting unknown) that stands in for it.",
                    token=piece,
                    position=position,
                    known=" ".join(self.tokens[:20]) + (" …" if len(self.tokens) > 20 else ""),
                )
            out.append(token_id)
        if not out:
            raise InputError("The text is empty. Write at least one token.")
        return out
