"""attncli why: one number, traced back to the inputs."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import GRADIENT, INPUTS, options, with_options
from attncli.cli._say import Say

_SHOWN = ("decimals", "carry", "rounding", "exact", "layout", "lang")


def command(say: Say) -> Any:
    """The command."""

    def why(**words: Any) -> int:
        from attncli.cli._trace import explain

        return explain(say, **words)

    own = {
        "cell": (
            Annotated[
                list[str],
                typer.Argument(
                    metavar="[PROBLEM] STEP [ROW COL]",
                    help=say.text(
                        "The step and the cell: counted from 1, or by the names of row and column (with heads: STEP HEAD ROW COL); also STEP[ROW,COL]. A problem file or example id may stand first."
                    ),
                    autocompletion=_complete.words_of_why,
                ),
            ],
            ...,
        ),
        "depth": (
            Annotated[
                str | None,
                typer.Option(
                    "--depth", metavar="N", help=say.text("How many steps to go back (3, if nothing is said), or all.")
                ),
            ],
            None,
        ),
    }
    table = {**options(say), **own}
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("why", help=say.text("Trace one number back to the inputs, as nested arithmetic."))(
        with_options(why, ("cell", "depth", *INPUTS, *GRADIENT, *_SHOWN, "output", "force"), table)
    )
    return command_of(app)
