"""Numbers, formulas and standing words of the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from attncli.core.message import N_, Listed, Message
from attncli.cost.comparison import Comparison
from attncli.cost.product import Product, Ratio
from attncli.render._chart import figure

NAMES = {"mha": "MHA", "mqa": "MQA", "gqa": "GQA", "mla": "MLA"}

#: The letter of a size, or the option where it has none.
LETTERS = {
    "d_model": "d_model", "heads": "n_h", "kv_heads": "n_g", "d_head": "d_h", "d_c": "d_c", "d_c_q": "d_c'", "d_rope": "d_h^R",
    "layers": "l", "context": "n", "bytes": "--bytes", "window": "w", "bias": "--bias", "causal": "--prefill",
}  # fmt: skip

#: Sizes in words, in the order they are shown.
WORDS = {
    "d_model": N_("width of a token {size}"),
    "heads": N_("heads {size}"),
    "kv_heads": N_("groups of GQA {size}"),
    "d_head": N_("width of a head {size}"),
    "d_c": N_("latent of MLA {size}"),
    "d_c_q": N_("latent of its queries {size}"),
    "d_rope": N_("its rotary part {size}"),
    "layers": N_("layers {size}"),
    "context": N_("context {size}"),
    "window": N_("window {size}"),
    "bytes": N_("bytes a number {size}"),
}

#: Sizes that nobody gave, and why they are what they are.
ASSUMED = {
    ("kv_heads", "quarter"): N_("n_g = {value}, a quarter of the heads where that divides them (--kv-heads)"),
    ("d_c", "latent"): N_("d_c = {value} = {latent}·d_h, as in DeepSeek-V2 (--d-c)"),
    ("d_rope", "rotary"): N_("d_h^R = {value}, {rotary}·d_h as in DeepSeek-V2, an even number (--d-rope)"),
    ("d_c_q", "plain"): N_("d_c' = {value}, so queries are not compressed (--d-c-q)"),
    ("layers", "plain"): N_("l = {value} (--layers)"),
    ("context", "plain"): N_("n = {value} (--context)"),
    ("context", "shortest"): N_("n = {value}, the shortest context of these models (--context)"),
    ("bytes", "plain"): N_("{value} bytes a number, as in fp16 and bf16 (--bytes)"),
}

#: Up to here a count stands in full in a table.
_IN_FULL = 10**8
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def exact(value: int) -> str:
    """2,147,483,648"""
    return f"{value:,}"


def short(value: int) -> str:
    """262,144, but 2.147·10^9 where it gets long."""
    if value < _IN_FULL:
        return exact(value)
    mantissa, _, power = f"{value:.3e}".partition("e")
    return f"{mantissa}·10^{int(power)}"


def number(value: int | float | Fraction) -> str:
    """A number on its own: in full where it is whole, else to four significant digits."""
    if value == int(value):
        return exact(int(value))
    text = figure(float(value))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def rounded(message: Message) -> Message:
    """The message with its fractions to four significant digits."""
    if isinstance(message, Listed):
        return message
    return Message(message.template, **{name: _rounded(value) for name, value in message.fields.items()})


def _rounded(value: object) -> object:
    if isinstance(value, Message):
        return rounded(value)
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(f"{float(value):.4g}")
    return value


def bytes_text(value: Fraction) -> str:
    """512 KiB: in units of 1024."""
    power = 0
    while value >= 1024 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    return f"{number(value)} {_UNITS[power]}"


def share(part: Fraction) -> str:
    """7.031 %, or 171.5× where it is many times as much."""
    return f"{number(part)}×" if part >= 10 else f"{number(100 * part)} %"


def symbols(product: Product) -> str:
    """2·n_h·d_h·l"""
    return "·".join(factor.symbol for factor in product.factors)


def numbers(product: Product) -> str:
    """2·32·128·32"""
    return "·".join(
        f"({' + '.join(map(str, factor.terms))})" if factor.terms else str(factor.value) for factor in product.factors
    )


def equation(product: Product) -> str:
    """2·n_h·d_h·l = 2·32·128·32 = 262,144"""
    if len(product.factors) == 1 and not product.factors[0].terms:
        return f"{symbols(product)} = {exact(product.value)}"
    return f"{symbols(product)} = {numbers(product)} = {exact(product.value)}"


def quotient(ratio: Ratio, *, symbols: bool = True) -> str:
    """2·n_h·d_h·l / (2·d_h·l) = 262,144 / 8,192 = 32"""
    values = f"{exact(ratio.above.value)} / {exact(ratio.below.value)} = {number(ratio.value)}"
    return f"{_over(ratio)} = {values}" if symbols else values


def _over(ratio: Ratio) -> str:
    above, below = symbols(ratio.above), symbols(ratio.below)
    alone = len(ratio.below.factors) == 1
    return f"{above} / {below if alone else f'({below})'}"


def counted(comparison: Comparison) -> Iterator[Message]:
    """What the numbers hold and what they leave out."""
    variants = set(comparison.variants)
    sizes = [model.sizes for model in comparison.models]
    yield Message(
        N_(
            "Parameters: the projections W_Q, W_K, W_V and W_O of every layer. Not counted: embeddings, norms, feed-forward."
        )
    )
    if any(one.bias for one in sizes) and variants - {"mla"}:
        yield Message(
            N_("Biases b_Q, b_K, b_V and b_O are counted as parameters where a model has them; MLA has none.")
        )
    if "mla" in variants:
        yield Message(
            N_(
                "MLA: W_DKV makes the latent and W_UK, W_UV the keys and values from it; W_DQ and W_UQ do so for the queries, where they have a latent, else W_UQ alone; W_QR and W_KR make the rotary parts, the key's one for all heads."
            )
        )
    yield Message(N_("Cache: keys and values of every token in every layer; for MLA its latent and its rotary key."))
    if any(one.window for one in sizes):
        yield Message(N_("With a window of w the cache keeps the last w tokens, and a token sees no more than these."))
    yield Message(
        N_(
            "A multiply-add is one multiplication and the addition that follows it. Counted: every matrix product, in every layer. Not counted: softmax, norms, turning by position, adding biases."
        )
    )
    if all(one.causal for one in sizes):
        yield from _pairs({one.cached < one.context for one in sizes})
    else:
        yield Message(N_("Prefill: all n tokens at once, all n² pairs, as where the mask comes after the product."))
    yield Message(N_("Next token: the last of the n, when the others are in the cache."))
    if "mla" in variants:
        yield Message(
            N_(
                "MLA's next token has two ways. The plain one makes the keys and values of all tokens in sight anew from their latents. The absorbed one multiplies W_UK into the query and W_UV into the mixed latents, once each: (q W_UK^T) c^T = q (c W_UK)^T."
            )
        )


def _pairs(windowed: set[bool]) -> Iterator[Message]:
    """Which pairs of a query and a key a prefill counts: without a window that is shorter than the context, and with one."""
    if False in windowed:
        yield Message(
            N_(
                "Prefill: all n tokens at once, and token i meets i keys: n·(n+1)/2 pairs. --prefill full counts all n² pairs, as where the mask comes after the product."
            )
        )
    if True in windowed:
        yield Message(
            N_(
                "Prefill with a window shorter than the context: the first w tokens meet 1 to w keys, each of the other n−w meets w: w(w+1)/2 + (n−w)·w pairs. --prefill full counts all n² pairs, as where the mask comes after the product."
            )
        )
