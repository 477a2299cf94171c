"""attncli grade: mark a class."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The command."""

    def grade(**words: Any) -> int:
        from attncli.cli._grade import grade as run

        return run(say, **words)

    t = say.text
    one = str | None
    own: dict[str, tuple[Any, Any]] = {
        "exercise": (
            Annotated[str, typer.Argument(metavar="PROBLEM|WORKSHEETS", help=t("A problem file, the id of a worked example, or a folder of worksheets."), autocompletion=_complete.examples)],
            ...,
        ),
        "sheets": (
            Annotated[list[str], typer.Argument(metavar="SUBMISSIONS...", help=t("A folder of sheets, .jsonl or .csv files, or - for JSON Lines on standard input."))],
            ...,
        ),
        "format": (Annotated[one, typer.Option("--format", metavar="NAME", help=t("table, jsonl, csv, gradescope or junit; by default as -o ends, else table."))], None),
        "map_": (
            Annotated[list[str] | None, typer.Option("--map", metavar="FROM=STEP,...", help=t('Names of the sheet that mean steps, like --map "attn_probs=A,ctx=O".'), show_default=False)],
            None,
        ),
        "feedback": (Annotated[one, typer.Option("--feedback", metavar="DIR", help=t("Also write each student's feedback there, as Markdown."))], None),
        "jobs": (Annotated[one, typer.Option("-j", "--jobs", metavar="N", help=t("Processes that mark side by side (1, if nothing is said)."))], None),
        "dask": (Annotated[one, typer.Option("--dask", metavar="ADDRESS", help=t("Mark on a Dask cluster (needs the extra attncli[dask])."))], None),
    }  # fmt: skip
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("grade", help=say.text("Mark a class: a result a sheet, and the picture of the class."))(
        with_options(
            grade,
            ("exercise", "sheets", "format", "output", "force", "feedback", "map_", "jobs", "dask", "layout", "lang"),
            {**options(say), **own},
        )
    )
    return command_of(app)
