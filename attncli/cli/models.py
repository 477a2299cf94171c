"""attncli models: the models, or what one of them takes."""

from itertools import pairwise
from typing import TYPE_CHECKING

from attncli.cli.options import Command, Word, model_names, shared
from attncli.cli.output import Output, Say, Words, width
from attncli.core.message import N_
from attncli.locale.fit import definitions, wrap

if TYPE_CHECKING:
    from attncli.models.model import Argument, Model, Setting

#: Steps that are listed; of more the last one of each part.
_MOST_STEPS = 40
#: Worked examples that are named.
_MOST_EXAMPLES = 6


def models(out: Output, words: Words) -> int:
    """List them, or describe one."""
    name, say = words["name"], out.say
    say.out(_listing(say) if name is None else _described(say, name))
    return 0


def _listing(say: Say) -> str:
    """Every model with a line on what it is."""
    from attncli.models import get, names

    rows = [(name, say.text(get(name).text)) for name in names()]
    return "\n".join([*definitions(rows, width()), "", say.text("More on one: attncli models NAME"), ""])


def _described(say: Say, name: str) -> str:
    """A model's inputs and settings."""
    from attncli.models import get

    model = get(name)
    rows = [(argument.name, _input(say, argument)) for argument in model.arguments if argument.listed]
    lines = [wrap(f"{model.name}: {say.text(model.text)}", width())]
    if rows:
        lines += ["", say.text("Inputs"), *definitions(rows, width(), "  ")]
    if any("layerN." in argument.name for argument in model.arguments):
        said = say.text("layerN. stands for layer1., layer2. and so on: every layer has its own weights.")
        lines += [wrap(said, width(), "  ", "  ")]
    if model.settings:
        rows = [(setting.name, _setting(say, setting)) for setting in model.settings]
        lines += ["", say.text("Settings"), *definitions(rows, width(), "  ")]
    return "\n".join([*lines, *_steps(say, model), ""])


def _steps(say: Say, model: "Model") -> list[str]:
    """The steps on the way forward, as they are in the first worked example of the model, and which others there are."""
    from attncli.core.graph import part_of
    from attncli.problems import library

    examples = library.of_model(model.name)
    if not examples:
        return []
    graph = library.load(examples[0]).graph()
    steps = [step.id for step in graph.steps.values() if step.phase == "forward"]
    steps = steps[: steps.index(graph.output) + 1]
    if len(steps) > _MOST_STEPS:
        steps = [step for step, after in pairwise(steps) if part_of(step) != part_of(after)] + steps[-1:]
    named = ", ".join(examples[:_MOST_EXAMPLES]) + (", …" if len(examples) > _MOST_EXAMPLES else "")
    return [
        "",
        wrap(say.text("Steps (as in {example})", example=examples[0]), width()),
        wrap(" → ".join(steps), width(), "  ", "  "),
        "",
        wrap(say.text("Worked examples (see one with attncli examples run ID): {ids}", ids=named), width()),
    ]


def _input(say: Say, argument: "Argument") -> str:
    text = say.text(argument.text)
    shape = " × ".join(argument.axes)
    if not shape:
        return text if argument.required else say.text("{text} (optional)", text=text)
    if argument.required:
        return say.text("{text} ({shape})", text=text, shape=shape)
    return say.text("{text} ({shape}; optional)", text=text, shape=shape)


def _setting(say: Say, setting: "Setting") -> str:
    text = say.text(setting.text)
    unsaid = [choice for choice in setting.choices if choice not in text]
    return f"{text} ({', '.join(setting.choices)})" if unsaid else text


COMMAND = Command(
    N_("List the models, or show what one takes and its steps."),
    models,
    {"name": Word("[NAME]", N_("A model: its inputs, settings and steps."), model_names), **shared("lang")},
)
