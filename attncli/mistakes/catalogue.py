"""The mistakes by name: how often they were seen, what was done, and what to look at again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attncli.message import N_, Message
from attncli.ops._norm import source_of
from attncli.record import Record

if TYPE_CHECKING:
    from attncli.core.graph import Graph


class Entry(Record):
    """A mistake of the catalogue: times seen in public, what it does, where to look."""

    seen: int
    did: str
    look: str


_TRANSPOSE = N_(
    "Look again at which operand is transposed: inner lengths must match, and each entry must meet its partner."
)
_MASK = N_("Look again at the mask: which places are hidden, and what number hides them.")
_BIAS = N_("Look again at the numbers that the mask adds: which head they belong to, and that what is far away loses.")
_LINES = N_("Look again at which way you added up: along a {row}, never down a {column}.")
_HEADS = N_("Look again at which numbers belong to which head, and which head goes where.")
_NORM = N_("Look again at the norm: minus the mean, over the root of the variance plus ε.")
_ANGLE = N_("Look again at the angle p/10000^(2i/d): which i belongs to which {column}?")
_PAIRS = N_("Look again at which two {columns} are turned together.")
_RESIDUAL = N_("Look again at the residual connection: X + F, and its gradient goes both ways in full.")
_BACK = N_("Look again at the way back: what arrives, and which forward values it is multiplied by.")

CATALOGUE: dict[str, Entry] = {
    "weight-transposed": Entry(4, N_("You multiplied by the transposed weight matrix."), _TRANSPOSE),
    "wrong-weight": Entry(2, N_("You multiplied by another projection's weight matrix."), N_("Look again at which of W_Q, W_K and W_V belongs here.")),
    "other-sequence": Entry(0, N_("You worked from the other sequence. Across two sequences, queries come from the tokens that look, keys and values from those that are looked at."), N_("Look again at which sequence this is made of: the one that looks, or the one that is looked at?")),
    "key-not-transposed": Entry(1, N_("You multiplied Q by K, without transposing K."), _TRANSPOSE),
    "operands-swapped": Entry(2, N_("You multiplied the two matrices the other way round."), N_("Look again at the order of the product: it matters for matrices.")),
    "no-scale": Entry(4, N_("You left out the division by √d_k."), N_("Look again at the scale: divide every score by √d_k.")),
    "scale-by-d": Entry(2, N_("You divided by d_k itself, or twice by its root."), N_("Look again at the scale: it is the square root of d_k, once.")),
    "scale-by-model-width": Entry(8, N_("You divided by the root of the model's width, not of d_k."), N_("Look again at which width d_k is: the number of columns of Q and K.")),
    "scale-by-part": Entry(0, N_("You divided by the root of another width. d_k counts every {column} that a query has, the part that is turned included."), N_("Look again at which width d_k is: the part with the content and the part that is turned, together.")),
    "scale-inverted": Entry(1, N_("You multiplied by √d_k where one divides."), N_("Look again at the scale: it makes scores smaller.")),
    "no-mask": Entry(0, N_("You left the mask out."), _MASK),
    "mask-as-zero": Entry(3, N_("You set hidden scores to 0. But e^0 = 1, so hidden keys still get weight."), _MASK),
    "mask-tiny": Entry(1, N_("You set hidden scores to a tiny number. It has to be a hugely negative one: −∞."), _MASK),
    "mask-plus-infinity": Entry(1, N_("You set hidden scores to +∞; that puts all weight on them. It has to be −∞."), _MASK),
    "mask-added-as-01": Entry(2, N_("You added a matrix of 0 and 1. A mask that is added holds 0 and −∞."), _MASK),
    "mask-inverted": Entry(4, N_("You hid the visible keys and showed the hidden ones."), _MASK),
    "mask-diagonal": Entry(2, N_("You hid the diagonal too. A token may see itself."), _MASK),
    "mask-other-triangle": Entry(1, N_("You hid the past and left the future visible."), _MASK),
    "mask-query-rows": Entry(3, N_("You laid the mask over queries; it belongs over keys."), _MASK),
    "mask-other-corner": Entry(5, N_("You started the causal triangle at the other corner."), _MASK),
    "bias-left-out": Entry(0, N_("You hid what has to be hidden, but left out the numbers that the mask adds to the other scores."), _BIAS),
    "bias-sign": Entry(0, N_("You turned the sign of the numbers that the mask adds."), _BIAS),
    "bias-of-another-head": Entry(0, N_("You gave the heads each other's numbers."), _BIAS),
    "softmax-over-columns": Entry(12, N_("You normalised down each {column}. Softmax runs along each {row}: a query shares its attention among the keys."), _LINES),
    "softmax-over-all": Entry(2, N_("You normalised over the whole matrix. Softmax runs along each {row} by itself."), _LINES),
    "column-sums-broadcast": Entry(1, N_("You divided {columns} by the sums of {rows} (in NumPy: keepdims was missing)."), _LINES),
    "mask-after-softmax": Entry(3, N_("You took the softmax first and set hidden weights to 0 afterwards, so the {rows} no longer add up to 1."), N_("Look again at the order: mask first, then softmax.")),
    "no-normalisation": Entry(0, N_("You stopped at e^x and did not divide by the sum of the {row}."), N_("Look again at the last line of softmax.")),
    "no-exponential": Entry(0, N_("You divided the scores by their sum, without e^x."), N_("Look again at the middle of softmax: e^x first, then divide.")),
    "softmax-twice": Entry(1, N_("You applied softmax to weights that had been through softmax already."), N_("Look again at how often softmax is applied: once.")),
    "sum-of-logits": Entry(0, N_("You added up the scores, not their exponentials."), N_("Look again at what is added up: e^x, after the maximum was subtracted.")),
    "table-not-transposed": Entry(0, N_("You multiplied by E as it stands. A logit compares a token's vector with one {row} of E, so it takes Eᵀ."), N_("Look again at how the logits use E: which way round must it be for one score a token of the vocabulary?")),
    "weights-transposed": Entry(1, N_("You multiplied the transposed weights by V."), _TRANSPOSE),
    "value-transposed": Entry(0, N_("You transposed V. Weight j belongs to {row} j of V, so V stays as it is."), _TRANSPOSE),
    "scores-for-weights": Entry(1, N_("You multiplied scores by V; softmax was forgotten."), N_("Look again at what weighs the values: A, after softmax.")),
    "split-without-transpose": Entry(6, N_("You cut the heads out of consecutive {rows}. Each token's own {columns} are shared out: head 1 gets the first ones of every token."), _HEADS),
    "merge-without-transpose": Entry(3, N_("You put the heads one after another in memory order. They stand side by side: each token gets its own {row} of every head."), _HEADS),
    "heads-reversed": Entry(0, N_("You joined the heads in another order."), _HEADS),
    "no-output-projection": Entry(5, N_("You stopped at the joined heads; W_O still mixes them."), N_("Look again at the last line: the joined heads times W_O.")),
    "kv-heads-tiled": Entry(4, N_("You dealt the shared heads out in turn, 1 2 1 2. Neighbouring query heads share one: 1 1 2 2."), _HEADS),
    "sample-variance": Entry(5, N_("You divided by n − 1. LayerNorm uses the population variance: divide by n."), _NORM),
    "eps-outside-root": Entry(5, N_("You added ε after the root. It stands under the root, beside the variance."), _NORM),
    "normalised-over-tokens": Entry(4, N_("You normalised down each {column}. A norm works along each {row}: a token by itself."), _LINES),
    "not-square-rooted": Entry(1, N_("You divided by the variance. One divides by its square root."), _NORM),
    "not-centred": Entry(1, N_("You did not take the mean away; that is the rule of RMS normalisation."), _NORM),
    "exponent-doubled": Entry(4, N_("You put twice the exponent: the i in 2i/d counts pairs, so 2i is already the number of the {column}."), _ANGLE),
    "cos-exponent-odd": Entry(4, N_("You gave the cosine an exponent of its own. Sine and cosine of a pair share one angle."), _ANGLE),
    "sin-cos-concatenated": Entry(4, N_("You put all sines first and then all cosines. Here they take turns."), N_("Look again at the order of the {columns}.")),
    "positions-from-one": Entry(0, N_("You counted positions from 1. The first one is 0."), N_("Look again at where counting starts.")),
    "base-changed": Entry(1, N_("You used another base."), N_("Look again at the base of the angles.")),
    "no-positions": Entry(0, N_("You left the positions out."), N_("Look again at what goes into the attention: the embedding plus where the token stands.")),
    "positions-on-queries-only": Entry(1, N_("You added the positions for the queries only. Keys and values come from the same vectors."), N_("Look again at what K and V are made of: embeddings with positions.")),
    "half-split-pairs": Entry(5, N_("You paired the first half of the {columns} with the second. Here neighbours form a pair."), _PAIRS),
    "adjacent-pairs": Entry(5, N_("You paired neighbouring {columns}. Here the first half goes with the second half."), _PAIRS),
    "rotation-reversed": Entry(3, N_("You turned the other way round."), N_("Look again at the signs: (x cos θ − y sin θ, x sin θ + y cos θ).")),
    "value-rotated": Entry(1, N_("You turned the values too. What a token hands over does not depend on its place."), N_("Look again at what is turned by position: queries and keys, never values.")),
    "norm-placement": Entry(3, N_("You put the norm in another place of the sublayer."), N_("Look again at where the norm stands: behind the sum, LN(x + f(x)), or before the sublayer, x + f(LN(x))?")),
    "residual-missing": Entry(0, N_("You left out what went in: the sublayer's output is added to its input."), _RESIDUAL),
    "residual-doubled": Entry(1, N_("You added the sublayer's output to itself. It is added to what went in."), _RESIDUAL),
    "gradient-not-transposed": Entry(3, N_("A transpose is missing in this gradient (or there is one too many)."), _TRANSPOSE),
    "value-for-gradient": Entry(1, N_("You used a forward value where its gradient belongs."), _BACK),
    "gradients-swapped": Entry(1, N_("This is another matrix's gradient: two were exchanged."), _BACK),
    "softmax-passed-through": Entry(1, N_("You passed the gradient straight through softmax."), N_("Look again at softmax's rule: weight times (gradient minus the {row}'s average).")),
    "softmax-diagonal-only": Entry(4, N_("You used only the diagonal, a(1 − a). Raising one weight also lowers the others in its {row}."), N_("Look again at softmax's rule: weight times (gradient minus the {row}'s average).")),
    "softmax-sign": Entry(1, N_("The difference has the wrong sign: it is the gradient minus the average."), N_("Look again at the order of the subtraction.")),
    "row-dot-over-columns": Entry(0, N_("You added up along the wrong lines."), _LINES),
    "upstream-twice": Entry(2, N_("You multiplied once more than the rule says."), _BACK),
    "gradient-scale-lost": Entry(2, N_("You forgot the factor 1/√d_k on the way back."), N_("Look again at the scale: a factor on the way forward is the same factor on the way back.")),
    "path-missing": Entry(3, N_("A path is missing from the sum."), N_("Look again at every place this matrix is used: each sends a gradient back, and all are added.")),
    "path-twice": Entry(3, N_("A path is counted twice in the sum."), N_("Look again at every place this matrix is used: each counts once.")),
    "group-not-summed": Entry(2, N_("You took the gradient of one query head only. A shared head gets the sum over its whole group."), N_("Look again at how many query heads used this one: each sends a gradient back, and all are added.")),
    "residual-path-missing": Entry(2, N_("You left out the gradient that goes past the sublayer."), _RESIDUAL),
    "norm-paths-missing": Entry(2, N_("You treated the mean and the variance as constants. They move with every entry of their {row}, so they send gradients back too."), N_("Look again at every place where X is used in the norm: directly, in the mean, and in the variance.")),
    "mean-for-sum": Entry(1, N_("You took the mean over the {rows}. It is their sum: every {row} used the same numbers."), N_("Look again at how the {rows} are put together: they are added, not averaged.")),
    "output-head-missing": Entry(1, N_("You took only the look-up's part. The same table also makes the logits, and sends a gradient back from there too."), N_("Look again at every place where the table E is used: at the beginning and at the end.")),
    "batch-factor-missing": Entry(1, N_("You forgot to divide by the number of tokens: the loss is their mean, so each has 1/N of it, and of the gradient."), N_("Look again at what the loss is a mean over.")),
    "gradient-overwritten": Entry(4, N_("A repeated token kept only its last gradient. Repeated tokens add up."), N_("Look again at tokens that occur more than once.")),
    "log-base": Entry(0, N_("You took a logarithm to another base. The loss uses the natural one, ln."), N_("Look again at the logarithm: ln, to the base e; log₂ and log₁₀ are other numbers.")),
    "no-bias-correction": Entry(0, N_("You left out Adam's correction: m and v began at 0 and are too small at first, so they are divided by 1 − βᵗ."), N_("Look again at what Adam divides by 1 − βᵗ before its step.")),
    "update-sign": Entry(1, N_("You took a step uphill: it has to be subtracted, not added."), N_("Look again at the sign of the step: against the gradient.")),
    "layout-transposed": Entry(4, N_("This is the right matrix, transposed."), N_("Look again at which way tokens run.")),
    "sign": Entry(0, N_("A sign is wrong."), N_("Look again at the signs in the marked cells.")),
    "decimal-point": Entry(0, N_("The decimal point slipped."), N_("Look again at the decimal point in the marked cells.")),
    "cells-exchanged": Entry(0, N_("Two places are exchanged."), N_("Look again at where the marked numbers belong.")),
}  # fmt: skip

_FACTOR = N_("Look again at the formula of this step: one number multiplies every entry.")
_ROOT_MEAN_SQUARE = N_(
    "Look again at the norm: each {row} over the root of its mean square plus ε; no mean is taken away."
)

#: What the same mistake is called where the step is another: a factor that is no 1/√d_k, a norm without a mean.
_ELSEWHERE: dict[tuple[str, str], Entry] = {
    ("no-scale", "factor"): Entry(4, N_("You left out the factor that every score is multiplied by."), _FACTOR),
    ("gradient-scale-lost", "factor"): Entry(2, N_("You left out the factor: every entry is multiplied by the same number here."), _FACTOR),
    ("not-square-rooted", "std"): Entry(1, N_("You took the variance itself. σ is its square root."), _NORM),
    ("not-square-rooted", "rms"): Entry(1, N_("You took the mean square itself. RMS normalisation divides by its root."), _ROOT_MEAN_SQUARE),
    ("eps-outside-root", "rms"): Entry(5, N_("You added ε after the root. It stands under the root, beside the mean square."), _ROOT_MEAN_SQUARE),
}  # fmt: skip

#: Slips of the pen come after a single wrong calculation, which teaches more.
_SLIPS = frozenset({"layout-transposed", "sign", "decimal-point", "cells-exchanged"})

#: Another plan for several lines: a single thing left out that gives the same numbers is simpler.
_PLANS = frozenset({"norm-placement"})

#: What says the same as another, only less exactly.
_VAGUER = {
    "path-missing": frozenset({"residual-path-missing", "norm-paths-missing", "output-head-missing"}),
    "sign": frozenset({"softmax-sign", "bias-sign", "mask-plus-infinity"}),
}


def rank(id: str) -> tuple[bool, bool, int, int]:
    """The likelier first: calculations before slips, the simple and the commoner first, else the catalogue's order."""
    return id in _SLIPS, id in _PLANS, -CATALOGUE[id].seen, list(CATALOGUE).index(id)


