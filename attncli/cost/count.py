"""Parameters, cache and multiply-adds of MHA, MQA, GQA and MLA, product by product.

MHA: Vaswani et al., arXiv 1706.03762; MQA: Shazeer, arXiv 1911.02150; GQA: Ainslie et al., arXiv 2305.13245;
MLA: DeepSeek-V2, arXiv 2405.04434, equations 9 to 19 and 37 to 47. Every line is of one layer; the totals are
times the layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from attncli.core.record import Record
from attncli.cost.product import Product, Size, product, total, two
from attncli.cost.sizes import Sizes

VARIANTS = ("mha", "mqa", "gqa", "mla")


class CountLine(Record):
    """One part of a count: the weights or the product it belongs to, and how many."""

    name: str
    count: Product


class Count(Record):
    """What one variant costs.

    Parameters
    ----------
    variant : "mha", "mqa", "gqa" or "mla"
    sizes : what it was counted from
    weights, prefill, decode : lines of one layer: parameters; multiply-adds for the whole context at once; for its
        last token alone, with the others in the cache
    absorbed : the same last token where W_UK and W_UV stay with the query and the output (MLA)
    cache : elements per token, over all layers
    """

    variant: str
    sizes: Sizes
    weights: tuple[CountLine, ...]
    prefill: tuple[CountLine, ...]
    decode: tuple[CountLine, ...]
    absorbed: tuple[CountLine, ...]
    cache: Product

    def total(self, part: str) -> int:
        """Over all layers: "weights", "prefill", "decode" or "absorbed"."""
        lines: tuple[CountLine, ...] = getattr(self, part)
        return self.sizes.layers * sum(line.count.value for line in lines)

    @property
    def cache_bytes(self) -> Fraction:
        """Bytes per token."""
        return self.cache.value * self.sizes.bytes

    @property
    def full_cache_bytes(self) -> Fraction:
        """Bytes once the context is full."""
        return self.cache_bytes * self.sizes.cached


class Symbols:
    """The sizes as factors, under the letters of the DeepSeek-V2 paper."""

    def __init__(self, sizes: Sizes) -> None:
        self.d_model = Size("d_model", sizes.d_model)
        self.heads = Size("n_h", sizes.heads)
        self.d_head = Size("d_h", sizes.d_head)
        self.d_c = Size("d_c", sizes.d_c)
        self.d_c_q = Size("d_c'", sizes.d_c_q)
        self.d_rope = Size("d_h^R", sizes.d_rope)
        self.layers = Size("l", sizes.layers)
        self.tokens = Size("n", sizes.context)
        # With a window, a decoded token sees only what lies in it.
        self.seen = Size("w", sizes.cached) if sizes.cached < sizes.context else self.tokens
        self.pairs = Size(_pairs_symbol(sizes), sizes.pairs)

    def groups(self, variant: str, sizes: Sizes) -> tuple[Size, ...]:
        """The heads of keys and values: none to multiply by where there is one."""
        if variant == "mqa":
            return ()
        return (self.heads,) if variant == "mha" else (Size("n_g", sizes.kv_heads),)


def _pairs_symbol(sizes: Sizes) -> str:
    if not sizes.causal:
        return "n²"
    return "n(n+1)/2" if sizes.cached == sizes.context else "(w(w+1)/2 + (n−w)·w)"


def count(variant: str, sizes: Sizes) -> Count:
    """What this variant costs at these sizes."""
    return _latent(sizes) if variant == "mla" else _shared(variant, sizes)


def _shared(variant: str, sizes: Sizes) -> Count:
    """MHA, MQA and GQA: the same but for the heads of keys and values."""
    s = Symbols(sizes)
    queries, groups = (s.heads, s.d_head), (*s.groups(variant, sizes), s.d_head)
    matrices = [
        CountLine("W_Q", product(s.d_model, *queries)),
        CountLine("W_K", product(s.d_model, *groups)),
        CountLine("W_V", product(s.d_model, *groups)),
        CountLine("W_O", product(*queries, s.d_model)),
    ]
    biases = [
        CountLine("b_Q", product(*queries)),
        CountLine("b_K", product(*groups)),
        CountLine("b_V", product(*groups)),
        CountLine("b_O", product(s.d_model)),
    ]
    return Count(
        variant,
        sizes,
        (*matrices, *(biases if sizes.bias else ())),
        tuple(_with_attention(_times(matrices, s.tokens), s.pairs, s.heads, s.d_head, s.d_head)),
        tuple(_with_attention(matrices, s.seen, s.heads, s.d_head, s.d_head)),
        (),
        product(two(), *groups, s.layers),
    )


def _latent(sizes: Sizes) -> Count:
    """MLA: keys and values from a latent, the rotary part beside them."""
    s = Symbols(sizes)
    rotary = [s.d_rope] if sizes.d_rope else []
    source = s.d_c_q if sizes.d_c_q else s.d_model
    down = [
        *([CountLine("W_DQ", product(s.d_model, s.d_c_q))] if sizes.d_c_q else []),
        CountLine("W_UQ", product(source, s.heads, s.d_head)),
        *(CountLine("W_QR", product(source, s.heads, one)) for one in rotary),
        CountLine("W_DKV", product(s.d_model, s.d_c)),
        *(CountLine("W_KR", product(s.d_model, one)) for one in rotary),
    ]
    up = [CountLine("W_UK", product(s.d_c, s.heads, s.d_head)), CountLine("W_UV", product(s.d_c, s.heads, s.d_head))]
    out = CountLine("W_O", product(s.heads, s.d_head, s.d_model))
    key, latent_key = total(s.d_head, *rotary), total(s.d_c, *rotary)
    weights = [*down, *up, out]
    return Count(
        "mla",
        sizes,
        tuple(weights),
        tuple(_with_attention(_times(weights, s.tokens), s.pairs, s.heads, key, s.d_head)),
        tuple(_with_attention([*down, *_times(up, s.seen), out], s.seen, s.heads, key, s.d_head)),
        tuple(_with_attention(weights, s.seen, s.heads, latent_key, s.d_c)),
        product(latent_key, s.layers),
    )


def _times(lines: list[CountLine], factor: Size) -> list[CountLine]:
    return [CountLine(line.name, line.count.times(factor)) for line in lines]


def _with_attention(
    projections: list[CountLine], pairs: Size, heads: Size, key: Size, value: Size
) -> Iterator[CountLine]:
    """The projections, with scores and weighted values before the last one, W_O."""
    *before, last = projections
    yield from before
    yield CountLine("Q K^T", product(pairs, heads, key))
    yield CountLine("A V", product(pairs, heads, value))
    yield last
