"""attncli forward: from the inputs to the result."""

from typing import Any

import typer

from attncli.cli._light import command_of
from attncli.cli._options import INPUTS, PROBLEM, SHOWN, options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def forward(**words: Any) -> int:
        from attncli.cli._calculation import calculate

        return calculate(say, backward=False, **words)

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("forward", help=say.text("Show every step from the inputs to the result."))(
        with_options(forward, (*PROBLEM, *INPUTS, *SHOWN), options(say))
    )
    return command_of(app)
