"""attncli examples: list, show, run and verify the worked examples."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import SHOWN, options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The group of commands."""
    app = typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        help=say.text("Worked examples: exercises with their printed numbers, recomputed."),
    )

    @app.callback()
    def start(
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text("Language of everything shown.")),
    ) -> None:
        """Also before the command's name; the language was found before the words were read."""

    id_argument = typer.Argument(
        metavar="ID", help=say.text("The id of a worked example."), autocompletion=_complete.examples
    )
    ids_argument = typer.Argument(
        metavar="[ID]...",
        help=say.text("Ids of worked examples (all, if none is given)."),
        autocompletion=_complete.examples,
    )
    table = {
        **options(say),
        "id": (Annotated[str, id_argument], ...),
        "ids": (Annotated[list[str] | None, ids_argument], None),
        "hint": (Annotated[bool, typer.Option("--hint", help=say.text("Show the hint too."))], False),
    }

    def listed(**words: Any) -> int:
        from attncli.cli._examples import listing

        return listing(say)

    def show(**words: Any) -> int:
        from attncli.cli._examples import show

        return show(say, **words)

    def run(**words: Any) -> int:
        from attncli.cli._examples import run

        return run(say, **words)

    def verify(**words: Any) -> int:
        from attncli.cli._examples import verify

        return verify(say, **words)

    for name, function, names, help in (
        ("list", listed, ("lang",), say.text("List all worked examples.")),
        (
            "show",
            show,
            ("id", "hint", "lang"),
            say.text("Show an exercise without its solution: what is given, what is asked."),
        ),
        (
            "run",
            run,
            ("id", *SHOWN),
            say.text("Calculate an exercise, compare it with the printed numbers, and say what to notice."),
        ),
        (
            "verify",
            verify,
            ("ids", "lang"),
            say.text("Recompute every printed digit; exit status 1 if one does not follow."),
        ),
    ):
        app.command(name, help=help)(with_options(function, names, table))
    return command_of(app)
