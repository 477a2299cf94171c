"""attncli backward: the forward steps and every gradient."""

from attncli.cli.forward import calculate
from attncli.cli.options import GRADIENT, INPUTS, SHOWN, Command, shared
from attncli.cli.output import Output, Words
from attncli.core.message import N_


def backward(out: Output, words: Words) -> int:
    """Calculate the steps and the gradients, and show them."""
    return calculate(out, words, backward=True)


COMMAND = Command(
    N_("Show the forward steps and every gradient, back to the inputs."),
    backward,
    shared("problem", *INPUTS, *GRADIENT, "verify", *SHOWN),
)