def without_vaguer(ids: Sequence[str]) -> list[str]:
    """The ids that are worth a sentence beside the others: what another says more exactly is left out."""
    return [id for id in ids if not _VAGUER.get(id, frozenset()).intersection(ids)]


def did(id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What was done, as a sentence; of a known step in its own words."""
    return Message(_entry(id, graph, at).did)


def look(id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What to look at again, without giving the answer away."""
    return Message(_entry(id, graph, at).look)


def varies(id: str) -> bool:
    """Whether the words depend on the step."""
    return any(id == one for one, _ in _ELSEWHERE)


def _entry(id: str, graph: Graph | None, at: str) -> Entry:
    kind = _kind(graph, at) if graph is not None and at in graph.steps else ""
    return _ELSEWHERE.get((id, kind), CATALOGUE[id])


def _kind(graph: Graph, at: str) -> str:
    """Whether a step multiplies by a number that is given, belongs to an RMS norm, or is the σ of a LayerNorm."""
    step = graph.steps[at]
    if step.op.name == "scale" and step.params.get("factor") is not None:
        return "factor"
    root = graph.steps.get(step.inputs[1]) if step.op.name == "standardise" else step
    if root is None or root.op.name != "root_eps":
        return ""
    square = graph.steps.get(root.inputs[0])
    if square is None or source_of(graph, square.inputs[0])[1]:
        return "std" if root is step else ""
    return "rms"
