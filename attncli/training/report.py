"""What a training shows: the loss over its steps, what comes next and how surely, who looks at whom, a continuation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from attncli.core.matrix import FloatArray
from attncli.core.message import N_, Message
from attncli.core.report import Column, Maps, Plot, Report, Table, Trend
from attncli.training.generate import Sampling, joined, shown, softmax, written
from attncli.training.spec import as_plain
from attncli.training.trainer import Trainer

#: Points that the curve of the loss is drawn through, rows of a table, tokens that are listed, and that are written on.
_POINTS, _ROWS, _LISTED, _WRITTEN = 100, 16, 12, 20


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
    parts = (
        _opening(trainer),
        *_curve(trainer, loss),
        _next_tokens(trainer),
        *_maps(trainer),
        _continued(trainer),
    )
    settings = {
        **as_plain(trainer.spec),
        "steps": trainer.step,
        "parameters": trainer.spec.size(),
        "text": trainer.text,
        "loss": loss,
        "losses": list(trainer.losses),
    }
    return Report("train", Message(TITLE), trainer.spec.seed, settings, parts)


def _opening(trainer: Trainer) -> Message:
    spec = trainer.spec
    listed = [f"{shown(token)} = {number}" for number, token in enumerate(spec.tokens[:_LISTED])]
    return Message(
        "The text has {tokens} tokens, {different} of them different: {listed}. For every token the model has to say which one"
        " comes next. It learns {parameters} numbers, which began at random (seed {seed}).",
        tokens=len(trainer.ids),
        different=len(spec.tokens),
        listed=", ".join([*listed, "…"] if len(spec.tokens) > _LISTED else listed),
        parameters=spec.size(),
        seed=spec.seed,
    )


def _curve(trainer: Trainer, loss: float) -> Iterator[Message | Plot | Table]:
    if not trainer.losses:
        yield Message("No step was made: these are the numbers it begins with.")
        return
    losses = np.array(trainer.losses)
    guess = math.log(len(trainer.spec.tokens))
    if len(losses) > 1:
        yield _plot(losses, len(trainer.spec.tokens), guess)
    yield Message(
        "The loss is the mean of −ln p, with p the probability of the token that really follows. It went from {first}"
        " before step 1 to {last} after step {steps}; e^(−loss) is {chance}: about how sure the model now is of the"
        " right token.",
        first=losses[0],
        last=loss,
        steps=len(losses),
        chance=math.exp(-loss),
    )
    measured, all_windows = len(trainer.measured()), len(trainer.side_by_side())
    if measured < all_windows:
        yield Message(
            "The text is long: the last loss was measured in {measured} of its {all} windows, evenly spread.",
            measured=measured,
            all=all_windows,
        )
    rows = sorted({0, *(int(10**k) - 1 for k in range(1, 7) if 10**k < len(losses)), len(losses) - 1})
    yield Table(
        "losses",
        Message("The loss before some of the steps (--step K shows everything that step K calculates)"),
        (
            Column("step", Message("step"), [row + 1 for row in rows]),
            Column("loss", Message("loss"), losses[rows].tolist()),
        ),
    )


def _plot(losses: FloatArray, count: int, guess: float) -> Plot:
    """The curve; of many steps the means of a few side by side, because every window of the text has a loss of its own."""
    parts = np.array_split(losses, min(_POINTS, len(losses)))
    title = Message(
        "The loss over the steps; blind guessing among {count} tokens has {guess}"
        if len(parts) == len(losses)
        else "The loss over the steps, as means of {size} steps; blind guessing among {count} tokens has {guess}",
        size=len(parts[0]),
        count=count,
        guess=guess,
    )
    return Plot(
        title,
        Message("step"),
        np.linspace(1.0, float(len(losses)), len(parts)).tolist(),
        (Trend(Message("loss"), [float(part.mean()) for part in parts]),),
        low=0.0,
    )


def _next_tokens(trainer: Trainer) -> Table:
    shares = [softmax(logits) for logits in trainer.evaluated()["logits"][:_ROWS]]
    tokens = [shown(token) for token in trainer.spec.tokens]
    follows = trainer.ids[1 : len(shares) + 1].tolist()
    likeliest = [int(share.argmax()) for share in shares]
    return Table(
        "next",
        Message("What the model expects after each token"),
        (
            Column("place", Message("place"), range(1, len(shares) + 1)),
            Column("token", "token", [tokens[number] for number in trainer.ids[: len(shares)]]),
            Column("next", Message("follows"), [tokens[number] for number in follows]),
            _probability("probability", shares, follows),
            Column("guess", Message("likeliest"), [tokens[number] for number in likeliest]),
            _probability("guess_probability", shares, likeliest),
        ),
    )


def _probability(name: str, shares: Sequence[FloatArray], tokens: Sequence[int]) -> Column:
    values = [float(share[token]) for share, token in zip(shares, tokens, strict=True)]
    return Column(name, Message("its probability"), values, joined=True)


def _maps(trainer: Trainer) -> Iterator[Maps]:
    """Who looks at whom in the first window, layer by layer and head by head."""
    trace = trainer.evaluated()
    size = min(_ROWS, trainer.length)
    if size == 1:
        return
    maps = []
    for step_id in trainer.weights():
        heads = trace[step_id] if trace[step_id].ndim == 3 else trace[step_id][None]
        layer = step_id.partition(".")[0].removeprefix("layer") if step_id.startswith("layer") else ""
        for head, weights in enumerate(heads, start=1):
            name = (
                Message("layer {layer}, head {head}", layer=layer, head=head)
                if layer
                else Message("Head {number}", number=head)
            )
            maps.append((name, weights[:size, :size]))
    title = Message("Who looks at whom: a line is a token that looks, a number the token it looks at")
    yield Maps(title, tuple(shown(trainer.spec.tokens[number]) for number in trainer.ids[:size]), tuple(maps))


def _continued(trainer: Trainer) -> Message:
    """What the model writes on from the beginning of its text."""
    spec, first = trainer.spec, int(trainer.ids[0])
    tokens = written(trainer.state, [first], min(_WRITTEN, trainer.length), Sampling())
    return Message(
        "Starting from “{prompt}” it writes: {text}",
        prompt=shown(spec.tokens[first]),
        text=joined([spec.tokens[first], *(token.text for token in tokens)], spec.split),
    )
