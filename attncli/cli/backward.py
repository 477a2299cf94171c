"""attncli backward: the forward steps and every gradient."""

from typing import Any

import typer

from attncli.cli._light import command_of
from attncli.cli._options import GRADIENT, INPUTS, PROBLEM, SHOWN, options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def backward(**words: Any) -> int:
        from attncli.cli._calculation import calculate

        return calculate(say, backward=True, **words)

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("backward", help=say.text("Show the forward steps and every gradient, back to the inputs."))(
        with_options(backward, (*PROBLEM, *INPUTS, *GRADIENT, "verify", *SHOWN), options(say))
    )
    return command_of(app)
