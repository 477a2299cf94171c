"""attncli examples: list, show, run and verify the worked examples."""

from collections.abc import Callable, Iterator
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
        help=say.text("Worked examples: exercises whose published numbers are recalculated."),
    )

    @app.callback()
    def start(
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text("Language of everything shown.")),
    ) -> None:
        """Also before the command's name; the language was found before the words were read."""

    table = _table(say)
    for name, function, names, help in _commands(say):
        app.command(name, help=help)(with_options(function, names, table))
    return command_of(app)


def _table(say: Say) -> dict[str, tuple[Any, Any]]:
    """The options of all commands, by name."""
    id_argument = typer.Argument(
        metavar="ID|FILE",
        help=say.text("The id of a worked example, or a problem file."),
        autocompletion=_complete.examples,
    )
    ids_argument = typer.Argument(
        metavar="[ID|FILE]...",
        help=say.text("Ids of worked examples, or problem files (all examples, if none is given)."),
        autocompletion=_complete.examples,
    )
    return {
        **options(say),
        "id": (Annotated[str, id_argument], ...),
        "ids": (Annotated[list[str] | None, ids_argument], None),
        "step_by_step": (
            Annotated[
                bool, typer.Option("--step-by-step", help=say.text("One step a screen: Enter for the next one."))
            ],
            False,
        ),
        "hint": (Annotated[bool, typer.Option("--hint", help=say.text("Show the hint too."))], False),
    }


def _commands(say: Say) -> Iterator[tuple[str, Callable[..., int], tuple[str, ...], str]]:
    """Every command: its name, what it does, its options, and its help."""

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

    yield "list", listed, ("lang",), say.text("List all worked examples.")
    yield (
        "show",
        show,
        ("id", "hint", "lang"),
        say.text("Show an exercise without its solution: what is given, what is asked."),
    )
    yield (
        "run",
        run,
        ("id", "step_by_step", *SHOWN),
        say.text("Work through an exercise, compare it with the published numbers, and point out what to notice."),
    )
    yield (
        "verify",
        verify,
        ("ids", "lang"),
        say.text("Recalculate every published digit; exit status 1 if any is off."),
    )
