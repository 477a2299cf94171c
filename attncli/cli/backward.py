"""attncli backward: the forward steps and every gradient."""

from typing import Any

from attncli.cli.forward import calculate
from attncli.cli.options import GRADIENT, INPUTS, SHOWN, PlainCommand, command_of, shared
from attncli.cli.output import Say
from attncli.core.message import N_


def command(say: Say) -> PlainCommand:
    """The command."""
    help = N_("Show the forward steps and every gradient, back to the inputs.")
    return command_of(say, "backward", help, backward, shared("problem", *INPUTS, *GRADIENT, "verify", *SHOWN))


def backward(say: Say, **words: Any) -> int:
    """Calculate the steps and the gradients, and show them."""
    return calculate(say, words, backward=True)
