"""attncli check: mark one sheet."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def check(**words: Any) -> int:
        from attncli.cli._check import check as run

        return run(say, **words)

    t = say.text
    one, many = str | None, list[str] | None
    own: dict[str, tuple[Any, Any]] = {
        "exercise": (
            Annotated[str, typer.Argument(metavar="PROBLEM", help=t("A problem file, or the id of a worked example."), autocompletion=_complete.examples)],
            ...,
        ),
        "answers": (
            Annotated[many, typer.Argument(metavar="[ANSWERS] [STEP=M]...", help=t('The sheet: TOML, JSON, .npz or CSV, - for standard input; or answers written out, like A="0.330 0.670", with ? for a blank cell.'), show_default=False)],
            None,
        ),
        "answer": (
            Annotated[many, typer.Option("--answer", metavar="ID=M", help=t('The same as STEP=M.'), autocompletion=_complete.steps, show_default=False)],
            None,
        ),
        "map_": (
            Annotated[many, typer.Option("--map", metavar="FROM=STEP,...", help=t('Names of the sheet that mean steps, like --map "attn_probs=A,ctx=O".'), show_default=False)],
            None,
        ),
        "hint": (Annotated[bool, typer.Option("--hint", help=t("Only say where to look again; no right number."))], False),
        "reveal": (Annotated[bool, typer.Option("--reveal", help=t("Open up every wrong step, not only the first."))], False),
        "format": (Annotated[one, typer.Option("--format", metavar="table|json|markdown", help=t("How the marks are written."))], None),
    }  # fmt: skip
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("check", help=say.text("Mark a sheet: what is right, the first wrong step, and the mistake by name."))(
        with_options(
            check,
            ("exercise", "answers", "answer", "map_", "hint", "reveal", "format", "output", "force", "layout", "lang"),
            {**options(say), **own},
        )
    )
    return command_of(app)
