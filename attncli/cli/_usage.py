"""What Typer says about wrong words on the command line, in our words and languages."""

from __future__ import annotations

from typing import Any

from attncli.cli.main import COMMANDS
from attncli.core.message import N_, Message, closest


def usage_message(error: Any) -> Message:
    """The message for a usage error: what was given, what was likely meant, where to look."""
    kind = type(error).__name__
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "attncli"
    hint = Message(N_("See {command} --help."), command=command)
    if kind == "NoSuchOption":
        return _no_such_option(error, hint)
    if kind == "BadOptionUsage" and "does not take a value" in str(error.message):
        return Message(N_("the option {name} takes no value. {hint}"), name=error.option_name, hint=hint)
    if kind == "BadOptionUsage":
        return Message(N_("the option {name} needs a value after it. {hint}"), name=error.option_name, hint=hint)
    if kind == "MissingParameter":
        return Message(N_("{name} is missing. {hint}"), name=_name(error), hint=hint)
    if kind == "BadParameter":
        return Message(N_("{name}: {what}. {hint}"), name=_name(error), what=str(error.message).rstrip("."), hint=hint)
    unknown = _unknown_command(error)
    if unknown is not None:
        likely = closest(unknown, _commands(error))
        if likely:
            return Message(
                N_("the command “{name}” does not exist. Did you mean {likely}? {hint}"),
                name=unknown,
                likely=likely,
                hint=hint,
            )
        return Message(N_("the command “{name}” does not exist. {hint}"), name=unknown, hint=hint)
    extra = _extra_words(error)
    if extra is not None:
        return Message(
            N_('“{words}” is more than was expected. Put quotes around a matrix, like -Q "1 2". {hint}'),
            words=extra,
            hint=hint,
        )
    return Message(N_("{what} {hint}"), what=error.format_message(), hint=hint)


def _no_such_option(error: Any, hint: Message) -> Message:
    name = error.option_name
    if name[1:2].isdigit() or name[1:2] == ".":
        return Message(
            N_('“{name}” stands where an option is expected. Put quotes around a matrix, like -Q "-1 2". {hint}'),
            name=name,
            hint=hint,
        )
    elsewhere = _commands_with(name)
    if elsewhere:
        return Message(
            N_("the option {name} does not belong here, but to {commands}. {hint}"),
            name=name,
            commands=", ".join(f"attncli {command}" for command in elsewhere),
            hint=hint,
        )
    likely = closest(name, _options(error))
    if likely:
        return Message(
            N_("the option {name} does not exist. Did you mean {likely}? {hint}"), name=name, likely=likely, hint=hint
        )
    return Message(N_("the option {name} does not exist. {hint}"), name=name, hint=hint)


def _commands_with(option: str) -> list[str]:
    """The commands that have this option."""
    import importlib

    from attncli.cli._say import Say

    say = Say("en", asked=False)
    found = []
    for name in COMMANDS:
        command = importlib.import_module(f"attncli.cli.{name}").command(say)
        parts = getattr(command, "commands", None)
        for path, one in {f"{name} {part}": one for part, one in parts.items()}.items() if parts else [(name, command)]:
            if any(option in parameter.opts for parameter in one.params):
                found.append(path)
    return found


def _commands(error: Any) -> list[str]:
    group: Any = error.ctx.command if error.ctx is not None else None
    return list(group.list_commands(error.ctx)) if hasattr(group, "list_commands") else list(COMMANDS)


def _options(error: Any) -> list[str]:
    return [option for parameter in error.ctx.command.params for option in parameter.opts] if error.ctx else []


def _name(error: Any) -> str:
    parameter = getattr(error, "param", None)
    if parameter is None:
        return "?"
    return str(max(parameter.opts, key=len)) if parameter.param_type_name == "option" else str(parameter.name).upper()


def _unknown_command(error: Any) -> str | None:
    import re

    found = re.match(r"No such command (['\"])(.*?)\1(?:\.|$)", error.format_message(), re.DOTALL)
    return found.group(2) if found else None


def _extra_words(error: Any) -> str | None:
    import re

    found = re.match(r"Got unexpected extra argument\(s\) \((.*)\)$", error.format_message(), re.DOTALL)
    return found.group(1)[:60] if found else None
