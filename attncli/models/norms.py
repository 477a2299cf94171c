"""Layer normalisation (Ba et al., arXiv 1607.06450, equations 3 and 4) and RMS normalisation (Zhang and Sennrich,
arXiv 1910.07467, equation 4): every row brought to the same size, with the population variance and ε under the root."""

from __future__ import annotations

from attncli.core.graph import Graph
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, Message
from attncli.models.linear import vector
from attncli.models.model import Argument, Given, Model, Setting
from attncli.ops.elementwise import IDENTITY
from attncli.ops.rows import ADD_EPS, CENTRE, ROOT_EPS, ROW_MEAN, ROW_MEAN_SQUARE, SCALE_SHIFT, STANDARDISE

GAMMA = Argument("gamma", ("d",), N_("the factor γ of every column; 1 where it is left out"), required=False)
BETA = Argument("beta", ("d",), N_("the shift β of every column; 0 where it is left out"), required=False)
SETTINGS = (
    Setting("eps", "eps", N_("ε under the root, against division by zero (default: 1e-5)")),
    Setting(
        "eps_place",
        "choice",
        N_("where ε is added: under the root (inside, the default) or after it (outside)"),
        ("inside", "outside"),
    ),
)

_GAMMA = N_("γ: one learned factor for every {column}.")
_BETA = N_("β: one learned shift for every {column}.")


def layer_norm(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """Steps mean, centred, variance, std, normalised, Y for the rows of x (token d); returns the id of Y."""
    mean = graph.apply(ROW_MEAN, f"{prefix}mean", x, symbol=r"\mu")
    centred = graph.apply(CENTRE, f"{prefix}centred", x, mean, symbol="C", column=True)
    variance = graph.apply(
        ROW_MEAN_SQUARE,
        f"{prefix}variance",
        centred,
        symbol=r"\sigma^2",
        why=N_(
            "The variance of each {row}: the mean of the squared distances from the mean. It is divided by d, not by d − 1:"
            " nothing is estimated from a sample here."
        ),
    )
    std = _root(graph, variance, given, f"{prefix}std", r"\sigma", None)
    return _scaled(graph, centred, std, given, prefix)


def rms_norm(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """Steps mean_square, rms, normalised, Y for the rows of x (token d); returns the id of Y."""
    square = graph.apply(ROW_MEAN_SQUARE, f"{prefix}mean_square", x, symbol="q")
    why = N_("The root of the mean square: the size of a typical entry of the {row}; ε keeps it away from 0.")
    rms = _root(graph, square, given, f"{prefix}rms", "r", Message(why))
    return _scaled(graph, x, rms, given, prefix)


def _root(graph: Graph, squares: str, given: Given, step_id: str, symbol: str, why: Message | None) -> str:
    """The divisor: √(squares + ε), or √squares + ε with a step more for the root alone."""
    eps: Matrix = given.setting("eps", as_matrix(1e-5))
    if given.setting("eps_place", "inside") == "inside" or not float(eps.values):
        return graph.apply(ROOT_EPS, step_id, squares, symbol=symbol, eps=eps, why=why)
    plain = N_("The square root alone; ε is added after it.")
    root = graph.apply(ROOT_EPS, f"{step_id}_root", squares, symbol=f"{symbol}_0", eps=as_matrix(0.0), why=plain)
    return graph.apply(ADD_EPS, step_id, root, symbol=symbol, eps=eps)


def _scaled(graph: Graph, divided: str, divisor: str, given: Given, prefix: str) -> str:
    normalised = graph.apply(STANDARDISE, f"{prefix}normalised", divided, divisor, symbol="N")
    axis = graph.axes(divided)[-1].name
    vectors = [
        vector(graph, given, f"{prefix}gamma", axis, symbol=r"\gamma", why=Message(_GAMMA)),
        vector(graph, given, f"{prefix}beta", axis, symbol=r"\beta", why=Message(_BETA)),
    ]
    there = [step_id for step_id in vectors if step_id is not None]
    if not there:
        why = N_("Without γ and β the normalised values are the result.")
        return graph.apply(IDENTITY, f"{prefix}Y", normalised, why=why)
    gamma, beta = (step_id is not None for step_id in vectors)
    return graph.apply(SCALE_SHIFT, f"{prefix}Y", normalised, *there, gamma=gamma, beta=beta)


_X = Argument("X", ("token", "d"), N_("the tokens, one row each"))

MODELS = (
    Model(
        name="layer_norm",
        text=N_("layer normalisation: each row minus its mean, over its standard deviation, times γ plus β"),
        arguments=(_X, GAMMA, BETA),
        settings=SETTINGS,
        build=lambda graph, given: layer_norm(graph, given.enter(graph, _X), given),
    ),
    Model(
        name="rms_norm",
        text=N_("RMS normalisation: each row over its root mean square, times γ; the mean stays"),
        arguments=(_X, GAMMA),
        settings=SETTINGS,
        build=lambda graph, given: rms_norm(graph, given.enter(graph, _X), given),
    ),
)
