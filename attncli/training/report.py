"""What a training shows: the loss over its steps, what comes next and how surely, who looks at whom, a continuation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.core.message import N_, Message
from attncli.core.report import Column, Maps, Plot, Report, Table, Trend
from attncli.training.generate import Sampling, WrittenToken, softmax, written
from attncli.training.spec import Spec, as_plain
from attncli.training.trainer import Trainer

#: Points that the curve of the loss is drawn through, rows of a table, and tokens that are written on.
_POINTS, _ROWS, _WRITTEN = 100, 16, 20


#: What the report is called.
TITLE = N_("A small GPT learns a text")


def report(trainer: Trainer) -> Report:
    """All of it, from the present numbers.

    Raises
    ------
    InputError
        The last step has made the loss no number.
    """
    loss = trainer.loss()
    parts: list[Any] = [
        _opening(trainer),
        *_curve(trainer, loss),
        _next_tokens(trainer),
        *_maps(trainer),
        _continued(trainer),
    ]
    settings = {
        **as_plain(trainer.spec),
        "steps": trainer.step,
        "parameters": trainer.spec.size(),
        "text": trainer.text,
    }
    settings["loss"] = loss
    settings["losses"] = list(trainer.losses)
    return Report("train", Message(TITLE), trainer.spec.seed, settings, tuple(parts))


def _opening(trainer: Trainer) -> Message:
    spec = trainer.spec
    return Message(
        N_(
            "The text has {tokens} tokens, {different} different ones: {listed}. For every token the model is to say which one"
            " follows. {parameters} numbers are learned; they began at random (seed {seed})."
        ),
        tokens=len(trainer.ids),
        different=len(spec.tokens),
        listed=_listed([f"{token} = {id}" for id, token in enumerate(map(shown, spec.tokens))]),
        parameters=spec.size(),
        seed=spec.seed,
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:12]) + (", …" if len(words) > 12 else "")


def shown(token: str) -> str:
    """A token that can be seen: a space gets a sign."""
    return token.replace(" ", "␣")


def _curve(trainer: Trainer, loss: float) -> Iterator[Message | Plot | Table]:
    if not trainer.losses:
        yield Message(N_("No step was made: these are the numbers it begins with."))
        return
    losses = np.array(trainer.losses)
    guess = math.log(len(trainer.spec.tokens))
    if len(losses) > 1:
        yield _plot(losses, len(trainer.spec.tokens), guess)
    yield Message(
        N_(
            "The loss is the mean of −ln p, with p the probability of the token that really follows. It went from {first}"
            " before step 1 to {last} after step {steps}; e to the power of minus the loss is {chance}, about how surely the right"
            " token is named now."
        ),
        first=losses[0],
        last=loss,
        steps=len(losses),
        chance=math.exp(-loss),
    )
    measured, all_windows = len(trainer.measured()), len(trainer.side_by_side())
    if measured < all_windows:
        yield Message(
            N_("The text is long: the last loss was measured in {measured} of its {all} windows, evenly spread."),
            measured=measured,
            all=all_windows,
        )
    rows = sorted({0, *(int(10**k) - 1 for k in range(1, 7) if 10**k < len(losses)), len(losses) - 1})
    yield Table(
        "losses",
        Message(N_("The loss before some of the steps (--step K shows everything that step K calculates)")),
        (Column("step", Message(N_("step"))), Column("loss", Message(N_("loss")))),
        tuple((row + 1, float(losses[row])) for row in rows),
    )


def _plot(losses: FloatArray, count: int, guess: float) -> Plot:
    """The curve; of many steps the means of a few side by side, because every window of the text has a loss of its own."""
    parts = np.array_split(losses, min(_POINTS, len(losses)))
    size = len(parts[0])
    title = (
        Message(N_("The loss over the steps; whoever guesses blindly among {count} tokens has {guess}"), count=count, guess=guess)
        if size == 1
        else Message(N_("The loss over the steps, as means of {size} steps; whoever guesses blindly among {count} tokens has {guess}"), size=size, count=count, guess=guess)
    )  # fmt: skip
    return Plot(
        title,
        Message(N_("step")),
        tuple(np.linspace(1.0, float(len(losses)), len(parts)).tolist()),
        (Trend(Message(N_("loss")), tuple(float(part.mean()) for part in parts)),),
        low=0.0,
    )


def _next_tokens(trainer: Trainer) -> Table:
    _, trace = trainer.evaluated()
    tokens = trainer.spec.tokens
    rows = []
    for place, logits in enumerate(trace["logits"][:_ROWS]):
        shares = softmax(logits)
        best = int(shares.argmax())
        follows = int(trainer.ids[place + 1])
        rows.append(
            (
                place + 1,
                shown(tokens[trainer.ids[place]]),
                shown(tokens[follows]),
                float(shares[follows]),
                shown(tokens[best]),
                float(shares[best]),
            )
        )
    return Table(
        "next",
        Message(N_("What the model expects after each token")),
        (
            Column("place", Message(N_("place"))),
            Column("token", "token"),
            Column("next", Message(N_("follows"))),
            Column("probability", Message(N_("its probability")), joined=True),
            Column("guess", Message(N_("likeliest"))),
            Column("guess_probability", Message(N_("its probability")), joined=True),
        ),
        tuple(rows),
    )


def _maps(trainer: Trainer) -> Iterator[Maps]:
    """Who looks at whom in the first window, layer by layer and head by head."""
    graph, trace = trainer.evaluated()
    size = min(_ROWS, trainer.length)
    names = tuple(shown(trainer.spec.tokens[id]) for id in trainer.ids[:size])
    maps = []
    for id in trainer.weights():
        heads = trace[id] if trace[id].ndim == 3 else trace[id][None]
        for head, weights in enumerate(heads, start=1):
            part = id.partition(".")[0].removeprefix("layer")
            name = (
                Message(N_("layer {layer}, head {head}"), layer=part, head=head)
                if graph.steps[id].id.startswith("layer")
                else Message(N_("Head {number}"), number=head)
            )
            maps.append((name, weights[:size, :size]))
    if size > 1:
        title = Message(N_("Who looks at whom: a line is a token that looks, a number the token it looks at"))
        yield Maps(title, names, tuple(maps))


def _continued(trainer: Trainer) -> Message:
    """What the model writes on from the beginning of its text."""
    spec = trainer.spec
    prompt = [int(id) for id in trainer.ids[:1]]
    length = min(_WRITTEN, trainer.length)
    tokens = list(written(trainer.state, prompt, length, Sampling()))
    return Message(
        N_("It writes on from “{prompt}”: {text}"),
        prompt=shown(spec.tokens[prompt[0]]),
        text=joined([spec.tokens[prompt[0]], *(token.text for token in tokens)], spec.split),
    )


def joined(tokens: Sequence[str], split: str) -> str:
    """Tokens as a text again."""
    return (" " if split == "words" else "").join(tokens)


def of_tokens(
    tokens: Sequence[WrittenToken], prompt: Sequence[int], spec: Spec, choice: Sampling, worst: float | None
) -> Report:
    """What was written after a prompt, token by token."""
    words = [spec.tokens[id] for id in prompt]
    rows = []
    for number, token in enumerate(tokens, start=1):
        order = np.argsort(-token.probabilities, kind="stable")
        second = int(next((id for id in order if id != token.id), token.id))
        rows.append(
            (
                number,
                token.cached,
                shown(token.text),
                float(token.probabilities[token.id]),
                shown(spec.tokens[second]),
                float(token.probabilities[second]) if second != token.id else 0.0,
            )
        )
    parts: list[Any] = [
        Message(
            N_("“{prompt}” goes on like this: {text}"),
            prompt=joined(words, spec.split),
            text=joined([*words, *(token.text for token in tokens)], spec.split),
        ),
        Table(
            "tokens",
            Message(N_("Token by token: keys and values of the tokens in the cache are not calculated again")),
            (
                Column("number", Message(N_("number"))),
                Column("cached", Message(N_("in the cache"))),
                Column("token", "token"),
                Column("probability", Message(N_("its probability")), joined=True),
                Column("other", Message(N_("else"))),
                Column("other_probability", Message(N_("its probability")), joined=True),
            ),
            tuple(rows),
        ),
    ]
    if worst is not None:
        parts.append(
            Message(
                N_(
                    "Recalculated without a cache, the logits differ by at most {worst}: the "
                    "cache saves work but changes nothing."
                ),
                worst=worst,
            )
        )
    if len(prompt) + len(tokens) > spec.context + 1:
        parts.append(
            Message(
                N_("The model was trained on {context} tokens at a time; anything beyond that is new to it."),
                context=spec.context,
            )
        )
    settings = {
        "prompt": joined(words, spec.split),
        "continuation": joined([token.text for token in tokens], spec.split),
        "temperature": choice.temperature,
        "top": choice.top,
    }
    return Report("generate", Message(N_("Writing on, one token after another")), choice.seed, settings, tuple(parts))
