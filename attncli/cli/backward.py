"""attncli backward: the forward steps and every gradient."""

from typing import Any

from attncli.cli.forward import calculate
from attncli.cli.options import GRADIENT, INPUTS, PROBLEM, SHOWN, command_of, shared
from attncli.cli.output import Say


def command(say: Say) -> Any:
    """The command."""
    help = say.text("Show the forward steps and every gradient, back to the inputs.")
    names = (*PROBLEM, *INPUTS, *GRADIENT, "verify", *SHOWN)
    return command_of("backward", help, backward, say, names, shared(say))


def backward(say: Say, **words: Any) -> int:
    """Calculate the steps and the gradients, and show them."""
    return calculate(say, words, backward=True)
