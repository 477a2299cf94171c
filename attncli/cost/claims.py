"""What is said about the variants, examined: by the sizes at hand, and with numbers on the same weights.

The claims restate what an article on attention variants says of them. The formulas they are held against are the papers':
MQA from Shazeer (arXiv 1911.02150), GQA from Ainslie et al. (arXiv 2305.13245), MLA from DeepSeek-V2 (arXiv 2405.04434),
whose table 1 is the published table of cache sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from attncli.core.matrix import FloatArray, as_matrix
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.cost.count import TWO, Product, Ratio, Size, Sizes, Symbols, count, product, total
from attncli.cost.published import ComparedModel
from attncli.problems.problem import Problem


class Finding(Record):
    """One model's number for a claim, which holds within the bounds that are claimed.

    Parameters
    ----------
    reading : what exactly is compared, where a claim can be read in several ways
    where : sizes at which the claim holds
    """

    model: ComparedModel
    ratio: Ratio
    claimed: tuple[Fraction, Fraction]
    reading: Message | None = None
    where: Message | None = None

    @property
    def holds(self) -> bool:
        least, most = self.claimed
        return least <= self.ratio.value <= most


class Claim(Record):
    """A claim, what was found, and what to think of it."""

    id: str
    text: Message
    findings: tuple[Finding, ...]
    verdict: Message


#: The article's numbers: a tenth, to one decimal; a rank, and how far it is said to compress.
TENTH = Fraction(1, 10)
_LEAST, _MOST = TENTH - Fraction(1, 20), TENTH + Fraction(1, 20)
RANK = 64
FOLD = 16


def claims(models: Mapping[str, Sequence[ComparedModel]]) -> tuple[Claim, ...]:
    """The claims about each variant, with a finding for every model that it is compared at."""

    def found(variant: str, examine: Callable[[ComparedModel], Iterator[Finding]]) -> tuple[Finding, ...]:
        return tuple(finding for model in models[variant] for finding in examine(model))

    examined = (
        Claim(
            "mqa-cache",
            Message("MQA's cache is smaller by a factor of n_h, the number of heads."),
            found("mqa", _multi_query),
            Message(
                "Holds at all sizes: d_h and l are the same on both sides and cancel. Only the cache shrinks so far; the table above says by how much the parameters and multiply-adds do."
            ),
        ),
        Claim(
            "gqa-cache",
            Message("GQA's cache is smaller by a factor of n_h/n_g, the query heads that share a group."),
            found("gqa", _grouped),
            Message("Holds at all sizes. With n_g = 1 it is MQA's claim, with n_g = n_h nothing is saved."),
        ),
        Claim(
            "mla-cache",
            Message("MLA's cache is about a tenth of MHA's."),
            found("mla", _tenth),
            Message(
                "It depends on n_h: MHA's cache grows with it, MLA's does not. “About” here means {least} to {most}.",
                least=_LEAST,
                most=_MOST,
            ),
        ),
        Claim(
            "rank",
            Message("A rank of {rank} compresses by a factor of {fold}.", rank=RANK, fold=FOLD),
            found("mla", _compressed),
            Message(
                "Not a fact about rank {rank}: it depends on the width that is compressed, and on what is counted.",
                rank=RANK,
            ),
        ),
    )
    return tuple(claim for claim in examined if claim.findings)


def _cache(variant: str, sizes: Sizes) -> Product:
    return count(variant, sizes).cache


def _multi_query(model: ComparedModel) -> Iterator[Finding]:
    sizes = model.sizes
    heads = Fraction(sizes.heads)
    yield Finding(model, Ratio(_cache("mha", sizes), _cache("mqa", sizes)), (heads, heads))


def _grouped(model: ComparedModel) -> Iterator[Finding]:
    sizes = model.sizes
    shared = Fraction(sizes.heads, sizes.kv_heads)
    yield Finding(model, Ratio(_cache("mha", sizes), _cache("gqa", sizes)), (shared, shared))


def _tenth(model: ComparedModel) -> Iterator[Finding]:
    sizes = model.sizes
    # (d_c + d_h^R) / (2 n_h d_h) = share, solved for n_h.
    heads = Fraction(sizes.d_c + sizes.d_rope, 2 * sizes.d_head)
    where = Message(
        "about a tenth for n_h from {fewest} to {most}, a tenth at {exactly}",
        fewest=heads / _MOST,
        most=heads / _LEAST,
        exactly=heads / TENTH,
    )
    yield Finding(model, Ratio(_cache("mla", sizes), _cache("mha", sizes)), (_LEAST, _MOST), where=where)


def _compressed(model: ComparedModel) -> Iterator[Finding]:
    """Everything that “compresses” can mean, and the width at which that is 16-fold."""

    def at_width(reading: Message, ratio: Ratio, width: Fraction) -> Finding:
        where = Message("a factor of {fold} at a width of {width}", fold=FOLD, width=width)
        return Finding(model, ratio, exactly, reading, where)

    sizes, exactly = model.sizes, (Fraction(FOLD), Fraction(FOLD))
    s, rank = Symbols(sizes), Size("r", RANK)
    keys = product(s.heads, s.d_head)
    both = keys.times(TWO)
    own = Message("a token's keys, kept as {rank} numbers", rank=RANK)
    yield at_width(own, Ratio(keys, product(rank)), Fraction(FOLD * RANK))
    latent = Message("its keys and values, from one latent")
    yield at_width(latent, Ratio(both, product(rank)), Fraction(FOLD * RANK, 2))
    if sizes.d_rope:
        rotary = Message("the same with the rotary part, which is cached too")
        width = Fraction(FOLD * (RANK + sizes.d_rope), 2)
        yield at_width(rotary, Ratio(both, product(total(rank, s.d_rope))), width)
    wide = Size(keys.symbols, keys.value)
    weights = Ratio(keys.times(s.d_model), product(rank, total(s.d_model, wide)))
    square = Message("a factor of {fold} for a square matrix of width {width}", fold=FOLD, width=2 * FOLD * RANK)
    yield Finding(model, weights, exactly, Message("the weights W_K, as two factors"), square)


# MQA and MHA are GQA with one group and with a group for every head. The model `multi_head` computes all heads at once;
# beside it every head is computed on its own by the model `attention`, from its own columns of the same weights, and the
# heads are put together by hand.

TOKENS, D_MODEL, HEADS, KV_HEADS, D_HEAD = 5, 12, 4, 2, 3


class SameWeights(Record):
    """Variants on the same weights: the largest differences between their outputs.

    Parameters
    ----------
    rows : a variant, its heads of keys and values, and how far `multi_head` is from the heads computed one by one
    absorbed : of MLA with keys and values rebuilt, and with W_UK and W_UV absorbed
    apart : of MQA and MHA themselves, so that a difference of 0 says something
    """

    rows: tuple[tuple[str, int, float], ...]
    absorbed: float
    apart: float
    seed: int


def on_same_weights(seed: int = 0) -> SameWeights:
    """All of it on seeded weights."""
    weights = seeded_weights(seed)
    cases = {"mqa": 1, "gqa": KV_HEADS, "mha": HEADS}
    outputs = {variant: together(weights, kv_heads) for variant, kv_heads in cases.items()}
    rows = tuple(
        (variant, kv_heads, largest_difference(outputs[variant], one_by_one(weights, kv_heads)))
        for variant, kv_heads in cases.items()
    )
    return SameWeights(rows, _absorbed(seed), largest_difference(outputs["mqa"], outputs["mha"]), seed)


def _absorbed(seed: int) -> float:
    """`latent` run both ways on the same weights, with a latent of queries and a rotary part."""
    wide, d_c, d_c_q, d_rope = HEADS * D_HEAD, 2 * D_HEAD, 4, 2
    inputs = _random(
        seed, X=(TOKENS, D_MODEL), W_DKV=(D_MODEL, d_c), W_UK=(d_c, wide), W_UV=(d_c, wide), W_DQ=(D_MODEL, d_c_q),
        W_UQ=(d_c_q, wide), W_QR=(d_c_q, HEADS * d_rope), W_KR=(D_MODEL, d_rope), W_O=(wide, D_MODEL),
    )  # fmt: skip
    return largest_difference(
        _output("latent", inputs, heads=HEADS, absorbed=False), _output("latent", inputs, heads=HEADS, absorbed=True)
    )


def seeded_weights(seed: int) -> dict[str, FloatArray]:
    """X, W_Q, W_K, W_V, W_O with as many heads of keys and values as of queries."""
    projection = (D_MODEL, HEADS * D_HEAD)
    return _random(seed, X=(TOKENS, D_MODEL), W_Q=projection, W_K=projection, W_V=projection, W_O=projection[::-1])


def _random(seed: int, **shapes: tuple[int, int]) -> dict[str, FloatArray]:
    random = np.random.default_rng(seed)
    return {name: random.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}


def together(weights: Mapping[str, FloatArray], kv_heads: int) -> FloatArray:
    """The output of `multi_head` that uses the first `kv_heads` heads of W_K and W_V."""
    used = {name: weights[name][:, : kv_heads * D_HEAD] for name in ("W_K", "W_V")}
    return _output("multi_head", {**weights, **used}, heads=HEADS, kv_heads=kv_heads)


def one_by_one(weights: Mapping[str, FloatArray], kv_heads: int) -> FloatArray:
    """The same without `multi_head`: `attention` for one head at a time."""
    heads = []
    for head in range(HEADS):
        # Neighbours share: with 2 heads of keys and values, query heads 1 and 2 take the first.
        shared = head * kv_heads // HEADS
        columns = {"Q": head, "K": shared, "V": shared}
        inputs = {
            name: weights["X"] @ weights[f"W_{name}"][:, own * D_HEAD : (own + 1) * D_HEAD]
            for name, own in columns.items()
        }
        heads.append(_output("attention", inputs))
    return np.concatenate(heads, axis=1) @ weights["W_O"]


def _output(model: str, inputs: Mapping[str, FloatArray], **settings: int) -> FloatArray:
    matrices = {name: as_matrix(values) for name, values in inputs.items()}
    graph = Problem(model, matrices, settings={**settings, "causal": True}).graph()
    result: FloatArray = graph.evaluate(until=graph.output)[graph.output]
    return result


def largest_difference(a: FloatArray, b: FloatArray) -> float:
    return float(np.abs(a - b).max())
