"""Writing on: one token after another, with the keys and values of earlier ones kept in a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from attncli.core.matrix import FloatArray, Matrix, as_matrix
from attncli.core.message import InputError, LimitError, Message, placed
from attncli.core.record import Record
from attncli.core.report import Column, Report, Table
from attncli.problems.problem import Problem, Run, run
from attncli.problems.settings import LARGEST_SEED, number, whole_number
from attncli.training.spec import MOST_CELLS, Spec, TrainingState

#: Tokens that are written where nothing is said.
_LENGTH, _TRACED = 20, 3
#: Tokens that may be written: every one looks at all before it; --verify works all of them out anew, --trace shows it.
_MOST, _MOST_VERIFIED, _MOST_TRACED = 2000, 200, 50
_MOST_TOP = 100_000
#: How far apart the logits with and without a cache may be.
TOLERANCE = 1e-12


class Sampling(Record):
    """How a token is chosen from its probabilities.

    Parameters
    ----------
    temperature : 0: the likeliest; 1: as the probabilities are; larger: bolder
    top : only so many of the likeliest may be chosen; 0: all
    seed : of the draw
    """

    temperature: float = 0.0
    top: int = 0
    seed: int = 0


class WrittenToken(Record):
    """A token that was written.

    Parameters
    ----------
    id, text : which
    logits : of the whole vocabulary; `probabilities`: what they come to, as the model gives them
    cached : tokens whose keys and values came from the cache
    run : the calculation it comes from: of the whole prompt first, later of a single token; None where it is not kept
    """

    id: int
    text: str
    logits: FloatArray
    probabilities: FloatArray
    cached: int
    run: Run | None


def written(
    state: TrainingState, prompt: Sequence[int], length: int, choice: Sampling, *, keep: bool = False
) -> Iterator[WrittenToken]:
    """So many tokens after the prompt; with `keep` each with its calculation, which takes memory.

    Raises
    ------
    InputError
        Learned positions end where the training's context ended; the prompt is too long; or the numbers of this
        training are so large that its logits are none.
    """
    spec = state.spec
    cells = spec.cells(len(prompt))
    if cells > MOST_CELLS:
        raise LimitError(
            "A prompt of {count} tokens needs about {cells} numbers at once; the limit is {limit}. Write a shorter one.",
            count=len(prompt),
            cells=f"{cells:,}",
            limit=f"{MOST_CELLS:,}",
        )
    if spec.positions == "learned" and len(prompt) + length - 1 > spec.context:
        raise InputError(
            "Positions were learned for {context} tokens only, but prompt and continuation need {count}. Write a shorter"
            " prompt, or a smaller --length.",
            context=spec.context,
            count=len(prompt) + length - 1,
        )
    random = np.random.default_rng(choice.seed)
    caches: dict[str, FloatArray] = {}
    seen: list[int] = []
    tokens = list(prompt)
    for _ in range(length):
        step = run(_problem(state, tokens, caches, seen), backward=False)
        logits: FloatArray = np.array(step["logits"])[-1]
        if not np.isfinite(logits).all():
            raise InputError(
                "The numbers in this training have grown so large that its logits overflow. "
                "Train again with an --eta below {eta}.",
                eta=f"{spec.eta:g}",
            )
        probabilities = softmax(logits)
        token = chosen(probabilities, choice, random)
        yield WrittenToken(token, spec.tokens[token], logits, probabilities, len(seen), step if keep else None)
        seen += tokens
        caches = _kept(step)
        tokens = [token]


def without_cache(state: TrainingState, ids: Sequence[int]) -> FloatArray:
    """The logits of the last of these tokens, everything worked out anew: what the cache must come to."""
    logits: FloatArray = np.asarray(run(_problem(state, ids, {}), backward=False)["logits"])[-1]
    return logits


def _problem(
    state: TrainingState, ids: Sequence[int], caches: dict[str, FloatArray], past: Sequence[int] = ()
) -> Problem:
    numbers = {**state.numbers, **caches}
    inputs = {
        "T": as_matrix([float(number) for number in ids]),
        **{name: Matrix(values) for name, values in numbers.items()},
    }
    names = tuple(state.spec.tokens[number] for number in (*past, *ids))
    labels = {"token": names[len(past) :], "past_key": names[: len(past)], "key": names} if past else {}
    return Problem("gpt", inputs, settings=state.spec.settings(), labels=labels)


def _kept(step: Run) -> dict[str, FloatArray]:
    """Keys and values that the next token needs, by the names of the caches: as they enter scores and output."""
    found, steps = {}, step.graph.steps
    for each in steps.values():
        part, _, name = each.id.rpartition(".")
        if name in ("scores", "O"):
            source = each.inputs[1]
            if steps[source].op.name == "repeat_kv":
                source = steps[source].inputs[0]
            cache = "K_past" if name == "scores" else "V_past"
            found[f"{part}.{cache}" if part else cache] = np.asarray(step[source])
    return found


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities of a row of logits, with the maximum taken away first."""
    powers = np.exp(logits - logits.max())
    shares: FloatArray = powers / powers.sum()
    return shares


