"""attncli forward: from the inputs to the result."""

from collections.abc import Sequence
from typing import Any

from attncli.cli.options import INPUTS, PROBLEM, SHOWN, arithmetic_of, command_of, shared
from attncli.cli.output import Say, show
from attncli.core.message import InputError


def command(say: Say) -> Any:
    """The command."""
    help = say.text("Show every step from the inputs to the result.")
    return command_of("forward", help, forward, say, (*PROBLEM, *INPUTS, *SHOWN), shared(say))


def forward(say: Say, **words: Any) -> int:
    """Calculate the steps, and show them."""
    return calculate(say, words, backward=False)


def calculate(say: Say, words: dict[str, Any], *, backward: bool) -> int:
    """Run a problem and write it in the format that was asked for; 1 where --verify finds a gradient that is off."""
    from attncli.problems.request import calculated, problem_of

    options = arithmetic_of(words)
    problem = problem_of(words["problem"], words)
    steps = words["step"] or ()
    if not backward and not problem.has_gradient:
        _refuse_gradients(steps)
    result = calculated(
        words["problem"], problem, words, backward=backward, steps=steps, check=bool(words.get("verify")), **options
    )
    show(say, result, words)
    return 1 if result.verification is not None and not result.verification.ok else 0


def _refuse_gradients(steps: Sequence[str]) -> None:
    """Refuse to show gradients where nothing starts them."""
    if not steps:
        return
    from attncli.problems.names import means_gradient

    for step in steps:
        if means_gradient(step):
            raise InputError(
                "--step {step}: this is a gradient, and forward stops before them. Write attncli backward, with"
                ' --upstream MATRIX or --loss TEXT, like --loss "sum(O)".',
                step=step,
            )
