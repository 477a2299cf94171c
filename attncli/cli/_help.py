"""Help pages: one layout in every language, as wide as the screen, Chinese measured as it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attncli.cli._say import Say
from attncli.cli._terminal import WIDTH, width
from attncli.core.message import N_
from attncli.locale.wrap import columns, definitions, wrap

#: What Typer itself says about its own options, for the catalogues.
_TYPERS_OWN = (
    N_("Show this message and exit."),
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
)


def page(command: Any, ctx: Any, say: Say) -> str:
    """The help page of a command or of a group of commands."""
    return "\n".join(_lines(command, ctx, say)) + "\n"


def _lines(command: Any, ctx: Any, say: Say) -> Iterator[str]:
    screen = min(width(), WIDTH)
    group = hasattr(command, "list_commands") and command.list_commands(ctx)
    parameters = command.get_params(ctx)
    arguments = [one for one in parameters if one.param_type_name == "argument" and not one.hidden]
    options = [one for one in parameters if one.param_type_name == "option" and not one.hidden]
    yield _usage(ctx.command_path, [one.metavar for one in arguments], bool(group), say, screen)
    yield ""
    yield wrap(command.help or "", screen, "  ", "  ")
    yield from _section(say.text("Arguments:"), [(one.metavar, _said(one, say)) for one in arguments], screen)
    yield from _section(say.text("Options:"), [(_names(one), _said(one, say)) for one in options], screen)
    if group:
        rows = [(name, command.get_command(ctx, name).help or "") for name in group]
        yield from _section(say.text("Commands:"), rows, screen)


def _usage(path: str, arguments: Sequence[str], group: bool, say: Say, screen: int) -> str:
    words = [path, say.text("[OPTIONS]"), *arguments]
    if group:
        words.append(say.text("COMMAND …"))
    start = say.text("Usage: ")
    return wrap(" ".join(words), screen, start, " " * columns(start))


def _section(title: str, rows: Sequence[tuple[str, str]], screen: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from definitions(rows, screen, "  ")


def _names(option: Any) -> str:
    """-o, --output FILE"""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag or not option.metavar else f"{names} {option.metavar}"


def _said(parameter: Any, say: Say) -> str:
    text = str(parameter.help or "")
    if text in _TYPERS_OWN:
        text = say.text(text)
    if isinstance(parameter.default, str) and parameter.default:
        text += " " + say.text("[default: {value}]", value=parameter.default)
    if parameter.required:
        text += " " + say.text("[required]")
    return text
