"""Training: the same graph again and again, each time with the numbers that the last update left behind."""

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
from attncli.core.message import InputError
from attncli.models.class_losses import one_hot
from attncli.models.updates import BETAS, CORRECTIONS, REMEMBERED, correction
from attncli.problems.problem import Problem
from attncli.training.spec import TrainingState, diverged

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
        self.numbers = dict(state.numbers)
        self.memory = dict(state.memory)
        self.losses = list(state.losses)
        #: The round that the text is gone through at present, and the order of its places.
        self._order: tuple[int, NDArray[np.int_]] | None = None
        self.graph = self.problem(self.window(self.step)).graph()
        #: Which step of an update gives every parameter, and everything that Adam remembers, its next numbers.
        self._updated = {name: f"{name}_new" for name in self.numbers}
        past = [name for name in self.graph.inputs if name.endswith(REMEMBERED)]
        self._remembered = {name: name.removesuffix("_past") for name in past}
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
        self.numbers = {name: _own(found[new]) for name, new in self._updated.items()}
        self.memory = {name: _own(found[new]) for name, new in self._remembered.items()}
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
