"""Sizes of an attention, products of sizes, and what MHA, MQA, GQA and MLA cost by them, product by product.

MHA: Vaswani et al., arXiv 1706.03762; MQA: Shazeer, arXiv 1911.02150; GQA: Ainslie et al., arXiv 2305.13245;
MLA: DeepSeek-V2, arXiv 2405.04434, equations 9 to 19 and 37 to 47. Every line is of one layer; the totals are
times the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Any

from attncli.core.message import N_, InputError, ShapeError
from attncli.core.record import Record

VARIANTS = ("mha", "mqa", "gqa", "mla")


class Dimension(Record):
    """What a size is called, by a letter (its option where it has none) and in words; the bounds of a whole number."""

    letter: str
    words: str = ""
    least: int = 0
    most: int = 0


#: By the fields of `Sizes`, in the order they are shown. The letters are those of the DeepSeek-V2 paper; the bounds are wide
#: enough for any model, and leave numbers a person can read.
DIMENSIONS: Mapping[str, Dimension] = {
    "d_model": Dimension("d_model", N_("width of a token {size}"), 1, 1_000_000),
    "heads": Dimension("n_h", N_("heads {size}"), 1, 100_000),
    "kv_heads": Dimension("n_g", N_("groups of GQA {size}"), 1, 100_000),
    "d_head": Dimension("d_h", N_("width of a head {size}"), 1, 1_000_000),
    "d_c": Dimension("d_c", N_("latent of MLA {size}"), 1, 1_000_000),
    "d_c_q": Dimension("d_c'", N_("latent of its queries {size}"), 0, 1_000_000),
    "d_rope": Dimension("d_h^R", N_("its rotary part {size}"), 0, 1_000_000),
    "layers": Dimension("l", N_("layers {size}"), 1, 100_000),
    "context": Dimension("n", N_("context {size}"), 1, 100_000_000),
    "window": Dimension("w", N_("window {size}"), 0, 100_000_000),
    "bytes": Dimension("--bytes", N_("bytes per number {size}")),
    "bias": Dimension("--bias"),
    "causal": Dimension("--prefill"),
}


class Sizes(Record):
    """Sizes of one model's attention, which `DIMENSIONS` explains.

    A d_c_q of 0 is no latent of queries, a window of 0 no limit. With `bias` the projections of MHA, MQA and GQA have biases;
    where it is `causal`, a token does not see those after it.
    """

    d_model: int
    heads: int
    kv_heads: int
    d_head: int
    d_c: int
    d_c_q: int
    d_rope: int
    layers: int
    context: int
    bytes: Fraction
    window: int = 0
    bias: bool = False
    causal: bool = True

    @property
    def cached(self) -> int:
        """Tokens the cache holds once the context is full."""
        return min(self.context, self.window) if self.window else self.context

    @property
    def proportions(self) -> tuple[Fraction, Fraction]:
        """Of MLA: its latent and its rotary part over the width of a head."""
        return Fraction(self.d_c, self.d_head), Fraction(self.d_rope, self.d_head)

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key it sees, over the whole context."""
        n, seen = self.context, self.cached
        return seen * (seen + 1) // 2 + (n - seen) * seen if self.causal else n * n


#: DeepSeek-V2 caches a latent of 4 head widths and a rotary part of half a head width (arXiv 2405.04434, table 1).
LATENT = Fraction(4)
ROTARY = Fraction(1, 2)
#: So much does it cache in head widths, 4.5, and as so many groups of GQA, which cache a key and a value each: 2.25.
WIDTHS = LATENT + ROTARY
GROUPS = WIDTHS / 2


#: Sizes that are given, by the names of the fields of `Sizes`.
GivenSizes = Mapping[str, int | Fraction]
#: Sizes that nobody gave, and the rule each was taken by: "quarter", "latent", "rotary", "plain", "shortest".
Assumed = Mapping[str, str]


def complete(given: GivenSizes) -> tuple[Sizes, Assumed]:
    """All sizes from those that are given: d_model and heads at least; and which of them were assumed.

    Raises
    ------
    InputError
        Sizes are missing, or do not fit together.
    """
    for name, option in (("d_model", "--d-model"), ("heads", "--heads")):
        if name not in given:
            raise InputError(
                "For sizes of your own, {option} is missing. Write --d-model 512 --heads 8, or start from a published model: --preset llama-2-7b",
                option=option,
            )
    found: dict[str, Any] = dict(given)
    assumed = {}
    if "d_head" not in found:
        found["d_head"] = _head_width(found["d_model"], found["heads"])
    for name, rule, value in _usual(found["heads"], found["d_head"]):
        if name not in found:
            found[name], assumed[name] = value, rule
    return _checked(Sizes(**found)), assumed


