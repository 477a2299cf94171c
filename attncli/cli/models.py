"""attncli models: the models, or what one of them takes."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def models(name: str | None, lang: str | None) -> int:
        from attncli.cli._models import describe, listing

        say.out(listing(say) if name is None else describe(say, name))
        return 0

    argument = typer.Argument(
        metavar="[NAME]",
        help=say.text("A model: its inputs, settings and steps."),
        autocompletion=_complete.models,
        show_default=False,
    )
    own = {"name": (Annotated[str | None, argument], None)}
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("models", help=say.text("List the models, or show what one takes and its steps."))(
        with_options(models, ("name", "lang"), {**options(say), **own})
    )
    return command_of(app)
