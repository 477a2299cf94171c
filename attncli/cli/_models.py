"""What `attncli models` says."""

from __future__ import annotations

import textwrap

from attncli import models
from attncli.cli._say import Say
from attncli.cli._terminal import width
from attncli.message import Message


def listing(say: Say) -> str:
    """Every model with a line on what it is."""
    names = models.names()
    wide = max(map(len, names))
    lines = [_wrapped(f"{name:<{wide}}  ", say.text(models.get(name).text)) for name in names]
    return "\n".join([*lines, "", say.text("More on one: attncli models NAME"), ""])


def describe(say: Say, name: str) -> str:
    """A model's inputs and settings."""
    model = models.get(name)
    lines = [f"{model.name}: {say.text(model.text)}", "", say.text("Inputs")]
    for argument in model.arguments:
        shape = " × ".join(argument.axes) if argument.kind == "matrix" else argument.kind
        optional = "" if argument.required else " " + say.text("(may be left out)")
        lines.append(_wrapped(f"  {argument.name:<8}", f"{shape}  {say.text(argument.text)}{optional}"))
    if model.settings:
        lines += ["", say.text("Settings")]
        for setting in model.settings:
            choices = f" ({', '.join(setting.choices)})" if setting.choices else ""
            lines.append(_wrapped(f"  {setting.name:<10}", Message(setting.text).text(say.language) + choices))
    return "\n".join([*lines, ""])


def _wrapped(start: str, text: str) -> str:
    return textwrap.fill(text, width(), initial_indent=start, subsequent_indent=" " * len(start))
