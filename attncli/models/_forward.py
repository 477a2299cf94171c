"""The feed-forward sublayer: two matrices with a bend between them, for every token by itself."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, InputError, Message
from attncli.models import Argument, Given, Setting
from attncli.models._vector import vector
from attncli.ops import activation, affine, multiply, product

WEIGHTS = (
    Argument("W_1", ("d_model", "d_ff"), N_("weights into the hidden layer")),
    Argument("W_2", ("d_ff", "d_out"), N_("weights out of the hidden layer")),
    Argument("b_1", ("d_ff",), N_("bias of the hidden layer"), required=False),
    Argument("b_2", ("d_out",), N_("bias of the output"), required=False),
    Argument("W_gate", ("d_model", "d_ff"), N_("weights of the gate, for swiglu"), required=False),
)

SETTINGS = (
    Setting(
        "activation",
        "choice",
        N_("the activation: relu (default), gelu, gelu_tanh (its usual approximation), silu, or swiglu"),
        ("relu", "gelu", "gelu_tanh", "silu", "swiglu"),
    ),
)


def feed_forward(graph: Graph, x: str, given: Given, prefix: str = "", out: str = "d_out") -> str:
    """Steps hidden, activated, Y (with swiglu also gate and swish) for x (token d_model); returns the id of Y."""
    kind = given.setting("activation", "relu")
    gated = kind == "swiglu"
    if gated != (f"{prefix}W_gate" in given):
        if gated:
            raise InputError(
                "swiglu needs a gate: give {name}, the shape of {other}.", name=f"{prefix}W_gate", other=f"{prefix}W_1"
            )
        raise InputError(
            "{name} is given, but {kind} has no gate. Leave it out, or write activation = swiglu.",
            name=f"{prefix}W_gate",
            kind=kind,
        )
    if gated:
        gate = _linear(graph, given, x, "gate", "W_gate", None, prefix, N_("The gate: which hidden numbers may pass."))
        swish = graph.apply(activation.OP, f"{prefix}swish", gate, symbol="Z", kind="silu")
    why = N_("Every token's vector in the hidden layer, usually several times as wide.")
    hidden = _linear(graph, given, x, "hidden", "W_1", "b_1", prefix, why)
    if gated:
        activated = graph.apply(
            multiply.OP,
            f"{prefix}activated",
            swish,
            hidden,
            symbol="F",
            why=Message(N_("Each hidden number is let through as far as its gate is open.")),
        )
    else:
        activated = graph.apply(activation.OP, f"{prefix}activated", hidden, symbol="F", kind=kind)
    why = N_("And back to the width of the tokens.")
    return _linear(graph, given, activated, "Y", "W_2", "b_2", prefix, why, out)


def _linear(
    graph: Graph, given: Given, x: str, id: str, weight: str, bias: str | None, prefix: str, why: str, out: str = ""
) -> str:
    """x W, plus a bias where there is one."""
    argument = next(one for one in WEIGHTS if one.name == weight)
    name = f"{prefix}{weight}"
    w = graph.input(name, given.inputs[name], (graph.axes(x)[-1].name, out or argument.axes[1]))
    said = Message(N_("The bias of {name}: the same numbers are added to every {row}."), name=id)
    b = vector(graph, given, f"{prefix}{bias}", out or argument.axes[1], why=said) if bias is not None else None
    symbol = {"gate": "G", "hidden": "H"}.get(id, id)
    if b is None:
        return graph.apply(product.OP, f"{prefix}{id}", x, w, symbol=symbol, why=Message(why))
    return graph.apply(affine.OP, f"{prefix}{id}", x, w, b, symbol=symbol, why=Message(why))
