"""What a row goes through by itself: x W + b, a norm, the feed-forward sublayer.

Layer normalisation: Ba et al., arXiv 1607.06450, equations 3 and 4; RMS normalisation: Zhang and Sennrich, arXiv
1910.07467, equation 4; both with the population variance and ε under the root. Feed-forward: Vaswani et al., arXiv
1706.03762, equation 2; SwiGLU: Shazeer, arXiv 2002.05202, equation 6.
"""

from __future__ import annotations

from attncli.core.axes import show_shape
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models.model import TOKENS, Argument, Model, Part, Setting
from attncli.ops.elementwise import ACTIVATION, IDENTITY, MULTIPLY
from attncli.ops.product import AFFINE, PRODUCT
from attncli.ops.rows import ADD_EPS, CENTRE, ROOT_EPS, ROW_MEAN, ROW_MEAN_SQUARE, SCALE_SHIFT, STANDARDISE

# --- x W + b ----------------------------------------------------------------------------------------------------------


def linear(part: Part, x: str, name: str, weight: str, axis: str, why: str, symbol: str | None = None) -> str:
    """The step `name`: x ([…] i) times the weights (i axis), plus their bias (axis) where it is given; returns its id."""
    w = part.input(weight, (part.graph.axes(x)[-1].name, axis))
    said = Message("The bias of {name}: the same numbers are added to every {row}.", name=name)
    return _times(part, x, w, vector(part, weight.replace("W_", "b_"), axis, said), name, why, symbol)


def _times(
    part: Part, x: str, w: str, b: str | None, name: str, why: str, symbol: str | None, transposed: bool = False
) -> str:
    """The step `name`: x W or, with a bias, x W + b; `transposed`: x Wᵀ."""
    operands = (x, w) if b is None else (x, w, b)
    op = PRODUCT if b is None else AFFINE
    return part.apply(op, name, *operands, symbol=symbol, why=why, transpose_b=transposed)


def logits(part: Part, x: str, tied: str | None = None) -> str:
    """The step logits: one score for every entry of the vocabulary, with W_out or with a table that is used again."""
    why = N_("Weights that turn a token's vector into one score for every entry of the vocabulary.")
    weight = tied or part.input("W_out", (part.graph.axes(x)[-1].name, "vocabulary"), why=why)
    bias = vector(part, "b_out", "vocabulary", N_("The bias of the logits."))
    said = N_("One score for every entry of the vocabulary: how well it fits as the next token.")
    return _times(part, x, weight, bias, "logits", said, "Z", transposed=tied is not None)


def one_row(matrix: Matrix) -> Matrix:
    """A vector written as a list, a row or a column, as one row; anything else as it is."""
    size = matrix.values.size
    return matrix.reshaped((1, size)) if max(matrix.shape, default=1) == size else matrix


def vector(part: Part, name: str, axis: str, why: Message | str, symbol: str | None = None) -> str | None:
    """Add a vector (1 axis) to the graph where it is given; returns its id, or None.

    Raises
    ------
    ShapeError
        Several rows.
    """
    if name not in part:
        return None
    row = one_row(part.matrix(name))
    if row.values.ndim == 2 and row.shape[0] != 1:
        before = part.graph.binding(part.named(name), axis)
        raise ShapeError(
            "{name} is {shape}, but it is a vector: all {rows} share it. Write one {row} of {length}.",
            name=part.named(name),
            shape=show_shape(row.shape),
            length=row.shape[1] if before is None else before.size,
        )
    return part.input(name, ("", axis), row, symbol=symbol, why=why)


# --- norms ------------------------------------------------------------------------------------------------------------

GAMMA = Argument("gamma", ("d",), N_("the factor γ of every column; 1 where it is left out"), required=False)
BETA = Argument("beta", ("d",), N_("the shift β of every column; 0 where it is left out"), required=False)
NORM_SETTINGS = (
    Setting("eps", "eps", N_("ε under the root, against division by zero (default: 1e-5)")),
    Setting(
        "eps_place",
        "choice",
        N_("where ε is added: under the root (inside, the default) or after it (outside)"),
        ("inside", "outside"),
    ),
)


def layer_norm(part: Part, x: str) -> str:
    """Steps mean, centred, variance, std, normalised, Y for the rows of x (token d); returns the id of Y."""
    mean = part.apply(ROW_MEAN, "mean", x, symbol=r"\mu")
    centred = part.apply(CENTRE, "centred", x, mean, symbol="C", column=True)
    why = N_(
        "The variance of each {row}: the mean of the squared distances from the mean. It is divided by d, not by d − 1:"
        " nothing is estimated from a sample here."
    )
    variance = part.apply(ROW_MEAN_SQUARE, "variance", centred, symbol=r"\sigma^2", why=why)
    return _scaled(part, centred, _root(part, variance, "std", r"\sigma"))


def rms_norm(part: Part, x: str) -> str:
    """Steps mean_square, rms, normalised, Y for the rows of x (token d); returns the id of Y."""
    square = part.apply(ROW_MEAN_SQUARE, "mean_square", x, symbol="q")
    why = N_("The root of the mean square: the size of a typical entry of the {row}; ε keeps it away from 0.")
    return _scaled(part, x, _root(part, square, "rms", "r", why))


