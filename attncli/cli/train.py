"""attncli train: a GPT learns a text, from scratch, and shows how."""

import os
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from attncli.cli.options import SHOWN, Command, Word, shared
from attncli.cli.output import REPORTS, Output, Say, Words, inputs_of, is_terminal, write_file
from attncli.core.message import N_, InputError, Message

if TYPE_CHECKING:
    from attncli.training.spec import TrainingState
    from attncli.training.trainer import Stop, Trainer

#: A name for a saved training.
_EXAMPLE = "training.npz"
#: The title of a single step.
_ONE = N_("Training step {step}")
#: Options that belong to a single step.
_ONLY_STEP = ("expand", "decimals", "carry", "layout", "full")


def train(out: Output, words: Words) -> int:
    """Train, and show what came of it; where it was stopped, what came of it until then."""
    from attncli.problems.request import arithmetic_of
    from attncli.problems.settings import layout_of, whole_number
    from attncli.training.spec import MOST_STEPS
    from attncli.training.trainer import Trainer, report

    at, save = whole_number("--step", words["at"], 1, MOST_STEPS), words["save"]
    if at is None:
        _refuse_options_of_a_step(words)
        chosen = out.format(REPORTS)
    _check_places(out, words)
    trainer = Trainer(_state(words))
    last = _last_step(trainer, words, at)
    layout, arithmetic = layout_of(words["layout"]) or "rows", arithmetic_of(words)
    stop = _go_on(out.say, trainer, last - trainer.step)
    found = report(trainer) if at is None else None  # it refuses numbers that are none, before they are saved
    if save is not None:
        from attncli.core.outputs import TRAINING
        from attncli.training.saved import as_bytes  # which brings pydantic with it

        write_file(out.say, save, as_bytes(trainer.state), TRAINING, "--save", _EXAMPLE, force=words["force"])
    if found is not None:
        out.write_report(found, chosen)
    elif at is not None and not stop.asked:
        _show_step(out, trainer, at, layout, arithmetic)
    if stop.asked:
        out.say.error(_stopped(trainer.step, last, at, save))
    return stop.status


def _refuse_options_of_a_step(words: Words) -> None:
    given = [name for name in _ONLY_STEP if words[name] not in (None, False)]
    if given:
        raise InputError("--{option} belongs to a single step. Write --step K with it, like --step 1.", option=given[0])


def _state(words: Words) -> "TrainingState":
    """A new training, or a saved one to go on with."""
    from attncli.training.spec import begun, continued

    if words["load"] is None:
        return begun(words)
    from attncli.training.saved import load

    return continued(load(words["load"]), words)


def _last_step(trainer: "Trainer", words: Words, at: int | None) -> int:
    """The step to go on to: the last one, or the one before the single step that is shown."""
    from attncli.problems.settings import whole_number
    from attncli.training.spec import MOST_STEPS, STEPS

    if at is None:
        steps = whole_number("--steps", words["steps"], 0, MOST_STEPS)
        return trainer.step + (STEPS if steps is None else steps)
    if words["steps"] is not None:
        raise InputError("--step shows a single step, so --steps would have no effect. Leave one of them out.")
    if at <= trainer.step:
        raise InputError(
            "--step {at}: this training has made {step} steps already. Write a later one, like --step {next}.",
            at=at,
            step=trainer.step,
            next=trainer.step + 1,
        )
    return at - 1


def _go_on(say: Say, trainer: "Trainer", steps: int) -> "Stop":
    """Train so many steps, or until somebody asks to stop; never half a step."""
    from attncli.training.trainer import stopping

    with ExitStack() as stack:
        stop = stack.enter_context(stopping())
        tell = None
        if is_terminal(sys.stderr) and steps > 1:
            from attncli.render.chart import telling

            tell = telling(sys.stderr, stack, trainer.step + steps, say.language)
        for loss in trainer.run(steps):
            if tell is not None:
                tell(trainer.step, loss)
            if stop.asked:
                break
    return stop


def _show_step(out: Output, trainer: "Trainer", at: int, layout: str, arithmetic: Words) -> None:
    """Everything that step `at` calculates: forward, loss, gradients, update."""
    from attncli.locale import in_every_language
    from attncli.problems.problem import run

    problem = trainer.problem(trainer.window(trainer.step))
    result = run(problem.changed(title=in_every_language(Message(_ONE, step=at))), **arithmetic)
    out.show(result.changed(problem=result.problem.changed(layout=layout)))


