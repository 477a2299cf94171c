"""attncli lab: small seeded experiments with a picture, each a command of its own."""

from typing import TYPE_CHECKING, Any

from attncli.cli.options import REPORT_FORMAT, PlainCommand, PlainGroup, Word, command_of, example_ids, group_of, shared
from attncli.cli.output import REPORTS, Output, Say
from attncli.core.message import N_

if TYPE_CHECKING:
    from attncli.lab import Option


def command(say: Say) -> PlainGroup:
    """The group of experiments, which are imported only when one of them is asked for: they load NumPy."""
    return group_of(say, N_("Small experiments with a picture: scaling, softmax, overflow, heads, rank."), Experiments)


class Experiments(PlainGroup):
    """One command for each file in attncli/lab."""

    def list_commands(self, ctx: Any) -> list[str]:
        from attncli import lab

        return lab.names()

    def get_command(self, ctx: Any, cmd_name: str) -> PlainCommand | None:
        return _experiment(cmd_name, ctx.obj) if cmd_name in self.list_commands(ctx) else None


def _experiment(name: str, say: Say) -> PlainCommand:
    from attncli import lab

    experiment = lab.get(name)

    def run(say: Say, **words: Any) -> int:
        """Run the experiment and write its report to the screen or to a file."""
        from attncli.lab import values_of
        from attncli.problems.settings import LARGEST_SEED, whole_number

        out = Output(say, words)
        chosen = out.format(REPORTS)
        seed = whole_number("--seed", words["seed"], 0, LARGEST_SEED) or 0
        out.write_report(experiment.run(seed, values_of(experiment, words, say.language)), chosen)
        return 0

    words = {
        **{setting.name: _word(setting) for setting in experiment.settings},
        "seed": Word("--seed N", N_("Seed of the random numbers (default: 0).")),
        **REPORT_FORMAT,
        **shared("output", "force", "lang"),
    }
    return command_of(say, name, experiment.text, run, words)


def _word(setting: "Option") -> Word:
    """A setting as an option, or as the word without one."""
    spec = setting.option if setting.kind in ("problem", "flag") else f"{setting.option} {setting.metavar}"
    return Word(spec, setting.text, example_ids if setting.kind == "problem" else None)