def _head_width(d_model: int, heads: int) -> int:
    if d_model % heads:
        raise ShapeError(
            "d_model {d_model} cannot be shared by {heads} heads evenly. Give the width of a head: --d-head {width}",
            d_model=d_model,
            heads=heads,
            width=max(1, d_model // heads),
        )
    return d_model // heads


def _usual(heads: int, d_head: int) -> Iterator[tuple[str, str, int | Fraction]]:
    """What is taken for a size that nobody gave, and by which rule."""
    yield "kv_heads", "quarter", next(count for count in range(max(1, heads // 4), 0, -1) if heads % count == 0)
    yield "d_c", "latent", int(LATENT * d_head)
    # Rotary positions turn pairs of numbers.
    yield "d_rope", "rotary", max(2, 2 * int(ROTARY * d_head / 2))
    yield from (
        ("d_c_q", "plain", 0),
        ("layers", "plain", 1),
        ("context", "plain", 1024),
        ("bytes", "plain", Fraction(2)),
    )


def _checked(sizes: Sizes) -> Sizes:
    if sizes.heads % sizes.kv_heads:
        raise ShapeError(
            "{heads} query heads cannot share {kv_heads} heads of keys and values evenly. Give --kv-heads a number that"
            " divides {heads}.",
            heads=sizes.heads,
            kv_heads=sizes.kv_heads,
        )
    if sizes.d_rope % 2:
        raise ShapeError(
            "--d-rope is {size}: rotary positions turn pairs of numbers, so give an even number, or 0 for none.",
            size=sizes.d_rope,
        )
    return sizes


class Size(Record):
    """A size with its name: n_h = 32; a sum of sizes keeps its terms: (d_c + d_h^R) = (512 + 64)."""

    symbol: str
    value: int
    terms: tuple[int, ...] = ()


class Product(Record):
    """Factors multiplied: 2·n_h·d_h·l is a formula, numbers and a number at once."""

    factors: tuple[Size, ...]

    @property
    def value(self) -> int:
        return prod(factor.value for factor in self.factors)

    @property
    def symbols(self) -> str:
        """2·n_h·d_h·l"""
        return "·".join(factor.symbol for factor in self.factors)

    @property
    def numbers(self) -> str:
        """2·32·128·32"""
        terms = (f"({' + '.join(map(str, factor.terms))})" if factor.terms else factor.value for factor in self.factors)
        return "·".join(map(str, terms))

    def times(self, factor: Size) -> Product:
        """The product with a further factor in front."""
        return Product((factor, *self.factors))


class Ratio(Record):
    """One product over another."""

    above: Product
    below: Product

    @property
    def value(self) -> Fraction:
        return Fraction(self.above.value, self.below.value)


def product(*factors: Size) -> Product:
    return Product(factors)


def total(*terms: Size) -> Size:
    """The sum of some sizes, as one factor."""
    if len(terms) == 1:
        return terms[0]
    values = tuple(term.value for term in terms)
    return Size(f"({' + '.join(term.symbol for term in terms)})", sum(values), values)


#: Keys and values: both are kept.
TWO = Size("2", 2)


class Symbols:
    """The sizes as factors, under their letters."""

    def __init__(self, sizes: Sizes) -> None:
        def size(name: str) -> Size:
            return Size(DIMENSIONS[name].letter, getattr(sizes, name))

        self.d_model, self.heads, self.d_head, self.layers = map(size, ("d_model", "heads", "d_head", "layers"))
        self.d_c, self.d_c_q, self.d_rope = map(size, ("d_c", "d_c_q", "d_rope"))
        self.tokens = size("context")
        # With a window, a decoded token sees only what lies in it.
        self.seen = Size("w", sizes.cached) if sizes.cached < sizes.context else self.tokens
        self.pairs = Size(_pairs_symbol(sizes), sizes.pairs)
        #: Heads of keys and values; nothing to multiply by where there is one.
        self.groups = {"mha": (self.heads,), "mqa": (), "gqa": (size("kv_heads"),)}


def _pairs_symbol(sizes: Sizes) -> str:
    if not sizes.causal:
        return "n²"
    return "n(n+1)/2" if sizes.cached == sizes.context else "(w(w+1)/2 + (n−w)·w)"


#: How many, by the weights or the product they belong to.
Products = Mapping[str, Product]


class Count(Record):
    """What one variant costs.

    Parameters
    ----------
    variant : "mha", "mqa", "gqa" or "mla"
    sizes : what it was counted from
    parts : of one layer: "weights", the parameters; multiply-adds: "prefill", for the whole context at once; "decode", for its
        last token alone, with the others in the cache; of MLA also "absorbed", the same where W_UK and W_UV stay with the
        query and the output
    cache : elements per token, over all layers
    """

    variant: str
    sizes: Sizes
    parts: Mapping[str, Products]
    cache: Product

    def total(self, part: str) -> int:
        """A part over all layers."""
        return self.sizes.layers * sum(count.value for count in self.parts[part].values())

    @property
    def cache_bytes(self) -> Fraction:
        """Bytes per token."""
        return self.cache.value * self.sizes.bytes

    @property
    def full_cache_bytes(self) -> Fraction:
        """Bytes once the context is full."""
        return self.cache_bytes * self.sizes.cached

    @property
    def widths(self) -> Ratio:
        """The cache in head widths of a layer; of MLA 4.5 at the paper's proportions."""
        s = Symbols(self.sizes)
        return Ratio(self.cache, product(s.d_head, s.layers))

    @property
    def groups(self) -> Ratio:
        """The cache in groups at which GQA caches as much; of MLA 2.25 at the paper's proportions."""
        return Ratio(self.cache, count("mqa", self.sizes).cache)


def count(variant: str, sizes: Sizes) -> Count:
    """What this variant costs at these sizes."""
    return _latent(sizes) if variant == "mla" else _shared(variant, sizes)


def _shared(variant: str, sizes: Sizes) -> Count:
    """MHA, MQA and GQA: the same but for the heads of keys and values."""
    s = Symbols(sizes)
    queries, groups = (s.heads, s.d_head), (*s.groups[variant], s.d_head)
    widths = {"Q": queries, "K": groups, "V": groups}
    matrices = {f"W_{name}": product(s.d_model, *width) for name, width in widths.items()}
    matrices["W_O"] = product(*queries, s.d_model)
    biases = {f"b_{name}": product(*width) for name, width in {**widths, "O": (s.d_model,)}.items()}
    parts = {
        "weights": {**matrices, **(biases if sizes.bias else {})},
        "prefill": _with_attention(_times(matrices, s.tokens), s.pairs, s.heads, s.d_head, s.d_head),
        "decode": _with_attention(matrices, s.seen, s.heads, s.d_head, s.d_head),
    }
    return Count(variant, sizes, parts, product(TWO, *groups, s.layers))


def _latent(sizes: Sizes) -> Count:
    """MLA: keys and values from a latent, the rotary part beside them."""
    s = Symbols(sizes)
    rotary = [s.d_rope] if sizes.d_rope else []
    source = s.d_c_q if sizes.d_c_q else s.d_model
    down = {
        **({"W_DQ": product(s.d_model, s.d_c_q)} if sizes.d_c_q else {}),
        "W_UQ": product(source, s.heads, s.d_head),
        **({"W_QR": product(source, s.heads, s.d_rope)} if rotary else {}),
        "W_DKV": product(s.d_model, s.d_c),
        **({"W_KR": product(s.d_model, s.d_rope)} if rotary else {}),
    }
    up = {name: product(s.d_c, s.heads, s.d_head) for name in ("W_UK", "W_UV")}
    out = {"W_O": product(s.heads, s.d_head, s.d_model)}
    key, latent_key = total(s.d_head, *rotary), total(s.d_c, *rotary)
    weights = {**down, **up, **out}
    parts = {
        "weights": weights,
        "prefill": _with_attention(_times(weights, s.tokens), s.pairs, s.heads, key, s.d_head),
        "decode": _with_attention({**down, **_times(up, s.seen), **out}, s.seen, s.heads, key, s.d_head),
        "absorbed": _with_attention(weights, s.seen, s.heads, latent_key, s.d_c),
    }
    return Count("mla", sizes, parts, product(latent_key, s.layers))


def _times(counts: Products, factor: Size) -> Products:
    return {name: count.times(factor) for name, count in counts.items()}


def _with_attention(projections: Products, pairs: Size, heads: Size, key: Size, value: Size) -> Products:
    """The projections, with scores and weighted values before the last one, W_O."""
    before = {name: count for name, count in projections.items() if name != "W_O"}
    attention = {"Q K^T": product(pairs, heads, key), "A V": product(pairs, heads, value)}
    return {**before, **attention, "W_O": projections["W_O"]}
