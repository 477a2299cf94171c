"""Commands whose words are taken as they are typed.

Typer turns every word into its declared type with pydantic, which takes longer to import than NumPy.
Here all words are text (or flags), and what they mean is read by the code that can say best what is
wrong with them. So the parameters skip that turn, at their
public hook `process_value`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from attncli.cli._say import Say
from attncli.core.message import InputError


def command_of(app: typer.Typer) -> Any:
    """The command or group that a Typer application describes, its words passed on unchanged."""
    command = typer.main.get_command(app)
    for one in (command, *getattr(command, "commands", {}).values()):
        # An attribute of the instance stands before the method of the class.
        vars(one)["get_params"] = _passing_all(one.get_params)
        vars(one)["make_parser"] = _refusing_twice(one.make_parser)
    return command


def _refusing_twice(make_parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A parser that refuses an option given twice, where Typer would keep the last."""

    def making(ctx: Any) -> Any:
        parser = make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            found = parse(args=args)
            seen: set[str] = set()
            for param in found[2]:
                if param.param_type_name != "option" or param.multiple or param.is_flag:
                    continue
                if param.name in seen and not ctx.resilient_parsing:
                    raise InputError("{option} is given twice. Keep one.", option=max(param.opts, key=len))
                seen.add(param.name)
            return found

        vars(parser)["parse_args"] = parse_args
        return parser

    return making


def _passing_all(get_params: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """All parameters of a command, --help included, each passing its words on."""

    def passing(ctx: Any) -> list[Any]:
        params = get_params(ctx)
        for param in params:
            vars(param)["process_value"] = _passing(param)
        return params

    return passing


def _passing(param: Any) -> Any:
    def process_value(ctx: Any, value: Any) -> Any:
        if param.required and value in (None, (), []) and not ctx.resilient_parsing:
            raise InputError(
                "{name} is missing. See {command} --help.", name=param.metavar or param.name, command=ctx.command_path
            )
        return value if param.callback is None else param.callback(ctx, param, value)

    return process_value


def with_help(command: Any, say: Say) -> Any:
    """The command, or the group with its commands, writing help pages in our words, at the public hook `format_help`."""
    for one in (command, *getattr(command, "commands", {}).values()):
        vars(one)["format_help"] = _writing_help(one, say)
    return command


def _writing_help(command: Any, say: Say) -> Callable[[Any, Any], None]:
    def format_help(ctx: Any, formatter: Any) -> None:
        from attncli.cli._help import page

        formatter.write(say.fitted(page(command, ctx, say)))

    return format_help
