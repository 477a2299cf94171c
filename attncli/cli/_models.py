"""What `attncli models` says."""

from __future__ import annotations

from attncli import models
from attncli.cli._say import Say
from attncli.cli._terminal import width
from attncli.locale.wrap import definitions, wrap


def listing(say: Say) -> str:
    """Every model with a line on what it is."""
    rows = [(name, say.text(models.get(name).text)) for name in models.names()]
    return "\n".join([*definitions(rows, width()), "", say.text("More on one: attncli models NAME"), ""])


def describe(say: Say, name: str) -> str:
    """A model's inputs and settings."""
    model = models.get(name)
    rows = [(argument.name, _input(say, argument)) for argument in model.arguments if argument.listed]
    lines = [wrap(f"{model.name}: {say.text(model.text)}", width()), "", say.text("Inputs")]
    lines += definitions(rows, width(), "  ")
    if model.settings:
        rows = [(setting.name, _setting(say, setting)) for setting in model.settings]
        lines += ["", say.text("Settings"), *definitions(rows, width(), "  ")]
    return "\n".join([*lines, ""])


def _input(say: Say, argument: models.Argument) -> str:
    text = say.text(argument.text)
    shape = " × ".join(argument.axes)
    if not shape:
        return text if argument.required else say.text("{text} (may be left out)", text=text)
    if argument.required:
        return say.text("{text} ({shape})", text=text, shape=shape)
    return say.text("{text} ({shape}; may be left out)", text=text, shape=shape)


def _setting(say: Say, setting: models.Setting) -> str:
    choices = f" ({', '.join(setting.choices)})" if setting.choices else ""
    return say.text(setting.text) + choices
