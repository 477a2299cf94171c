"""What is said about the variants, examined with the sizes at hand: the ratio itself, and where the claim holds.

The claims restate what an article on attention variants says of them. The formulas they are held against are the papers':
MQA from Shazeer (arXiv 1911.02150), GQA from Ainslie et al. (arXiv 2305.13245), MLA from DeepSeek-V2 (arXiv 2405.04434),
whose table 1 is the published table of cache sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from attncli.core.message import Message
from attncli.core.record import Record
from attncli.cost.count import Symbols, count
from attncli.cost.product import Product, Ratio, Size, product, total, two
from attncli.cost.sizes import LATENT, ROTARY, Sizes


class Finding(Record):
    """One model's number for a claim.

    Parameters
    ----------
    model : its name
    ratio : what is divided by what
    claimed : the number that is claimed, or the bounds within which it still is
    reading : what exactly is compared, where a claim can be read in several ways
    where : sizes at which the claim holds
    """

    model: str
    ratio: Ratio
    claimed: tuple[Fraction, Fraction]
    reading: Message | None = None
    where: Message | None = None

    @property
    def holds(self) -> bool:
        least, most = self.claimed
        return least <= self.ratio.value <= most


class Claim(Record):
    """A claim, and what was found.

    Parameters
    ----------
    text : the claim
    verdict : what to think of it
    """

    id: str
    text: Message
    findings: tuple[Finding, ...]
    verdict: Message


#: The article's numbers: a tenth, to one decimal; a rank, and how far it is said to compress.
TENTH = Fraction(1, 10)
_HALF_A_STEP = Fraction(1, 20)
RANK = 64
FOLD = 16

Named = tuple[str, Sizes]


def claims(models: Mapping[str, Sequence[Named]]) -> tuple[Claim, ...]:
    """The claims about each variant, with a finding for every model that it is compared at."""
    found = (_multi_query(models["mqa"]), _grouped(models["gqa"]), _tenth(models["mla"]), _rank(models["mla"]))
    return tuple(claim for claim in found if claim.findings)


def _cache(variant: str, sizes: Sizes) -> Product:
    return count(variant, sizes).cache


def _multi_query(models: Sequence[Named]) -> Claim:
    findings = []
    for name, sizes in models:
        exact = Fraction(sizes.heads)
        findings.append(Finding(name, Ratio(_cache("mha", sizes), _cache("mqa", sizes)), (exact, exact)))
    return Claim(
        "mqa-cache",
        Message("MQA's cache is smaller by the number of heads, n_h."),
        tuple(findings),
        _all_or(
            findings,
            Message(
                "Holds at all sizes: d_h and l are the same on both sides and cancel. Only the cache shrinks so far; the table above says by how much the parameters and multiply-adds do."
            ),
        ),
    )


def _grouped(models: Sequence[Named]) -> Claim:
    findings = []
    for name, sizes in models:
        exact = Fraction(sizes.heads, sizes.kv_heads)
        findings.append(Finding(name, Ratio(_cache("mha", sizes), _cache("gqa", sizes)), (exact, exact)))
    return Claim(
        "gqa-cache",
        Message("GQA's cache is smaller by the query heads that share a group, n_h/n_g."),
        tuple(findings),
        _all_or(
            findings, Message("Holds at all sizes. With n_g = 1 it is MQA's claim, with n_g = n_h nothing is saved.")
        ),
    )


def _all_or(findings: Sequence[Finding], verdict: Message) -> Message:
    """The verdict where every finding bears it out; it always does, or the count is wrong."""
    return verdict if all(finding.holds for finding in findings) else Message("Does not hold here.")


def _tenth(models: Sequence[Named]) -> Claim:
    least, most = TENTH - _HALF_A_STEP, TENTH + _HALF_A_STEP
    findings = []
    for name, sizes in models:
        # (d_c + d_h^R) / (2 n_h d_h) = share, solved for n_h.
        heads = Fraction(sizes.d_c + sizes.d_rope, 2 * sizes.d_head)
        where = Message(
            "about a tenth for n_h from {fewest} to {most}, a tenth at {exactly}",
            fewest=heads / most,
            most=heads / least,
            exactly=heads / TENTH,
        )
        findings.append(Finding(name, Ratio(_cache("mla", sizes), _cache("mha", sizes)), (least, most), where=where))
    return Claim(
        "mla-cache",
        Message("MLA's cache is about a tenth of MHA's."),
        tuple(findings),
        Message(
            "A matter of n_h: MLA's cache does not depend on it, MHA's grows with it. “About” is taken as {least} to {most}.",
            least=least,
            most=most,
        ),
    )


def _rank(models: Sequence[Named]) -> Claim:
    findings = [finding for name, sizes in models for finding in _readings(name, sizes)]
    return Claim(
        "rank",
        Message("A rank of {rank} compresses by a factor of {fold}.", rank=RANK, fold=FOLD),
        tuple(findings),
        Message(
            "Not a fact about rank {rank}: it depends on the width that is compressed, and on what is counted.",
            rank=RANK,
        ),
    )


def _readings(name: str, sizes: Sizes) -> Iterator[Finding]:
    """What “compresses” can mean, and the width at which it is 16-fold."""
    s = Symbols(sizes)
    rank = Size("r", RANK)
    keys = product(s.heads, s.d_head)
    exact = (Fraction(FOLD), Fraction(FOLD))
    yield Finding(
        name,
        Ratio(keys, product(rank)),
        exact,
        Message("a token's keys, kept as {rank} numbers", rank=RANK),
        _at_width(FOLD * RANK),
    )
    yield Finding(
        name,
        Ratio(keys.times(two()), product(rank)),
        exact,
        Message("its keys and values, from one latent"),
        _at_width(Fraction(FOLD * RANK, 2)),
    )
    if sizes.d_rope:
        yield Finding(
            name,
            Ratio(keys.times(two()), product(total(rank, s.d_rope))),
            exact,
            Message("the same with the rotary part, which is cached too"),
            _at_width(Fraction(FOLD * (RANK + sizes.d_rope), 2)),
        )
    width = Size("d_model", sizes.d_model)
    yield Finding(
        name,
        Ratio(keys.times(width), product(rank, _sum_of(width, keys))),
        exact,
        Message("the weights W_K, as two factors"),
        Message("a factor of {fold} for a square matrix of width {width}", fold=FOLD, width=2 * FOLD * RANK),
    )


def _sum_of(width: Size, keys: Product) -> Size:
    symbols = "·".join(factor.symbol for factor in keys.factors)
    return total(width, Size(symbols, keys.value))


def _at_width(width: Fraction | int) -> Message:
    return Message("a factor of {fold} at a width of {width}", fold=FOLD, width=Fraction(width))


class LatentAsGroups(Record):
    """MLA's cache in head widths and in groups of GQA.

    Parameters
    ----------
    model : its name
    widths : cache over d_h·l: 4.5 at the paper's proportions
    groups : groups at which GQA caches as much: 2.25
    proportions : d_c over d_h, and d_h^R over d_h
    as_published : these are the paper's proportions
    """

    model: str
    widths: Ratio
    groups: Ratio
    proportions: tuple[Fraction, Fraction]

    @property
    def as_published(self) -> bool:
        return self.proportions == (LATENT, ROTARY)


def latent_as_groups(name: str, sizes: Sizes) -> LatentAsGroups:
    """How many head widths MLA caches in a layer, and the groups of GQA that cache as much."""
    s = Symbols(sizes)
    latent = _cache("mla", sizes)
    return LatentAsGroups(
        name,
        Ratio(latent, product(s.d_head, s.layers)),
        Ratio(latent, _cache("mqa", sizes)),
        (Fraction(sizes.d_c, sizes.d_head), Fraction(sizes.d_rope, sizes.d_head)),
    )