def chosen(probabilities: FloatArray, choice: Sampling, random: np.random.Generator) -> int:
    """The id of the next token: the likeliest (the first of equals), or one that is drawn."""
    if choice.temperature == 0:
        return int(probabilities.argmax())
    with np.errstate(divide="ignore", over="ignore"):
        # The likeliest is 0 before it is divided, so it stays finite however cold it is.
        scores = (np.log(probabilities) - np.log(probabilities.max())) / choice.temperature
    if 0 < choice.top < len(scores):
        scores[np.argsort(-probabilities, kind="stable")[choice.top :]] = -np.inf
    shares = softmax(scores)
    return int(
        np.searchsorted(np.cumsum(shares), random.random() * shares.sum(), side="right").clip(0, len(shares) - 1)
    )


def length_of(text: str | None, *, trace: bool, verify: bool) -> int | None:
    """How many tokens to write, if it is said; with --verify and --trace fewer are possible.

    Raises
    ------
    InputError
        It is no number, or too large.
    """
    most, why = (_MOST_TRACED, " (--trace)") if trace else (_MOST_VERIFIED, " (--verify)") if verify else (_MOST, "")
    return whole_number(f"--length{why}", text, 1, most)


def usual_length(state: TrainingState, prompt: Sequence[int], *, trace: bool) -> int:
    """How many tokens to write where nothing is said: no more than were looked at together in the training."""
    usual = _TRACED if trace else _LENGTH
    return max(1, min(usual, state.spec.context + 1 - len(prompt)))


def choice_of(temperature: str | None, top: str | None, seed: str | None) -> Sampling:
    """How tokens are chosen, as it is written.

    Raises
    ------
    InputError
        One of them is no number, or out of range.
    """
    return Sampling(
        number("--temperature", temperature, 0.0, 1000.0) if temperature is not None else 0.0,
        whole_number("--top", top, 1, _MOST_TOP) or 0,
        whole_number("--seed", seed, 0, LARGEST_SEED) or 0,
    )


def prompt_ids(state: TrainingState, prompt: str) -> list[int]:
    """The tokens of a prompt.

    Raises
    ------
    InputError
        It is empty, or has tokens that the training does not know.
    """
    text = " ".join(prompt.split()) if state.spec.split == "words" else prompt
    if not text:
        raise InputError("PROMPT is empty. Write at least one token that the training knows.")
    with placed("PROMPT"):
        return state.spec.encode(text)


def difference(state: TrainingState, prompt: Sequence[int], tokens: Sequence[WrittenToken]) -> float:
    """The largest relative difference between logits with the cache and without, over all tokens."""
    worst, ids = 0.0, list(prompt)
    for token in tokens:
        anew = without_cache(state, ids)
        size = max(1.0, float(np.abs(anew).max()))
        worst = max(worst, float(np.abs(token.logits - anew).max()) / size)
        ids.append(token.id)
    return worst


def shown(token: str) -> str:
    """A token that can be seen: a space gets a sign."""
    return token.replace(" ", "␣")


def joined(tokens: Sequence[str], split: str) -> str:
    """Tokens as a text again."""
    return (" " if split == "words" else "").join(tokens)


def report(
    tokens: Sequence[WrittenToken], prompt: Sequence[int], spec: Spec, choice: Sampling, worst: float | None
) -> Report:
    """What was written after a prompt, token by token; `worst`: the difference that a check has found."""
    words, more = [spec.tokens[number] for number in prompt], [token.text for token in tokens]
    said = [
        Message(
            "“{prompt}” goes on like this: {text}",
            prompt=joined(words, spec.split),
            text=joined([*words, *more], spec.split),
        )
    ]
    if worst is not None:
        said.append(
            Message(
                "Recalculated without a cache, the logits differ by at most {worst}: the "
                "cache saves work but changes nothing.",
                worst=worst,
            )
        )
    if len(prompt) + len(tokens) > spec.context + 1:
        said.append(
            Message(
                "The model was trained on {context} tokens at a time; anything beyond that is new to it.",
                context=spec.context,
            )
        )
    settings = {
        "prompt": joined(words, spec.split),
        "continuation": joined(more, spec.split),
        "temperature": choice.temperature,
        "top": choice.top,
    }
    title = Message("Continuing a text, one token at a time")
    return Report("generate", title, choice.seed, settings, (said[0], _table(tokens, spec), *said[1:]))


def _table(tokens: Sequence[WrittenToken], spec: Spec) -> Table:
    """Every token beside the likeliest other one."""
    others = [_other(token) for token in tokens]
    probabilities = [float(token.probabilities[token.id]) for token in tokens]
    return Table(
        "tokens",
        Message("Token by token: keys and values of the tokens in the cache are not calculated again"),
        (
            Column("number", Message("number"), range(1, len(tokens) + 1)),
            Column("cached", Message("in the cache"), [token.cached for token in tokens]),
            Column("token", "token", [shown(token.text) for token in tokens]),
            Column("probability", Message("its probability"), probabilities, joined=True),
            Column("other", Message("runner-up"), [shown(spec.tokens[other]) for other, _ in others]),
            Column("other_probability", Message("its probability"), [share for _, share in others], joined=True),
        ),
    )


def _other(token: WrittenToken) -> tuple[int, float]:
    """The likeliest token beside the one that was written, and its probability; of a vocabulary of one, itself and 0."""
    shares = token.probabilities.copy()
    shares[token.id] = -1.0
    other = int(shares.argmax())
    return other, max(0.0, float(shares[other]))
