"""What `attncli generate` does: read the words, write on, show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli.cli._calculation import whole_number
from attncli.cli._report import report_format, write_report
from attncli.cli._say import Say
from attncli.cli._train import number
from attncli.core.message import N_, AttnError, InputError, Message
from attncli.training.generate import Sampling, WrittenToken, without_cache, written
from attncli.training.saved import load
from attncli.training.trainer import TrainingState

_LENGTH, _TRACED = 20, 3
#: Tokens that may be written: every one looks at all before it; --verify works all of them out anew, --trace shows it.
_MOST, _MOST_VERIFIED, _MOST_TRACED = 2000, 200, 50
_MOST_TOP = 100_000
#: How far apart the logits with and without a cache may be.
TOLERANCE = 1e-12


def generate(say: Say, *, file: str, prompt: str, **words: Any) -> int:
    """Write on from a prompt; the exit status is 1 where --verify finds a difference."""
    if not words["trace"] and (words["decimals"] is not None or words["full"]):
        raise InputError("--decimals and --full belong to --trace. Leave them out, or write --trace too.")
    chosen = report_format(words["format"], words["output"])
    if words["trace"] and chosen != "table":
        raise InputError("--trace shows tables only. Leave --format out, or leave --trace out.")
    if words["trace"] and words["output"] is not None:
        raise InputError("--trace goes to the screen. Leave -o out, or send the screen to a file with >.")
    decimals = whole_number("--decimals", words["decimals"], 0, 15)
    length = _length(words)
    choice = Sampling(
        number("--temperature", words["temperature"], 0.0, 1000.0) if words["temperature"] is not None else 0.0,
        whole_number("--top", words["top"], 1, _MOST_TOP) or 0,
        whole_number("--seed", words["seed"], 0, 2**32 - 1) or 0,
    )
    state = load(file)
    ids = _ids(state, prompt)
    if length is None:
        # Beyond what was looked at together in the training, nothing sensible is to be expected.
        usual = _TRACED if words["trace"] else _LENGTH
        length = max(1, min(usual, state.spec.context + 1 - len(ids)))
    tokens = list(written(state, ids, length, choice, keep=words["trace"]))
    worst = _worst(state, ids, tokens) if words["verify"] else None
    if words["trace"]:
        _trace(say, state, ids, tokens, decimals, words)
    from attncli.training.report import of_tokens

    write_report(say, of_tokens(tokens, ids, state.spec, choice, worst), chosen, words["output"], force=words["force"])
    return 1 if worst is not None and worst > TOLERANCE else 0


def _length(words: Mapping[str, Any]) -> int | None:
    """How many tokens to write, if it was said; with --verify and --trace fewer are possible."""
    if words["trace"]:
        return whole_number("--length (--trace)", words["length"], 1, _MOST_TRACED)
    if words["verify"]:
        return whole_number("--length (--verify)", words["length"], 1, _MOST_VERIFIED)
    return whole_number("--length", words["length"], 1, _MOST)


def _ids(state: TrainingState, prompt: str) -> list[int]:
    text = " ".join(prompt.split()) if state.spec.split == "words" else prompt
    if not text:
        raise InputError("PROMPT is empty. Write at least one token that the training knows.")
    try:
        return state.spec.encode(text)
    except AttnError as error:
        raise error.at("PROMPT") from None


def _worst(state: TrainingState, prompt: list[int], tokens: list[WrittenToken]) -> float:
    """The largest relative difference between logits with the cache and without, over all tokens."""
    worst, ids = 0.0, list(prompt)
    for token in tokens:
        anew = without_cache(state, ids)
        size = max(1.0, float(np.abs(anew).max()))
        worst = max(worst, float(np.abs(token.logits - anew).max()) / size)
        ids.append(token.id)
    return worst


def _trace(
    say: Say, state: TrainingState, prompt: list[int], tokens: list[WrittenToken], decimals: int | None, words: Any
) -> None:
    """The tables of every token's calculation, one after another."""
    from attncli.cli._output import show
    from attncli.locale import CODES, language

    for count, token in enumerate(tokens, start=1):
        assert token.run is not None  # they were kept
        new = prompt if count == 1 else [tokens[count - 2].id]
        title = {
            code: Message(
                N_("Token {number}: “{new}” comes in, {cached} tokens are in the cache; “{token}” is chosen"),
                number=count,
                new="".join(state.spec.tokens[id] for id in new),
                cached=token.cached,
                token=token.text,
            ).text(language(code))
            for code in CODES
        }
        problem = token.run.problem.changed(title=title)
        show(say, token.run.changed(problem=problem, decimals=decimals), {**words, "format": "table"})
        say.out("\n")
