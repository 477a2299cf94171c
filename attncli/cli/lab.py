"""attncli lab: small seeded experiments with a picture, each a command of its own."""

from typing import TYPE_CHECKING

from attncli.cli.options import REPORT_FORMAT, Command, Group, Word, example_ids, shared
from attncli.cli.output import REPORTS, Output, Words
from attncli.core.message import N_

if TYPE_CHECKING:
    from attncli.lab import Option


def _names() -> list[str]:
    from attncli import lab  # which loads NumPy

    return lab.names()


def _experiment(name: str) -> Command:
    from attncli import lab

    experiment = lab.get(name)

    def run(out: Output, words: Words) -> int:
        """Run the experiment and write its report to the screen or to a file."""
        from attncli.problems.settings import LARGEST_SEED, whole_number

        chosen = out.format(REPORTS)
        seed = whole_number("--seed", words["seed"], 0, LARGEST_SEED) or 0
        out.write_report(experiment.run(seed, lab.values_of(experiment, words, out.say.language)), chosen)
        return 0

    return Command(experiment.text, run, {
        **{setting.name: _word(setting) for setting in experiment.settings},
        "seed": Word("--seed N", N_("Seed of the random numbers (default: 0).")),
        **REPORT_FORMAT,
        **shared("output", "force", "lang"),
    })  # fmt: skip


def _word(setting: "Option") -> Word:
    """A setting as an option, or as the word without one."""
    spec = setting.option if setting.kind in ("problem", "flag") else f"{setting.option} {setting.metavar}"
    return Word(spec, setting.text, example_ids if setting.kind == "problem" else None)


COMMAND = Group(N_("Small experiments with a picture: scaling, softmax, overflow, heads, rank."), _names, _experiment)
