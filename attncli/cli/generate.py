"""attncli generate: a trained GPT writes on."""

from typing import Annotated, Any

import typer

from attncli.cli._light import command_of
from attncli.cli._options import report_options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def generate(**words: Any) -> int:
        from attncli.cli._generate import generate

        return generate(say, **words)

    names = ("file", "prompt", "length", "temperature", "top", "seed", "trace", "verify", "format", "output", "force", "decimals", "full", "lang")  # fmt: skip
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(
        "generate",
        help=say.text("Let a saved training write on, token by token, with keys and values kept in a cache."),
    )(with_options(generate, names, {**report_options(say), **_own(say)}))
    return command_of(app)


def _own(say: Say) -> dict[str, tuple[Any, Any]]:
    t = say.text
    one = str | None
    return {
        "file": (Annotated[str, typer.Argument(metavar="FILE", help=t("A training that attncli train --save has written."))], ...),
        "prompt": (Annotated[str, typer.Argument(metavar="PROMPT", help=t("The beginning, in tokens that the training knows."))], ...),
        "length": (Annotated[one, typer.Option("--length", metavar="N", help=t("Tokens to write (20, or with --trace 3; fewer where the training looked at fewer together)."))], None),
        "temperature": (Annotated[one, typer.Option("--temperature", metavar="T", help=t("0, the default, takes the likeliest token; 1 draws by the probabilities; more is bolder."))], None),
        "top": (Annotated[one, typer.Option("--top", metavar="N", help=t("Draw among the N likeliest only."))], None),
        "seed": (Annotated[one, typer.Option("--seed", metavar="N", help=t("Of the draw (0)."))], None),
        "trace": (Annotated[bool, typer.Option("--trace", help=t("Show the whole calculation of every token, with the cache."))], False),
        "verify": (Annotated[bool, typer.Option("--verify", help=t("Work everything out again without a cache, and compare."))], False),
    }  # fmt: skip
