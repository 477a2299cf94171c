"""attncli lab: small seeded experiments with a picture, each a command of its own."""

from typing import Any

from attncli.cli.options import (
    Declared,
    PlainGroup,
    argument,
    command_of,
    example_ids,
    flag,
    group_of,
    option,
    shared_by_reports,
)
from attncli.cli.output import Say, report_format, write_report


def command(say: Say) -> Any:
    """The group of experiments, which are imported only when one of them is asked for: they load NumPy."""

    class Experiments(PlainGroup):
        """One command for each file in attncli/lab."""

        def list_commands(self, ctx: Any) -> list[str]:
            from attncli import lab

            return lab.names()

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _experiment(cmd_name, say) if cmd_name in self.list_commands(ctx) else None

    return group_of(
        say.text("Small experiments with a picture: scaling, softmax, overflow, heads, rank."), say, Experiments
    )


def _experiment(name: str, say: Say) -> Any:
    from attncli import lab

    experiment = lab.get(name)

    def run(say: Say, *, seed: str | None, format: str | None, output: str | None, force: bool, lang: str | None, **words: Any) -> int:  # fmt: skip
        """Run the experiment and write its report to the screen or to a file."""
        from attncli.lab import values_of
        from attncli.problems.settings import LARGEST_SEED, whole_number

        chosen = report_format(format, output)
        start = whole_number("--seed", seed, 0, LARGEST_SEED) or 0
        report = experiment.run(start, values_of(experiment, words, say.language))
        write_report(say, report, chosen, output, force=force)
        return 0

    own = {setting.name: _declared(setting, say) for setting in experiment.settings}
    own["seed"] = option("--seed", metavar="N", help=say.text("Seed of the random numbers (default: 0)."))
    names = (*own, "format", "output", "force", "lang")
    return command_of(name, say.text(experiment.text), run, say, names, {**shared_by_reports(say), **own})


def _declared(setting: Any, say: Say) -> Declared:
    """A setting as an option, or as the word without one."""
    help = say.text(setting.text)
    if setting.kind == "problem":
        return argument(setting.metavar, help=help, complete=example_ids, default=None)
    if setting.kind == "flag":
        return flag(setting.option, help=help)
    return option(setting.option, metavar=setting.metavar, help=help)
