"""A learner with a calculator: attention and its gradients in bare NumPy, right or with one known mistake.

Nothing of attncli is used here, so that what the marker says can be held against it. Further exercises (layers, heads)
stand in files of their own, each an `Exercise`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np


class Use:
    """What a line asks for: earlier lines by name, and room for what is noted beside it.

    Parameters
    ----------
    ask : the numbers of an earlier line, as this learner carries them on
    note : a number worked out in between (a column's sum, an e^x of a wrong way), as this learner carries it on
    """

    def __init__(self, ask: Callable[[str], Any], note: Callable[[str, Any], Any] | None = None) -> None:
        self.ask, self.note = ask, note

    def __call__(self, name: str) -> Any:
        return self.ask(name)

    def aside(self, label: str, value: Any) -> Any:
        """A number of the way that is no line of its own; rounded like a line by whoever rounds."""
        return value if self.note is None else self.note(label, value)

    def renamed(self, named: Callable[[str], str]) -> Use:
        """The same, asked by other names."""
        return Use(lambda name: self.ask(named(name)), self.note)


Line = Callable[[Use], Any]

CARRYING = ("full", "rounded", "by line", "by use")


def rounded(values: Any, decimals: int, ties: str = ROUND_HALF_UP) -> Any:
    """Every number rounded on paper; infinities and NaN stay."""
    values = np.atleast_1d(np.asarray(values, dtype=float))
    with np.errstate(all="ignore"):
        units = np.abs(values) * 10.0**decimals
        out = np.copysign(np.floor(units + 0.5) / 10.0**decimals, values)
        for cell in np.argwhere(np.abs(units - np.floor(units) - 0.5) < 1e-5):
            v = repr(float(values[tuple(cell)]))
            out[tuple(cell)] = float(Decimal(v).quantize(Decimal(1).scaleb(-decimals), ties))
    return np.where(np.isfinite(values), out, values) + 0.0


def as_text(values: Any, decimals: int, ties: str = ROUND_HALF_UP) -> str:
    """A matrix as a learner types it, heads separated by a bar."""
    unit = Decimal(1).scaleb(-decimals)

    def cell(v: float) -> str:
        if not np.isfinite(v):
            return "-inf" if v < 0 else "inf"
        # What a calculator shows: 0.3, and not its last bit.
        return format(Decimal(f"{float(v) + 0.0:.13g}").quantize(unit, ties), "f")

    def page(rows: Any) -> str:
        return "; ".join(" ".join(cell(v) for v in row) for row in rows)

    values = np.atleast_2d(values)
    return page(values) if values.ndim == 2 else " | ".join(map(page, values))


def from_text(text: str) -> Any:
    """The numbers of a page again."""
    pages = [[[float(v) for v in row.split()] for row in page.split(";")] for page in text.split("|")]
    return np.array(pages[0] if len(pages) == 1 else pages)


def t(values: Any) -> Any:
    """Transposed, head by head."""
    return np.swapaxes(values, -1, -2)


def gradient_of(id: str) -> str:
    """The line that holds a gradient: self.G_Q for self.Q."""
    part, dot, name = id.rpartition(".")
    return f"{part}{dot}G_{name}"


@dataclass(frozen=True)
class Exercise:
    """Another kind of exercise.

    Parameters
    ----------
    draw : a random one
    lines : its right calculation, line by line
    kinds : the mistakes (`wrongs.Kind`) that can be made in it
    output : the line whose gradient is given
    """

    draw: Callable[[random.Random], Case]
    lines: Callable[[Case], Iterator[tuple[str, Line]]]
    kinds: Callable[[Case], Iterator[Any]]
    output: str


@dataclass
class Case:
    """One exercise: numbers and how it is set up."""

    model: str
    inputs: dict[str, Any]
    texts: dict[str, str]
    hidden: Any = None
    mask: str = "none"
    upstream: Any = None
    eta: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    upstream_text: str = ""
    exercise: Exercise | None = None
    width: int | None = None  #: d_k, where no Q or W_Q says it
    names: tuple[str, str, str] = ("Q", "K", "V")  #: what attention itself works on
    vectors: tuple[str, ...] = ("row_max", "row_sum", "row_dot")  #: lines that may be written either way
    bias: Any = None  #: what the mask adds to the visible scores
    loss: str = ""  #: in place of a gradient that is given, with its targets
    targets: str = ""
    turned: int = 0  #: columns that are turned by their positions
    least: int = 1  #: decimals that are always written

    @property
    def known(self) -> dict[str, Any]:
        """What is given: the inputs, and the gradient that arrives."""
        output = self.exercise.output if self.exercise else OUTPUT.get(self.model, "O")
        return {**self.inputs} if self.upstream is None else {**self.inputs, gradient_of(output): self.upstream}

    @property
    def root(self) -> Any:
        """√d_k, where there is one."""
        if self.width is not None:
            return np.array(self.width**0.5)
        queries = self.inputs.get("Q", self.inputs.get("W_Q"))
        return None if queries is None or self.exercise else np.array(float(queries.shape[1]) ** 0.5)

    @property
    def source(self) -> str:
        """What softmax is taken of."""
        if self.model == "softmax":
            return "scores"
        return "masked" if self.hidden is not None else "scaled"


def entries(rng: random.Random, rows: int, columns: int, size: float) -> tuple[Any, str]:
    """Numbers with one or two decimals, and their text."""
    places = rng.choice((1, 2))
    cells = [[round(rng.uniform(-size, size), places) for _ in range(columns)] for _ in range(rows)]
    return np.array(cells), "; ".join(" ".join(f"{v:.{places}f}" for v in row) for row in cells)


def hidden_cells(rng: random.Random, kind: str, rows: int, columns: int) -> Any:
    if kind == "none":
        return None
    if kind == "causal":
        return np.triu(np.ones((rows, columns), dtype=bool), 1)
    hidden = np.zeros((rows, columns), dtype=bool)
    hidden[:, columns - rng.randint(1, columns - 1) :] = True
    return hidden


def make_case(rng: random.Random, model: str | None = None, square: bool | None = None, most: float = 4.0) -> Case:
    """A random exercise with scores within ±`most` and an upstream gradient that is not constant along a row."""
    model = model or rng.choice(
        (
            "self_attention",
            "self_attention",
            "attention",
            "attention",
            "embedded_attention",
            "softmax",
            "product",
            "embedding",
        )
    )
    while True:
        case = _draw(rng, model, rng.random() < 0.5 if square is None else square, most / 4)
        try:
            values = Learner(case, 6).run()
        except ValueError:
            continue
        upstream = case.upstream
        scores = values.get("scores", case.inputs.get("scores"))
        if upstream.shape[-1] > 1 and (np.ptp(upstream, -1) < 0.2).any():
            continue
        if scores is None or np.abs(scores[np.isfinite(scores)]).max() <= most:
            return case


def _draw(rng: random.Random, model: str, square: bool, wide: float = 1.0) -> Case:
    n, d = rng.randint(2, 4), rng.randint(2, 3)
    m = n if model != "attention" or rng.random() < 0.5 else rng.randint(2, 4)
    d_v, width = rng.randint(2, 3), rng.randint(2, 4)
    if square:
        m = d = d_v = width = n = rng.randint(2, 3)
    mask = rng.choice(("none", "causal", "causal", "padding"))
    shapes: dict[str, tuple[int, int]] = {}
    size = 1.6 * wide**0.5
    eta = None
    ids: list[int] = []
    if model == "attention":
        shapes = {"Q": (n, d), "K": (m, d), "V": (m, d_v)}
        upstream = (n, d_v)
    elif model in ("self_attention", "embedded_attention"):
        shapes = {"W_Q": (width, d), "W_K": (width, d), "W_V": (width, d_v)}
        upstream, size, m = (n, d_v), 1.2 * wide**0.25, n
        if model == "self_attention":
            shapes["X"] = (n, width)
    elif model == "softmax":
        shapes, upstream, mask, size = {"scores": (n, rng.randint(2, 4))}, (n, 0), "none", 4.0 * wide
        upstream = shapes["scores"]
    elif model == "product":
        shapes, upstream, mask = {"A": (n, m), "V": (m, d_v)}, (n, d_v), "none"
    else:
        upstream, mask = (n, width), "none"
    if model in ("embedded_attention", "embedding"):
        count = rng.randint(2, 4)
        shapes["E"] = (count, width)
        ids = [rng.randrange(count) for _ in range(n)]
        if rng.random() < 0.7:
            ids[-1] = ids[0]
        eta = rng.choice((0.1, 0.5, None))
    drawn = {name: entries(rng, *shape, size) for name, shape in shapes.items()}
    case = Case(model, {name: pair[0] for name, pair in drawn.items()}, {name: pair[1] for name, pair in drawn.items()})
    case.mask, case.hidden, case.eta = mask, hidden_cells(rng, mask, n, m), eta
    if ids:
        case.inputs["T"], case.texts["T"] = np.array(ids), " ".join(map(str, ids))
    if mask == "causal":
        case.settings["causal"] = True
    elif mask == "padding":
        case.settings["mask"] = "; ".join(" ".join("-inf" if h else "0" for h in row) for row in case.hidden)
    if eta is not None:
        case.settings["eta"] = eta
    case.upstream, case.upstream_text = entries(rng, *upstream, 2.0)
    return case


def lines(case: Case) -> Iterator[tuple[str, Line]]:
    """Every line of the right calculation, in order; a line asks for earlier ones by name."""
    if case.exercise is not None:
        yield from case.exercise.lines(case)
        return
    if case.model == "embedding":
        yield "X", lambda g: g("E")[case.inputs["T"]]
        yield from _table(case)
        return
    if case.model == "product":
        yield "O", lambda g: g("A") @ g("V")
        yield "G_A", lambda g: g("G_O") @ g("V").T
        yield "G_V", lambda g: g("A").T @ g("G_O")
        return
    if case.model == "softmax":
        yield from _softmax("scores")
        yield from _softmax_back("scores")
        return
    if case.model == "embedded_attention":
        yield "X", lambda g: g("E")[case.inputs["T"]]
    if case.model != "attention":
        for name in "QKV":
            yield name, lambda g, name=name: g("X") @ g(f"W_{name}")
    yield from attention(case)
    yield from attention_back(case)
    if case.model == "attention":
        return
    for name in "QKV":
        yield f"G_W_{name}", lambda g, name=name: g("X").T @ g(f"G_{name}")
        yield f"G_X_{name}", lambda g, name=name: g(f"G_{name}") @ g(f"W_{name}").T
    yield "G_X", lambda g: g("G_X_Q") + g("G_X_K") + g("G_X_V")
    if case.model == "embedded_attention":
        yield from _table(case)


def attention(case: Case) -> Iterator[tuple[str, Line]]:
    """From queries, keys and values to the output."""
    q, k, v = case.names
    yield "scores", lambda g: g(q) @ t(g(k))
    yield "scaled", lambda g: g("scores") / g("root")
    if case.hidden is not None:
        yield "masked", lambda g: np.where(case.hidden, -np.inf, g("scaled") + (0 if case.bias is None else case.bias))
    yield from _softmax(case.source)
    yield "O", lambda g: g("A") @ g(v)


def attention_back(case: Case) -> Iterator[tuple[str, Line]]:
    """And back to queries, keys and values."""
    q, k, v = case.names
    yield f"G_{v}", lambda g: t(g("A")) @ g("G_O")
    yield "G_A", lambda g: g("G_O") @ t(g(v))
    yield from _softmax_back(case.source)
    if case.hidden is not None:
        yield "G_scaled", lambda g: g("G_masked")
    yield "G_scores", lambda g: g("G_scaled") / g("root")
    yield f"G_{q}", lambda g: g("G_scores") @ g(k)
    yield f"G_{k}", lambda g: t(g("G_scores")) @ g(q)


def _softmax(source: str) -> Iterator[tuple[str, Line]]:
    yield "row_max", lambda g: g(source).max(-1, keepdims=True)
    yield "shifted", lambda g: g(source) - g("row_max")
    yield "exp", lambda g: np.exp(g("shifted"))
    yield "row_sum", lambda g: g("exp").sum(-1, keepdims=True)
    yield "A", lambda g: g("exp") / g("row_sum")


def _softmax_back(source: str) -> Iterator[tuple[str, Line]]:
    yield "weighted", lambda g: g("G_A") * g("A")
    yield "row_dot", lambda g: g("weighted").sum(-1, keepdims=True)
    yield "deviation", lambda g: g("G_A") - g("row_dot")
    yield f"G_{source}", lambda g: g("A") * g("deviation")


def _table(case: Case) -> Iterator[tuple[str, Line]]:
    yield "G_E", lambda g: _scattered(g("G_X"), case.inputs["T"], len(case.inputs["E"]))
    if case.eta is not None:
        yield "E_new", lambda g: g("E") - case.eta * g("G_E")


def _scattered(rows: Any, ids: Any, count: int) -> Any:
    out = np.zeros((count, rows.shape[1]))
    for row, id in zip(rows, ids, strict=True):
        out[id] += row
    return out


OUTPUT = {"softmax": "A", "embedding": "X"}


class Learner:
    """Works through the lines, carrying on full or rounded numbers.

    Parameters
    ----------
    carrying : "full", "rounded", "by line" (each line one or the other), "by use" (whenever a number is used)
    wrong : lines worked out in another way
    """

    def __init__(
        self,
        case: Case,
        decimals: int,
        carrying: str = "full",
        seed: int = 0,
        wrong: dict[str, Line] | None = None,
        ties: str = ROUND_HALF_UP,
    ) -> None:
        self.case, self.decimals, self.carrying, self.seed, self.ties = case, decimals, carrying, seed, ties
        self.wrong = wrong or {}
        self.raw: dict[str, Any] = {}
        self.paper: dict[str, Any] = {}

    def run(self, until: str | None = None) -> dict[str, Any]:
        """Every line before it is rounded for the page, as far as to one of them."""
        case, known = self.case, self.case.known
        if case.root is not None:
            self.raw["root"] = case.root
        with np.errstate(all="ignore"):
            for id, line in lines(case):
                line = self.wrong.get(id, line)
                ask = Use(
                    lambda name, id=id: known[name] if name in known else self._use(id, name),
                    lambda label, value, id=id: self._noted(id, label, value),
                )
                self.raw[id] = np.asarray(line(ask))
                if id == until:
                    break
        self.raw.pop("root", None)
        return self.raw

    def _use(self, line: str, name: str) -> Any:
        if self._keeps_full(line, name):
            return self.raw[name]
        if name not in self.paper:
            self.paper[name] = rounded(self.raw[name], self.decimals, self.ties)
        return self.paper[name]

    def _noted(self, line: str, label: str, value: Any) -> Any:
        """What is worked out on the way to a line."""
        if self._keeps_full(line, f"{line}/{label}"):
            return value
        return rounded(value, self.decimals, self.ties)

    def _keeps_full(self, line: str, name: str) -> bool:
        if self.carrying == "full":
            return True
        if self.carrying == "rounded" and name != "root":
            return False
        what = name if self.carrying in ("by line", "rounded") else f"{line}:{name}"
        return random.Random(f"{self.seed}:{what}").random() < 0.5