def _root(part: Part, squares: str, name: str, symbol: str, why: str | None = None) -> str:
    """The divisor: √(squares + ε), or √squares + ε with a step more for the root alone."""
    eps: Matrix = part.setting("eps", as_matrix(1e-5))
    if part.setting("eps_place", "inside") == "inside" or not float(eps.values):
        return part.apply(ROOT_EPS, name, squares, symbol=symbol, eps=eps, why=why)
    plain = N_("The square root alone; ε is added after it.")
    root = part.apply(ROOT_EPS, f"{name}_root", squares, symbol=f"{symbol}_0", eps=as_matrix(0.0), why=plain)
    return part.apply(ADD_EPS, name, root, symbol=symbol, eps=eps)


def _scaled(part: Part, divided: str, divisor: str) -> str:
    normalised = part.apply(STANDARDISE, "normalised", divided, divisor, symbol="N")
    axis = part.graph.axes(divided)[-1].name
    gamma = vector(part, "gamma", axis, N_("γ: one learned factor for every {column}."), r"\gamma")
    beta = vector(part, "beta", axis, N_("β: one learned shift for every {column}."), r"\beta")
    there = [step_id for step_id in (gamma, beta) if step_id is not None]
    if not there:
        return part.apply(IDENTITY, "Y", normalised, why=N_("Without γ and β the normalised values are the result."))
    return part.apply(SCALE_SHIFT, "Y", normalised, *there, gamma=gamma is not None, beta=beta is not None)


# --- the feed-forward sublayer: two matrices with a bend between them, for every token by itself ---------------------

FORWARD_WEIGHTS = (
    Argument("W_1", ("d_model", "d_ff"), N_("weights into the hidden layer")),
    Argument("W_2", ("d_ff", "d_out"), N_("weights out of the hidden layer")),
    Argument("b_1", ("d_ff",), N_("bias of the hidden layer"), required=False),
    Argument("b_2", ("d_out",), N_("bias of the output"), required=False),
    Argument("W_gate", ("d_model", "d_ff"), N_("weights of the gate, for swiglu"), required=False),
)

FORWARD_SETTINGS = (
    Setting(
        "activation",
        "choice",
        N_("the activation: relu (default), gelu, gelu_tanh (its usual approximation), silu, or swiglu"),
        ("relu", "gelu", "gelu_tanh", "silu", "swiglu"),
    ),
)


def feed_forward(part: Part, x: str, out: str = "d_out") -> str:
    """Steps hidden, activated, Y (with swiglu also gate and swish) for x (token d_model); returns the id of Y."""
    kind = part.setting("activation", "relu")
    gated = kind == "swiglu"
    if gated and "W_gate" not in part:
        raise InputError(
            "swiglu needs a gate: give {name}, the shape of {other}.",
            name=part.named("W_gate"),
            other=part.named("W_1"),
        )
    if not gated and "W_gate" in part:
        raise InputError(
            "{name} is given, but {kind} has no gate. Leave it out, or write activation = swiglu.",
            name=part.named("W_gate"),
            kind=kind,
        )
    if gated:
        gate = linear(part, x, "gate", "W_gate", "d_ff", N_("The gate: which hidden numbers may pass."), "G")
        swish = part.apply(ACTIVATION, "swish", gate, symbol="Z", kind="silu")
    why = N_("Every token's vector in the hidden layer, usually several times as wide.")
    hidden = linear(part, x, "hidden", "W_1", "d_ff", why, "H")
    if gated:
        said = N_("Each hidden number is let through as far as its gate is open.")
        activated = part.apply(MULTIPLY, "activated", swish, hidden, symbol="F", why=said)
    else:
        activated = part.apply(ACTIVATION, "activated", hidden, symbol="F", kind=kind)
    return linear(part, activated, "Y", "W_2", out, N_("And back to the width of the tokens."))


# --- Models -----------------------------------------------------------------------------------------------------------

_ROWS = Argument("X", ("token", "d"), N_("the tokens, one row each"))

MODELS = (
    Model(
        name="layer_norm",
        text=N_("layer normalisation: each row minus its mean, over its standard deviation, times γ plus β"),
        arguments=(_ROWS, GAMMA, BETA),
        settings=NORM_SETTINGS,
        build=lambda part: layer_norm(part, part.enter(_ROWS)),
    ),
    Model(
        name="rms_norm",
        text=N_("RMS normalisation: each row over its root mean square, times γ; the mean stays"),
        arguments=(_ROWS, GAMMA),
        settings=NORM_SETTINGS,
        build=lambda part: rms_norm(part, part.enter(_ROWS)),
    ),
    Model(
        name="feed_forward",
        text=N_("the feed-forward sublayer: two matrices with ReLU, GELU or a SwiGLU gate between them"),
        arguments=(TOKENS, *FORWARD_WEIGHTS),
        settings=FORWARD_SETTINGS,
        build=lambda part: feed_forward(part, part.enter(TOKENS)),
    ),
)
