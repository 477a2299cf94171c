"""What `attncli train` does: read the words, train, write the report, or one step in full."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attncli.cli._calculation import LARGEST_SEED, Stdin, whole_number
from attncli.cli._interrupt import Stop, stopping
from attncli.cli._output import check_place, format_of, inputs_of, language_of, write_file
from attncli.cli._report import report_format, write_report
from attncli.cli._say import Say
from attncli.cli.train import SIZES
from attncli.core.message import N_, AttnError, InputError, Message, unknown
from attncli.core.outputs import REPORT, RUN, TRAINING, check_output
from attncli.models.vocabulary import printable
from attncli.render import formats
from attncli.training.report import TITLE
from attncli.training.spec import Spec
from attncli.training.trainer import Trainer, TrainingState, begin

_MOST_STEPS = 1_000_000
#: A name for a saved training.
_EXAMPLE = "training.npz"
_STEPS = 500
#: The title of a single step.
_ONE = N_("Training step {step}")
#: The largest sizes, and what stands where nothing is said.
_COUNTS = {
    "context": (1, 4096, 32),
    "d_model": (1, 1024, 4),
    "d_k": (1, 1024, 2),
    "d_v": (1, 1024, 2),
    "heads": (1, 64, 1),
    "kv_heads": (1, 64, None),
    "layers": (0, 48, 0),
    "d_ff": (0, 4096, 0),
    "seed": (0, LARGEST_SEED, 0),
}
_CHOICES = {
    "split": ("characters", "words"),
    "positions": ("sinusoidal", "none", "learned"),
    "norm": ("pre", "post"),
    "normalisation": ("layer", "rms", "none"),
    "activation": ("gelu", "relu", "gelu_tanh", "silu", "swiglu"),
    "optimizer": ("adam", "sgd"),
}
_ETA = {"adam": 0.05, "sgd": 0.2}
#: Formats that show one step, and those that show a whole training.
_ONLY_STEP = ("expand", "decimals", "carry", "layout", "full")


def train(say: Say, **words: Any) -> int:
    """Train, and show what came of it; where it was stopped, what came of it until then."""
    at = whole_number("--step", words["at"], 1, _MOST_STEPS)
    if at is None:
        _refuse_options_of_a_step(words)
        chosen = report_format(words["format"], words["output"])
    _check_places(say, words)
    trainer = Trainer(_state(words))
    if at is not None:
        return _one_step(say, trainer, at, words)
    steps = whole_number("--steps", words["steps"], 0, _MOST_STEPS)
    steps = _STEPS if steps is None else steps
    last = trainer.step + steps
    stop = _go_on(say, trainer, steps)
    from attncli.training.report import report

    found = report(trainer)  # which refuses numbers that are none, before they are saved
    if words["save"] is not None:
        _save(say, words, trainer.state)
    write_report(say, found, chosen, words["output"], force=words["force"])
    if stop.asked:
        say.error(_stopped(trainer, last, words["save"]))
    return stop.status


def _too_early(step: int, at: int) -> Message:
    return Message(N_("stopped after step {step}, so there is no step {at} to show."), step=step, at=at)


def _stopped(trainer: Trainer, last: int, saved: str | None) -> Message:
    """After an interruption: how far it came, and how to go on."""
    if saved is None:
        return Message(
            N_("stopped after step {step} of {last}: this is what it had learnt by then. --save FILE keeps it."),
            step=trainer.step,
            last=last,
        )
    return Message(
        N_("stopped after step {step} of {last}. Carry on with: attncli train --load {file} --steps {left}"),
        step=trainer.step,
        last=last,
        file=shlex.quote(saved),
        left=last - trainer.step,
    )


def _refuse_options_of_a_step(words: Mapping[str, Any]) -> None:
    given = [name for name in _ONLY_STEP if words[name] not in (None, False)]
    if given:
        raise InputError("--{option} belongs to a single step. Write --step K with it, like --step 1.", option=given[0])


def _go_on(say: Say, trainer: Trainer, steps: int) -> Stop:
    """Train so many steps, or until somebody asks to stop; never half a step."""
    with ExitStack() as stack:
        stop = stack.enter_context(stopping())
        tell = None
        if sys.stderr is not None and sys.stderr.isatty() and steps > 1:
            from attncli.render.live import telling

            tell = telling(sys.stderr, stack, trainer.step + steps, say.language)
        for loss in trainer.run(steps):
            if tell is not None:
                tell(trainer.step, loss)
            if stop.asked:
                break
    return stop


def _one_step(say: Say, trainer: Trainer, at: int, words: Mapping[str, Any]) -> int:
    """Everything that step `at` calculates: forward, loss, gradients, update."""
    if words["steps"] is not None:
        raise InputError("--step shows one step, so --steps says nothing beside it. Leave one of them out.")
    if at <= trainer.step:
        raise InputError(
            "--step {at}: this training has made {step} steps already. Write a later one, like --step {next}.",
            at=at,
            step=trainer.step,
            next=trainer.step + 1,
        )
    stop = _go_on(say, trainer, at - 1 - trainer.step)
    if words["save"] is not None:
        _save(say, words, trainer.state)
    if stop.asked:
        kept = words["save"] is not None
        say.error(_stopped(trainer, at - 1, words["save"]) if kept else _too_early(trainer.step, at))
        return stop.status
    from attncli.cli._calculation import arithmetic_of
    from attncli.cli._output import show
    from attncli.locale import CODES, language
    from attncli.problems.run import run

    problem = trainer.problem(trainer.window(trainer.step))
    title = {code: Message(_ONE, step=at).text(language(code)) for code in CODES}
    layout = words["layout"] if words["layout"] is not None else "rows"
    if layout not in ("rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    result = run(problem.changed(title=title), **arithmetic_of(words))
    show(say, result.changed(problem=result.problem.changed(layout=layout)), words)
    return 0


def _check_places(say: Say, words: Mapping[str, Any]) -> None:
    """Before a long training: whether its files can go where they are to go."""
    save, output = words["save"], words["output"]
    inputs = inputs_of(say.words)
    if output is not None:
        check_place(output)
        title = Message(TITLE) if words["at"] is None else Message(_ONE, step=words["at"])
        text = title.text(language_of(say, to_file=True))
        first = f"# {text}\n" if format_of(words["format"], output, formats()) == "markdown" else f"{text}\n"
        kind = REPORT if words["at"] is None else RUN
        check_output(output, kind, inputs, first.encode(), force=words["force"])
    if save is None:
        return
    check_place(save, "--save", _EXAMPLE)
    check_output(save, TRAINING, inputs, option="--save", force=words["force"])
    if not save.lower().endswith(".npz") and not _is_device(save):
        raise InputError("--save {path}: a training is an .npz file. Write --save {path}.npz", path=save)
    if output is not None and os.path.realpath(save) == os.path.realpath(output):
        raise InputError("--save and -o are the same file, {path}. Give one of them another name.", path=save)


def _is_device(name: str) -> bool:
    path = Path(name)
    return path.exists() and not path.is_file()


def _save(say: Say, words: Mapping[str, Any], state: TrainingState) -> None:
    from attncli.training.saved import as_bytes

    write_file(say, words["save"], as_bytes(state), TRAINING, "--save", _EXAMPLE, force=words["force"])


def _state(words: Mapping[str, Any]) -> TrainingState:
    """A new training, or a saved one to go on with."""
    if words["load"] is None:
        if words["text"] is None:
            raise InputError("There is no text to learn. Write one, like: attncli train 我喜欢数学")
        return _new(words, text_of(words["text"]))
    from attncli.training.saved import load

    for name in SIZES:
        if words[name] not in (None, False):
            raise InputError(
                "The saved training fixes --{option}. Leave it out, or start a new training without --load.",
                option=name.replace("_", "-"),
            )
    state = load(words["load"])
    learning = _learning(words, state.spec)
    if learning["optimizer"] != state.spec.optimizer:
        raise InputError("The saved training fixes --optimizer. Leave it out, or start a new training without --load.")
    text = state.text if words["text"] is None else text_of(words["text"])
    return state.changed(spec=state.spec.changed(**learning), text=text)


def _learning(words: Mapping[str, Any], spec: Spec | None) -> dict[str, Any]:
    optimizer = _choice("optimizer", words["optimizer"]) if words["optimizer"] or spec is None else spec.optimizer
    if words["eta"] is not None:
        eta = number("--eta", words["eta"], 0.0, 1e6)
        if eta == 0:
            raise InputError("--eta: with a learning rate of 0 nothing is learnt. Write a number above 0, like 0.05.")
    else:
        eta = spec.eta if spec is not None else _ETA[optimizer]
    return {"optimizer": optimizer, "eta": eta}


def _new(words: Mapping[str, Any], text: str) -> TrainingState:
    values: dict[str, Any] = {name: _choice(name, words[name]) for name in _CHOICES if name != "optimizer"}
    for name, (least, most, usual) in _COUNTS.items():
        given = whole_number(f"--{name.replace('_', '-')}", words[name], least, most)
        values[name] = usual if given is None else given
    if values["kv_heads"] is None:
        values["kv_heads"] = values["heads"]
    values |= {"rotary": bool(words["rotary"]), "tied": bool(words["tied"]), **_learning(words, None)}
    if values["rotary"] and words["positions"] is None:
        values["positions"] = "none"  # the heads know the positions already
    pieces = text.split(" ") if values["split"] == "words" else list(text)
    tokens = tuple(dict.fromkeys(pieces))
    values["context"] = min(values["context"], max(1, len(pieces) - 1))
    return begin(Spec(tokens=tokens, **values), text)


def _choice(name: str, given: str | None) -> str:
    known = _CHOICES[name]
    if given is None:
        return known[0]
    if given not in known:
        raise unknown(Message(N_("--{option}:"), option=name.replace("_", "-")), given, known)
    return given


def number(option: str, text: str, least: float, most: float) -> float:
    """A number that an option gives.

    Raises
    ------
    InputError
        It is none, or out of range.
    """
    from attncli.problems.matrix_text import parse_number

    try:
        value: float = parse_number(text)[0]
    except AttnError as error:
        raise error.at(option) from None
    if not least <= value <= most:
        raise InputError(
            "{option}: {given} is out of range. Write a number from {least} to {most}.",
            option=option,
            given=f"{value:g}",
            least=f"{least:g}",
            most=f"{most:g}",
        )
    return value


def text_of(word: str) -> str:
    """The text itself, from a file (@FILE), or from standard input (-); runs of white space are one space."""
    from attncli.core.limits import MOST_TEXT_BYTES
    from attncli.models.vocabulary import MOST
    from attncli.problems.source import read_bounded

    if word == "-":
        text = _from(Message(N_("standard input")), Stdin())
    elif word.startswith("@") and len(word) > 1:
        text = _from(word[1:], lambda: read_bounded(word[1:], MOST_TEXT_BYTES))
    else:
        text = word
    text = " ".join(text.split())
    if not text:
        raise InputError("The text is empty. Write at least two tokens, like: attncli train 我喜欢数学")
    if len(text) > MOST:
        raise InputError(
            "The text has {count} characters; the limit is {limit}. Give the beginning of it.",
            count=len(text),
            limit=MOST,
        )
    return printable(text)


def _from(where: Message | str, read: Callable[[], bytes]) -> str:
    """The text that is there; an error names the place."""
    from attncli.problems.source import as_text

    try:
        return as_text(read(), where)
    except AttnError as error:
        raise error.at(where) from None
