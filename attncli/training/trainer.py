"""Training: the same graph again and again, each time with the numbers that the last update left behind; and what it shows."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from attncli.core.graph import Trace
from attncli.core.matrix import FloatArray, Matrix, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.core.report import Column, Maps, Plot, Report, Table, Trend
from attncli.models.targets import one_hot
from attncli.models.updates import BETAS, CORRECTIONS, REMEMBERED, correction
from attncli.problems.problem import Problem
from attncli.training.generate import Sampling, joined, shown, softmax, written
from attncli.training.spec import TrainingState, as_plain, diverged

#: The loss that a GPT is trained with, over targets that are given beside it.
LOSS = "cross_entropy(logits, targets)"


class Trainer:
    """A training that goes on step by step.

    Raises
    ------
    InputError
        A text of fewer than two tokens: there is nothing to predict.
    """

    def __init__(self, state: TrainingState) -> None:
        self.spec = state.spec
        self.text = state.text
        self.ids = np.asarray(state.spec.encode(state.text), dtype=np.int_)
        if len(self.ids) < 2:
            raise InputError("The text has a single token: there is nothing to predict. Write at least two.")
        self.length = min(state.spec.context, len(self.ids) - 1)
        self.step = state.step
        self.numbers, self.memory = dict(state.numbers), dict(state.memory)
        self.losses = list(state.losses)
        #: The round that the text is gone through at present, and the order of its places.
        self._order: tuple[int, NDArray[np.int_]] | None = None
        self.graph = self.problem(self.window(self.step)).graph()
        past = [name for name in self.graph.inputs if name.endswith(REMEMBERED)]
        self.memory = {name: self.memory.get(name, np.zeros(self.graph.shape(name))) for name in past}
        self._unchanging = self._unchanging_steps()
        self._of_window: dict[int, dict[str, FloatArray]] = {}

    @property
    def state(self) -> TrainingState:
        return TrainingState(self.spec, self.text, self.step, dict(self.numbers), dict(self.memory), tuple(self.losses))

    @property
    def windows(self) -> int:
        """In how many places of the text a window can begin."""
        return len(self.ids) - self.length

    def window(self, step: int) -> int:
        """Where the window of a step begins: every place once, in a random order, then all again in another."""
        if self.windows == 1:
            return 0
        again, place = divmod(step, self.windows)
        if self._order is None or self._order[0] != again:
            random = np.random.default_rng([self.spec.seed, again])
            self._order = again, random.permutation(self.windows)
        return int(self._order[1][place])

    def problem(self, start: int, *, learning: bool = True) -> Problem:
        """The present step as a problem of its own, over the window that begins at `start`."""
        tokens = self.ids[start : start + self.length]
        inputs = {"T": as_matrix(tokens.astype(np.float64)), **{name: Matrix(v) for name, v in self.numbers.items()}}
        settings = self.spec.settings()
        if learning:
            settings |= self.spec.learning(self.step + 1)
            inputs |= {name: Matrix(values) for name, values in self.memory.items()}
        targets = as_matrix(self.ids[start + 1 : start + 1 + self.length].astype(np.float64))
        return Problem("gpt", inputs, settings=settings, loss=LOSS, extras={"targets": targets})

    def run(self, steps: int) -> Iterator[float]:
        """Make so many updates; yields the loss before each.

        Raises
        ------
        InputError
            The numbers grew beyond all bounds.
        """
        for _ in range(steps):
            loss = self._update()
            if not math.isfinite(loss):
                raise diverged(self.step, self.spec.eta)
            yield loss

    def _update(self) -> float:
        given = self._here(self.window(self.step))
        given = {**self._unchanging, **self.numbers, **self.memory, **given, **self._corrections()}
        found = self.graph.evaluate(given=given).numbers
        self.step += 1
        self.numbers = {name: _own(found[f"{name}_new"]) for name in self.numbers}
        self.memory = {name: _own(found[name.removesuffix("_past")]) for name in self.memory}
        loss = float(found["L"][0, 0])
        self.losses.append(loss)
        return loss

    def _unchanging_steps(self) -> dict[str, FloatArray]:
        """The steps that come from nothing that changes, like sinusoidal positions: worked out once."""
        changing = {"T", "loss.Y", *CORRECTIONS, *self.numbers, *self.memory}
        for step in self.graph.steps.values():
            if changing.intersection(step.inputs):
                changing.add(step.id)
        unchanging = [step_id for step_id in self.graph.steps if step_id not in changing]
        return dict(self.graph.evaluate(until=unchanging).numbers) if unchanging else {}

    def _corrections(self) -> dict[str, FloatArray]:
        """1 − βᵗ of Adam for this update."""
        return {
            name: np.array([[correction(BETAS[beta], self.step + 1)]])
            for name, beta in CORRECTIONS.items()
            if name in self.graph
        }

    def _here(self, start: int) -> dict[str, FloatArray]:
        """What another window changes: the ids and the targets."""
        if start not in self._of_window:
            tokens = self.ids[start : start + self.length]
            targets = self.ids[start + 1 : start + 1 + self.length]
            given = {"T": tokens.astype(np.float64), "loss.Y": one_hot(targets, len(self.spec.tokens)).values}
            if len(self._of_window) >= min(_MOST_KEPT, _MOST_KEPT_CELLS // (self.length * len(self.spec.tokens))):
                self._of_window.clear()
            self._of_window[start] = given
        return self._of_window[start]

    def evaluated(self, start: int = 0) -> Trace:
        """A window with the present numbers, forward only, up to its loss."""
        return self.graph.evaluate(given={**self.numbers, **self._here(start)}, until=["L", *self.weights()])

    def weights(self) -> list[str]:
        """The steps that hold attention weights."""
        return [step.id for step in self.graph.steps.values() if step.is_attention and not step.id.startswith("loss.")]

    def loss(self) -> float:
        """The mean loss over every token of the text that is to be predicted, in the windows of `measured`.

        Raises
        ------
        InputError
            The last step has made it no number.
        """
        surprises, covered = [], 0
        for start in self.measured():
            # Where two windows overlap, a token counts once.
            surprises.append(self.evaluated(start)["loss.surprise"][max(covered - start, 0) :, 0])
            covered = start + self.length
        found = float(np.concatenate(surprises).mean())
        if not math.isfinite(found):
            raise diverged(self.step, self.spec.eta)
        return found

    def side_by_side(self) -> list[int]:
        """Where the windows begin that hold the whole text; the last one ends with it and may overlap the one before."""
        return sorted({*range(0, self.windows, self.length), self.windows - 1})

    def measured(self) -> Sequence[int]:
        """Where the windows begin that the loss is measured in: the whole text, of a long one some windows evenly spread."""
        starts = self.side_by_side()
        most = max(8, min(_MOST_MEASURED, _MOST_MEASURED_CELLS // self.spec.cells(self.length)))
        return starts[:: math.ceil(len(starts) / most)]


#: Windows whose ids and targets are kept, and numbers in all of them.
_MOST_KEPT, _MOST_KEPT_CELLS = 1024, 10_000_000
#: Windows that the loss over a text is measured in, and numbers in all of their calculations.
_MOST_MEASURED, _MOST_MEASURED_CELLS = 500, 500_000_000


def _own(values: FloatArray) -> FloatArray:
    """The numbers by themselves, where they stand in a block that holds a whole run."""
    return values.copy() if values.base is not None else values


# --- What it shows: the loss over its steps, what comes next, who looks at whom, a continuation -----------------------

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


# --- Stopping ---------------------------------------------------------------------------------------------------------

#: Exit status of a program that a signal has ended, as shells count: 130 for Ctrl-C, 143 for SIGTERM.
BY_SIGNAL = 128


class Stop:
    """Whether the work is to stop, and at which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def asked(self) -> bool:
        return self.signal is not None

    @property
    def status(self) -> int:
        """The exit status that says so, 0 where nobody asked."""
        return 0 if self.signal is None else BY_SIGNAL + self.signal


@contextmanager
def stopping() -> Iterator[Stop]:
    """While it is open, a signal to end asks for it; whoever works looks, and ends what is half done. A second one ends at once."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.signal = number

    found = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in found:
            # What the caller has told us to overlook, like nohup does, stays overlooked.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
