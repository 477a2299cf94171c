"""attncli forward: from the inputs to the result."""

from collections.abc import Sequence

from attncli.cli.options import INPUTS, SHOWN, Command, shared
from attncli.cli.output import Output, Words
from attncli.core.message import N_, InputError


def forward(out: Output, words: Words) -> int:
    """Calculate the steps, and show them."""
    return calculate(out, words, backward=False)


def calculate(out: Output, words: Words, *, backward: bool) -> int:
    """Run a problem and write it in the format that was asked for; 1 where --verify finds a gradient that is off."""
    from attncli.problems.request import calculated, problem_of

    name, steps = words["problem"], words["step"]
    problem = problem_of(name, words)
    if not backward and not problem.has_gradient:
        _refuse_gradients(steps)
    check = bool(words.get("verify"))
    result = calculated(name, problem, words, backward=backward, steps=steps, check=check)
    out.show(result)
    return 1 if result.verification is not None and not result.verification.ok else 0


def _refuse_gradients(steps: Sequence[str]) -> None:
    """Refuse to show gradients where nothing starts them."""
    from attncli.problems.names import means_gradient

    for step in filter(means_gradient, steps):
        raise InputError(
            "--step {step}: this is a gradient, and forward stops before them. Write attncli backward, with"
            ' --upstream MATRIX or --loss TEXT, like --loss "sum(O)".',
            step=step,
        )


COMMAND = Command(N_("Show every step from the inputs to the result."), forward, shared("problem", *INPUTS, *SHOWN))
