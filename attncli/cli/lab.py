"""attncli lab: small seeded experiments with a picture, each a command of its own."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from attncli.cli import _complete
from attncli.cli._light import command_of, with_help
from attncli.cli._options import report_options, with_options
from attncli.cli._say import Say


def command(say: Say) -> Any:
    """The group of experiments, which are imported only when one of them is asked for: they load NumPy."""

    class Experiments(TyperGroup):
        """One command for each file in attncli/lab."""

        def list_commands(self, ctx: Any) -> list[str]:
            from attncli import lab

            return lab.names()

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _experiment(say, cmd_name) if cmd_name in self.list_commands(ctx) else None

    app = typer.Typer(
        cls=Experiments,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        help=say.text("Small experiments with a picture: scaling, softmax, overflow, heads, rank."),
    )

    @app.callback()
    def start(
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text("Language of everything shown.")),
    ) -> None:
        """Also before the experiment's name; the language was found before the words were read."""

    return command_of(app)


def _experiment(say: Say, name: str) -> Any:
    from attncli import lab

    experiment = lab.get(name)
    table = {**report_options(say), **_own(experiment, say)}
    names = (*(setting.name for setting in experiment.settings), "seed", "format", "output", "force", "lang")

    def run(**words: Any) -> int:
        from attncli.cli._lab import run as run_experiment

        return run_experiment(say, experiment, **words)

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, help=say.text(experiment.text))(with_options(run, names, table))
    return with_help(command_of(app), say)


def _own(experiment: Any, say: Say) -> dict[str, tuple[Any, Any]]:
    """The options of one experiment, and those that all of them have."""
    t, one = say.text, str | None
    own: dict[str, tuple[Any, Any]] = {
        "seed": (Annotated[one, typer.Option("--seed", metavar="N", help=t("Start of the random numbers, 0 if nothing is said."))], None),
    }  # fmt: skip
    for setting in experiment.settings:
        help = t(setting.text)
        if setting.kind == "problem":
            argument = typer.Argument(
                metavar=setting.metavar, help=help, autocompletion=_complete.examples, show_default=False
            )
            own[setting.name] = (Annotated[str | None, argument], None)
        elif setting.kind == "flag":
            own[setting.name] = (Annotated[bool, typer.Option(setting.option, help=help)], False)
        else:
            option = typer.Option(setting.option, metavar=setting.metavar, help=help)
            own[setting.name] = (Annotated[str | None, option], None)
    return own
