"""A learner with a calculator at cross-entropy and at the update of the parameters: SGD and Adam. Bare NumPy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from learn_layers import array
from learn_parts import Page, Part
from learner import Case, lines
from wrongs import Kind, alike, softmax_wrong

#: The lines of softmax, as the loss calls them.
_LOSS = {name: f"loss.{name}" for name in ("row_max", "shifted", "exp", "row_sum")} | {"A": "loss.P"}


def loss_part(rng: random.Random, case: Case, n: int) -> Part:
    """Softmax over the classes, minus the logarithm at each target, added up or averaged; and the logits' gradient."""
    count = len(case.inputs["E"])
    targets = _targets(rng, case, n, count)
    is_mean = rng.random() < 0.6
    name = "targets" if case.targets else "T"
    case.loss = (
        f"cross_entropy(logits, {name})"
        if is_mean and rng.random() < 0.5
        else (f"cross_entropy(logits, {name}, {'mean' if is_mean else 'sum'})")
    )
    counted = np.flatnonzero(targets >= 0)
    y = np.zeros((n, count))
    y[counted, targets[counted]] = 1.0
    is_shared = is_mean and len(counted) > 1
    error = "loss.error" if is_shared else "G_logits"
    softmax = Case("softmax", {"scores": np.zeros((n, count))}, {})
    own = [pair for pair in lines(softmax) if pair[0] in _LOSS]
    part = Part("", {"scores": "logits"}, {}, own, [], [], names=dict(_LOSS))
    part.kinds = [kind for kind in softmax_wrong(softmax) if kind.place in _LOSS]
    part.forward += [
        ("loss.picked", lambda g: (g("loss.P") * y).sum(-1, keepdims=True)[counted]),
        ("loss.surprise", lambda g: -np.log(g("loss.picked"))),
        ("L", lambda g: g("loss.surprise").sum(0, keepdims=True) / (len(counted) if is_mean else 1)),
    ]
    part.back.append((error, lambda g: np.where(targets[:, None] >= 0, g("loss.P") - y, 0.0)))
    if is_shared:
        part.back.append(("G_logits", lambda g: g("loss.error") / len(counted)))
        part.kinds.append(Kind("G_logits", "batch-factor-missing", lambda g: g("loss.error")))
        part.kinds.append(Kind("L", "batch-factor-missing", lambda g: g("loss.surprise").sum(0, keepdims=True)))
    if is_mean and len(counted) > 1:
        again: Any = lambda g: g("loss.surprise").sum(0, keepdims=True) / len(counted) / len(counted)  # noqa: E731
        part.kinds.append(Kind("L", "mean-taken-twice", again))
        share: Any = lambda g: g.aside("once", g("loss.error") / len(counted)) / len(counted)  # noqa: E731
        part.kinds.append(Kind("G_logits", "mean-taken-twice", share))
    for base in (2, 10):
        part.kinds.append(Kind("loss.surprise", "log-base", lambda g, b=base: -np.log(g("loss.picked")) / np.log(b)))
    bare: Any = lambda g: (g("logits") * y).sum(-1, keepdims=True)[counted]  # noqa: E731
    part.kinds.append(Kind("loss.surprise", "loss-of-logit", bare, "the logit itself"))
    part.kinds.append(Kind("loss.surprise", "loss-of-logit", lambda g: -np.log(bare(g)), "its logarithm"))
    return part


def _targets(rng: random.Random, case: Case, n: int, count: int) -> Any:
    """Classes of their own, one of them perhaps not counted; or the text itself, moved on by one."""
    if rng.random() < 0.4:
        return np.array([*case.inputs["T"][1:], -1])
    found = [rng.randrange(count) for _ in range(n)]
    if rng.random() < 0.3:
        found[rng.randrange(n)] = -1
    case.targets = " ".join(map(str, found))
    return np.array(found)


# The update -------------------------------------------------------------------------------------------------------


def updated(rng: random.Random, case: Case, page: Page, gradients: dict[str, str]) -> None:
    """New parameters from their gradients, in one of three ways: not at all, by a plain step, or as Adam does."""
    way = rng.choice(("none", "sgd", "adam"))
    if way == "none":
        return
    eta = case.settings["eta"] = rng.choice((0.05, 0.1, 0.5))
    if way == "sgd":
        for name, gradient in gradients.items():
            page.behind.append((f"{name}_new", lambda g, n=name, at=gradient: g(n) - eta * g(at)))
            page.own.append(Kind(f"{name}_new", "update-sign", lambda g, n=name, at=gradient: g(n) + eta * g(at)))
        return
    case.settings["optimizer"] = "adam"
    beta = [0.9, 0.999]
    if rng.random() < 0.6:
        beta = [rng.choice((0.5, 0.8)), rng.choice((0.5, 0.75, 0.9))]
        case.settings["beta1"], case.settings["beta2"] = beta
    eps = case.settings["adam_eps"] = rng.choice((0.001, 0.01))
    count = 1
    if rng.random() < 0.4:
        count = case.settings["t"] = rng.randint(2, 3)
        _remembered(rng, case, list(gradients))
    for name, gradient in gradients.items():
        page.behind += _adam(case, name, gradient, beta, count, eta, eps)
        page.own += _adam_kinds(name, eta, eps)


def _remembered(rng: random.Random, case: Case, names: list[str]) -> None:
    for name in names:
        for kind in ("m", "v"):
            numbers, text = array(rng, case.inputs[name].shape, 1.0)
            if kind == "v":
                numbers, text = np.abs(numbers), text.replace("-", "")
            case.inputs[f"{name}_{kind}_past"], case.texts[f"{name}_{kind}_past"] = numbers, text


def _adam(case: Case, name: str, gradient: str, beta: list[float], count: int, eta: float, eps: float) -> Any:
    for kind, keep, power in (("m", beta[0], 1), ("v", beta[1], 2)):
        past = f"{name}_{kind}_past"
        is_known = past in case.inputs

        def mean(g: Any, past: str = past, keep: float = keep, power: int = power, known: bool = is_known) -> Any:
            return (keep * g(past) if known else 0.0) + (1 - keep) * g(gradient) ** power

        yield f"{name}_{kind}", mean
        yield f"{name}_{kind}_hat", lambda g, k=kind, b=keep: g(f"{name}_{k}") / (1 - b**count)
    yield (
        f"{name}_new",
        lambda g: g(name) - eta * g(f"{name}_m_hat") / (np.sqrt(g(f"{name}_v_hat")) + eps),
    )


def _adam_kinds(name: str, eta: float, eps: float) -> Iterator[Kind]:
    def step(g: Any, hat: str = "_hat") -> Any:
        return eta * g(f"{name}_m{hat}") / (np.sqrt(g(f"{name}_v{hat}")) + eps)

    yield Kind(f"{name}_new", "update-sign", lambda g: g(name) + step(g))
    yield Kind(f"{name}_new", "no-bias-correction", lambda g: g(name) - step(g, ""))
    bare = [(f"{name}_{kind}_hat", lambda g, k=kind: g(f"{name}_{k}")) for kind in ("m", "v")]
    for place, line in bare:
        yield Kind(place, "no-bias-correction", line)
    yield from alike("no-bias-correction", bare, "both")
