"""The update behind the gradients: a step of gradient descent or of Adam for every parameter."""

from __future__ import annotations

import numpy as np

from attncli.arithmetic.expression import written
from attncli.core.graph import Input, gradient_id
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.models.layers import one_row
from attncli.models.model import Argument, Part, Setting, canonical, indexed
from attncli.ops.elementwise import ADAM_UPDATE, MOVING_AVERAGE, UNBIASED, UPDATE

SETTINGS = (
    Setting("eta", "positive", N_("learning rate η: adds the updated parameters, like E_new"), update=True),
    Setting("optimizer", "choice", N_("how they are updated: sgd (a plain step, the default) or adam"), ("sgd", "adam"), update=True),
    Setting("beta1", "number", N_("Adam: how much of the mean gradient is kept (default: 0.9)"), update=True),
    Setting("beta2", "number", N_("Adam: how much of the mean squared gradient is kept "
"(default: 0.999)"), update=True),
    Setting("adam_eps", "eps", N_("Adam: added to the root, against division by zero (default: 1e-8)"), update=True),
    Setting("t", "count", N_("Adam: which update this is (default: 1)"), update=True),
)  # fmt: skip

#: What Adam remembers of a parameter from one update to the next.
REMEMBERED = ("_m_past", "_v_past")

#: How much Adam keeps where nothing is said (Kingma and Ba, arXiv 1412.6980, algorithm 1).
BETAS = {"beta1": 0.9, "beta2": 0.999}
#: The inputs that hold 1 − βᵗ, and of which β.
CORRECTIONS = {"adam.c1": "beta1", "adam.c2": "beta2"}


def correction(beta: float, t: int) -> float:
    """1 − βᵗ: by this factor a running mean that began at 0 is too small after t updates."""
    return 1.0 - beta**t


def memories(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """For every parameter what Adam remembers of it, not listed by itself."""
    return tuple(
        argument.changed(name=f"{argument.name}{kind}", required=False, listed=False)
        for argument in arguments
        if argument.kind == "matrix"
        for kind in REMEMBERED
    )


def updated(part: Part, arguments: tuple[Argument, ...]) -> None:
    """W_new for every parameter W of these that has a gradient, where a learning rate was given."""
    graph, eta = part.graph, part.setting("eta")
    if eta is None:
        return
    names = {argument.name for argument in arguments}
    parameters = [
        input for input in graph.inputs.values() if canonical(input.id) in names and gradient_id(input.id) in graph
    ]
    graph.phase = "update"
    if part.setting("optimizer", "sgd") == "sgd":
        for one in parameters:
            symbol = indexed(one.symbol, "new")
            graph.apply(UPDATE, f"{one.id}_new", one.id, gradient_id(one.id), symbol=symbol, eta=eta)
        return
    corrections = _corrections(part)
    for one in parameters:
        _adam(part, one, eta, corrections)


def _corrections(part: Part) -> tuple[str, str]:
    """1 − β₁ᵗ and 1 − β₂ᵗ, as 1×1 inputs."""
    t = int(part.setting("t", 1))
    ids = []
    for step_id, name in CORRECTIONS.items():
        beta = _beta(part, name)
        left = written(("-", ("num", "1"), ("^", *beta.each(), ("num", str(t)))))
        why = Message(
            "1 − β^t = 1 − {beta}^{t}, t counting the updates. A running mean that began at 0 is too small by just this factor,"
            " so it is divided by it.",
            beta=f"{float(beta.values):g}",
            t=t,
        )
        more = {"symbol": f"c_{step_id[-1]}", "differentiable": False, "phase": "update", "why": why}
        ids.append(part.input(step_id, ("", ""), left.reshaped((1, 1)), **more))
    return ids[0], ids[1]


def _beta(part: Part, name: str) -> Matrix:
    beta: Matrix = part.setting(name, as_matrix(BETAS[name]))
    if not 0 <= float(beta.values) < 1:
        raise InputError(
            "{name} is {value}, but it is the share of the old mean that is kept. Give a number from 0 up to, but not including, 1; 0.9 and 0.999 are usual.",
            name=name,
            value=f"{float(beta.values):g}",
        )
    return beta


def _adam(part: Part, one: Input, eta: Matrix, corrections: tuple[str, str]) -> None:
    gradient = gradient_id(one.id)
    means = []
    for kind, correction, name, square in (("m", corrections[0], "beta1", False), ("v", corrections[1], "beta2", True)):
        beta, symbol = _beta(part, name), f"{kind}_{{{one.symbol}}}"
        mean = part.apply(
            MOVING_AVERAGE,
            f"{one.id}_{kind}",
            _remembered(part, one, kind),
            gradient,
            symbol=symbol,
            keep=beta,
            rest=written(("-", ("num", "1"), *beta.each())),
            square=square,
            notes={"label": rf"\beta_{name[-1]}"},
            why=_MEAN_SQUARE if square else None,
        )
        means.append(part.apply(UNBIASED, f"{one.id}_{kind}_hat", mean, correction, symbol=f"{symbol}'"))
    eps: Matrix = part.setting("adam_eps", as_matrix(1e-8))
    part.apply(ADAM_UPDATE, f"{one.id}_new", one.id, *means, symbol=indexed(one.symbol, "new"), eta=eta, eps=eps)


_MEAN_SQUARE = N_(
    "The same running average for the squared gradient: squares are never negative, so this "
    "says how large the gradient usually is."
)


def _remembered(part: Part, one: Input, kind: str) -> str:
    name = f"{one.id}_{kind}_past"
    shape = tuple(axis.size for axis in one.axes)
    values = part.inputs.get(name) or as_matrix(np.zeros(shape))
    if shape[0] == 1:
        values = one_row(values)
    if kind == "v" and (values.values < 0).any():
        raise InputError("{name} has a negative number, but it is a mean of squares. Give numbers from 0.", name=name)
    why = (
        N_("What Adam remembers of the gradients so far.")
        if name in part
        else N_("What Adam remembers of the gradients so far: nothing yet.")
    )
    axes, symbol = [axis.name for axis in one.axes], f"{kind}_{{{one.symbol}}}^{{past}}"
    return part.input(name, axes, values, symbol=symbol, differentiable=False, phase="update", why=why)