def _stopped(step: int, last: int, at: int | None, save: str | None) -> Message:
    """After an interruption: how far it came, and how to go on."""
    if save is not None:
        return Message(
            "stopped after step {step} of {last}. Carry on with: attncli train --load {file} --steps {left}",
            step=step,
            last=last,
            file=shlex.quote(save),
            left=last - step,
        )
    if at is not None:
        return Message("stopped after step {step}, so there is no step {at} to show.", step=step, at=at)
    return Message(
        "stopped after step {step} of {last}: this is what it had learned by then. --save FILE keeps it.",
        step=step,
        last=last,
    )


def _check_places(out: Output, words: Words) -> None:
    """Before a long training: whether its files can go where they are to go."""
    from attncli import render
    from attncli.core.outputs import REPORT, RUN, TRAINING, check_output, check_place
    from attncli.training.trainer import TITLE

    save, output, inputs = words["save"], words["output"], inputs_of(out.say.words)
    if output is not None:
        check_place(output)
        title = Message(TITLE) if words["at"] is None else Message(_ONE, step=words["at"])
        text = title.text(out.language)
        first = f"# {text}\n" if out.format(render.formats()) == "markdown" else f"{text}\n"
        kind = REPORT if words["at"] is None else RUN
        check_output(output, kind, inputs, first.encode(), force=words["force"])
    if save is None:
        return
    check_place(save, "--save", _EXAMPLE)
    check_output(save, TRAINING, inputs, option="--save", force=words["force"])
    if not save.lower().endswith(".npz") and (not Path(save).exists() or Path(save).is_file()):
        raise InputError("--save {path}: a training is an .npz file. Write --save {path}.npz", path=save)
    if output is not None and os.path.realpath(save) == os.path.realpath(output):
        raise InputError("--save and -o are the same file, {path}. Give one of them another name.", path=save)


COMMAND = Command(N_("Train a small GPT on a text and show what it learned: the loss, the next token, who looks at whom, a continuation."), train, {
    "text": Word("[TEXT]", N_("The text, @FILE, or - for standard input; a saved training brings its own.")),
    "steps": Word("--steps N", N_("How many updates to make (default: 500).")),
    "eta": Word("--eta NUMBER", N_("The learning rate η (default: 0.05 for adam, 0.2 for sgd).")),
    "optimizer": Word("--optimizer adam|sgd", N_("How the numbers are updated (default: adam).")),
    "split": Word("--split characters|words", N_("How the text is cut into tokens (default: characters).")),
    "context": Word("--context N", N_("Tokens that are looked at together (default: 32, or the length of the text if it is shorter).")),
    "d_model": Word("--d-model N", N_("Numbers in a token's vector (default: 4).")),
    "d_k": Word("--d-k N", N_("Width of a head's queries and keys (default: 2).")),
    "d_v": Word("--d-v N", N_("Width of a head's values (default: 2).")),
    "heads": Word("--heads N", N_("Number of heads (default: 1).")),
    "kv_heads": Word("--kv-heads N", N_("Number of heads of keys and values (default: as many as heads).")),
    "layers": Word("--layers N", N_("Number of blocks; with 0, the default, there is causal attention and nothing else.")),
    "d_ff": Word("--d-ff N", N_("Width of the feed-forward sublayer of a block (0: no such sublayer).")),
    "positions": Word("--positions none|sinusoidal|learned", N_("What is added to the embeddings (default: sinusoidal; with --rotary: none).")),
    "rotary": Word("--rotary", N_("Turn queries and keys by their positions.")),
    "norm": Word("--norm pre|post", N_("Where the norms of a block are placed (default: pre).")),
    "normalisation": Word("--normalisation layer|rms|none", N_("Which norm (default: layer).")),
    "activation": Word("--activation NAME", N_("The activation of the feed-forward sublayer: relu, gelu, gelu_tanh, silu or swiglu (default: gelu).")),
    "tied": Word("--tied", N_("Use the embedding table for the logits too.")),
    "seed": Word("--seed N", N_("Seed of the first random numbers (default: 0).")),
    "at": Word("--step K", N_("Show step K in full, every number of it, instead of the whole training.")),
    "load": Word("--load FILE", N_("Go on with a saved training.")),
    "save": Word("--save FILE", N_("Save the training (.npz) when it is done.")),
    **shared(*(name for name in SHOWN if name not in ("step", "exact"))),
})  # fmt: skip
