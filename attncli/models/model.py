"""What a model is: its inputs with their axes, its settings, and the function that writes its graph with ops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from attncli.core.graph import Graph, Op
from attncli.core.matrix import Matrix
from attncli.core.message import N_, InputError, LimitError, Message, unknown
from attncli.core.record import Record


class Argument(Record):
    """An input of a model.

    Parameters
    ----------
    name : its id
    axes : names of its axes; a model that knows a head axis takes one more in front
    text : what it is
    required : whether it must be given
    kind : "matrix", "ids" (whole numbers from 0) or "text"
    repeat : the setting that counts the layers it stands in, and that setting's default; its name then holds
        "layerN.", once for every layer
    listed : whether the list of inputs shows it
    """

    name: str
    axes: tuple[str, ...]
    text: str
    required: bool = True
    kind: str = "matrix"
    repeat: tuple[str, int] | None = None
    listed: bool = True


class Setting(Record):
    """A setting of a model.

    Parameters
    ----------
    kind : "flag", "number", "positive", "eps" (0 or more), "count" (a whole number from `least`), "scale", "shift", "mask",
        "booleans", "window", "slopes", "words", "text" or "choice" (one of `choices`)
    update : whether it belongs to the step of training behind the gradients
    """

    name: str
    kind: str
    text: str
    choices: tuple[str, ...] = ()
    least: int = 1
    update: bool = False


class Part(Record):
    """A part of a model while it is written: the graph that it is added to, and what it was given.

    Parameters
    ----------
    inputs, texts : of the whole model, by name
    settings : read and checked; a part may be told others than the whole
    asked : the settings that were looked at so far, in all parts
    prefix : goes before the ids and the names of this part: "self.", "layer2.ffn."; "" for the whole
    names : what a setting of this part is called in the whole, where that is something else
    """

    graph: Graph
    inputs: Mapping[str, Matrix]
    texts: Mapping[str, str]
    settings: Mapping[str, Any]
    asked: set[str]
    prefix: str = ""
    names: Mapping[str, str] = MappingProxyType({})

    def named(self, name: str) -> str:
        """What a step or an input of this part is called in the whole model."""
        return self.prefix + name

    def __contains__(self, name: object) -> bool:
        return f"{self.prefix}{name}" in self.inputs or name in self.texts

    def matrix(self, name: str) -> Matrix:
        """The numbers given as `name`."""
        return self.inputs[self.named(name)]

    def setting(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return self.settings.get(name, default)

    def inside(self, prefix: str, **settings: Any) -> Part:
        """The part within this one that `prefix` stands for, told these settings besides."""
        return self.changed(prefix=self.prefix + prefix, settings={**self.settings, **settings})

    def enter(self, argument: Argument, why: Message | str | None = None, symbol: str | None = None) -> str:
        """Add an input to the graph, with the axes that the model names; returns its id."""
        return self.input(argument.name, argument.axes, symbol=symbol, why=why)

    def input(self, name: str, axes: Sequence[str], matrix: Matrix | None = None, **more: Any) -> str:
        """Add what was given as `name`, or `matrix` under this name; see `Graph.input`."""
        return self.graph.input(self.named(name), self.matrix(name) if matrix is None else matrix, axes, **more)

    def apply(self, op: Op, name: str, *operands: str, **more: Any) -> str:
        """Add a step called `name` in this part; see `Graph.apply`."""
        return self.graph.apply(op, self.named(name), *operands, **more)


class Model(Record):
    """An architecture: what it takes and the function that writes its graph.

    `build(part)` adds inputs and steps and returns the id of the output, where the upstream gradient enters. `after(part)`
    may add steps behind the gradients (an update).
    """

    name: str
    text: str
    arguments: tuple[Argument, ...]
    settings: tuple[Setting, ...]
    build: Callable[[Part], str]
    after: Callable[[Part], None] | None = None

    def kind_of(self, name: str) -> str:
        """What the input called `name` is, in whichever layer: "matrix", "ids" or "text"; of an unknown one "matrix"."""
        general = canonical(name)
        return next((argument.kind for argument in self.arguments if argument.name == general), "matrix")

    def takes(self, settings: Mapping[str, Any]) -> list[Argument]:
        """The inputs under these settings, those of each layer by themselves.

        Raises
        ------
        LimitError
            More layers than anything here can show.
        """
        out: list[Argument] = []
        for repeat, group in groupby(self.arguments, lambda argument: argument.repeat):
            if repeat is None:
                out.extend(group)
                continue
            layers = int(settings.get(*repeat))
            if layers > MOST_LAYERS:
                raise LimitError(
                    "{setting} = {count} is more than this can show; the limit is {limit}.",
                    setting=repeat[0],
                    count=layers,
                    limit=MOST_LAYERS,
                )
            every = list(group)
            out.extend(
                argument.changed(name=argument.name.replace(_ANY, f"layer{layer}."))
                for layer in range(1, layers + 1)
                for argument in every
            )
        return out

    def check(self, given: Part) -> None:
        """Refuse inputs the model does not know, and say which required ones are missing."""
        arguments = {argument.name: argument for argument in self.takes(given.settings)}
        for name in (*given.inputs, *given.texts):
            if name not in arguments:
                raise unknown(Message("Model {model}: the input", model=self.name), name, list(arguments))
        missing = [argument.name for argument in arguments.values() if argument.required and argument.name not in given]
        if missing:
            raise InputError(
                "Model {model} needs {missing}. Give it like this: {example}",
                model=self.name,
                missing=", ".join(missing),
                example=" ".join(_example(arguments[name]) for name in missing[:3]),
            )

    def check_used(self, given: Part) -> None:
        """Refuse inputs and settings that the finished graph made nothing of: who gave them meant something by it."""
        updated = any(step.phase == "update" for step in given.graph.steps.values())
        asked = {*given.asked, *(argument.repeat[0] for argument in self.arguments if argument.repeat)}
        idle = [
            argument.name
            for argument in self.takes(given.settings)
            if argument.name in given.inputs and argument.name not in given.graph.inputs and argument.listed
        ]
        idle += [
            setting.name
            for setting in self.settings
            if setting.name not in asked
            and (updated or not setting.update)
            and given.settings.get(setting.name) not in (None, False)
        ]
        if idle:
            raise InputError(
                "{name} is given, but this calculation does not use it. Leave it out, or add the setting that uses it.",
                name=idle[0],
            )


#: Layers of a stack.
MOST_LAYERS = 48

_ANY = "layerN."


def canonical(name: str) -> str:
    """The name of an input with its layer left open: layerN.self.W_Q for layer2.self.W_Q."""
    return re.sub(r"(?<![^.])layer[1-9][0-9]*\.", _ANY, name)


def indexed(symbol: str, tail: str) -> str:
    """W_Q and new give W_{Q,new}; E gives E_{new}."""
    head, _, index = symbol.partition("_")
    return rf"{head}_{{{index.strip('{}')},{tail}}}" if index else rf"{head}_{{{tail}}}"


#: What most models begin with.
TOKENS = Argument("X", ("token", "d_model"), N_("the tokens, one row each"))


def _example(argument: Argument) -> str:
    if argument.kind == "text":
        return f'--set {argument.name}="我爱你"'
    return f'--set {argument.name}="1 2; 3 4"' if argument.name not in "QKV" else f'-{argument.name} "1 2; 3 4"'
