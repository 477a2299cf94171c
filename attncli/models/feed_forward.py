"""The feed-forward sublayer: two matrices with a bend between them, for every token by itself (Vaswani et al., arXiv
1706.03762, equation 2; SwiGLU: Shazeer, arXiv 2002.05202, equation 6)."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.message import N_, InputError
from attncli.models.linear import linear
from attncli.models.model import TOKENS, Argument, Given, Model, Setting
from attncli.ops.elementwise import ACTIVATION, MULTIPLY

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
        why = N_("The gate: which hidden numbers may pass.")
        gate = linear(graph, given, x, f"{prefix}gate", f"{prefix}W_gate", "d_ff", symbol="G", why=why)
        swish = graph.apply(ACTIVATION, f"{prefix}swish", gate, symbol="Z", kind="silu")
    why = N_("Every token's vector in the hidden layer, usually several times as wide.")
    hidden = linear(
        graph, given, x, f"{prefix}hidden", f"{prefix}W_1", "d_ff", bias=f"{prefix}b_1", symbol="H", why=why
    )
    if gated:
        said = N_("Each hidden number is let through as far as its gate is open.")
        activated = graph.apply(MULTIPLY, f"{prefix}activated", swish, hidden, symbol="F", why=said)
    else:
        activated = graph.apply(ACTIVATION, f"{prefix}activated", hidden, symbol="F", kind=kind)
    why = N_("And back to the width of the tokens.")
    return linear(graph, given, activated, f"{prefix}Y", f"{prefix}W_2", out, bias=f"{prefix}b_2", why=why)


MODELS = (
    Model(
        name="feed_forward",
        text=N_("the feed-forward sublayer: two matrices with ReLU, GELU or a SwiGLU gate between them"),
        arguments=(TOKENS, *WEIGHTS),
        settings=SETTINGS,
        build=lambda graph, given: feed_forward(graph, given.enter(graph, TOKENS), given),
    ),
)
