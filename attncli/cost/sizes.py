"""The sizes an attention is counted from, and what is taken for those that nobody gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from attncli.core.message import InputError, ShapeError
from attncli.core.record import Record


class Sizes(Record):
    """Sizes of one model's attention.

    Parameters
    ----------
    d_model : width of a token
    heads, kv_heads : query heads, and the groups that share a head of keys and values in GQA
    d_head : width of a query, key or value in one head
    d_c, d_c_q, d_rope : latent of keys and values, latent of queries (0: none), rotary part (MLA)
    layers : attentions one after the other
    context : tokens in sight
    bytes : of one number in the cache
    window : tokens a token sees at most, itself included; 0: no limit
    bias : the projections of MHA, MQA and GQA have biases
    causal : a token does not see those after it
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
    def pairs(self) -> int:
        """Pairs of a query and a key it sees, over the whole context."""
        n, seen = self.context, self.cached
        if not self.causal:
            return n * n
        return seen * (seen + 1) // 2 + (n - seen) * seen


class Assumed(Record):
    """A size that was not given, and the rule it was taken by: "quarter", "latent", "rotary", "plain", "shortest"."""

    name: str
    rule: str


#: DeepSeek-V2 caches a latent of 4 head widths and a rotary part of half a head width (arXiv 2405.04434, table 1).
LATENT = Fraction(4)
ROTARY = Fraction(1, 2)
#: So much does it cache in head widths, 4.5, and as so many groups of GQA, which cache a key and a value each: 2.25.
WIDTHS = LATENT + ROTARY
GROUPS = WIDTHS / 2
BYTES = Fraction(2)
LAYERS = 1
CONTEXT = 1024


def complete(given: Mapping[str, Any]) -> tuple[Sizes, tuple[Assumed, ...]]:
    """All sizes from those that are given: d_model and heads at least.

    Raises
    ------
    InputError
        Sizes are missing, or do not fit together.
    """
    found = dict(given)
    for name, option in (("d_model", "--d-model"), ("heads", "--heads")):
        if name not in found:
            raise InputError(
                "For sizes of your own, {option} is missing. Write --d-model 512 --heads 8, or start from a published model: --preset llama-2-7b",
                option=option,
            )
    assumed = []
    for name, rule, value in _defaults(found):
        found[name] = value
        if rule:
            assumed.append(Assumed(name, rule))
    sizes = Sizes(**found)
    _check(sizes)
    return sizes, tuple(assumed)


def _defaults(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every size that is missing, its rule ("" where it follows from others) and value; later ones build on those before."""
    heads = found["heads"]
    if "d_head" not in found:
        if found["d_model"] % heads:
            raise ShapeError(
                "d_model {d_model} cannot be shared by {heads} heads evenly. Give the width of a head: --d-head {width}",
                d_model=found["d_model"],
                heads=heads,
                width=max(1, found["d_model"] // heads),
            )
        yield "d_head", "", found["d_model"] // heads
    d_head = found["d_head"]
    if "kv_heads" not in found:
        yield "kv_heads", "quarter", next(count for count in range(max(1, heads // 4), 0, -1) if heads % count == 0)
    if "d_c" not in found:
        yield "d_c", "latent", int(LATENT * d_head)
    if "d_rope" not in found:
        # Rotary positions turn pairs of numbers.
        yield "d_rope", "rotary", max(2, 2 * int(ROTARY * d_head / 2))
    if "d_c_q" not in found:
        yield "d_c_q", "plain", 0
    for name, value in (("layers", LAYERS), ("context", CONTEXT), ("bytes", BYTES)):
        if name not in found:
            yield name, "plain", value


def _check(sizes: Sizes) -> None:
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
