"""What came out of a simulation: counts by mistake, shares of all, and the table of RESULTS.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Results of one mistake at one place."""

    sheets: int = 0
    same: int = 0
    found: int = 0
    named: int = 0
    alone: int = 0
    follow: int = 0
    followed: int = 0
    others: Counter[str] = field(default_factory=Counter)


def totals(tallies: Mapping[str, Tally]) -> dict[str, float]:
    """Shares over all distinguishable wrong sheets."""
    all_ = list(tallies.values())
    seen = sum(one.sheets - one.same for one in all_)
    follow = sum(one.follow for one in all_)
    return {
        "kinds": len(all_),
        "wrong": sum(one.sheets for one in all_),
        "distinguishable": seen,
        "found": sum(one.found for one in all_) / max(seen, 1),
        "named": sum(one.named for one in all_) / max(seen, 1),
        "alone": sum(one.alone for one in all_) / max(seen, 1),
        "followed": sum(one.followed for one in all_) / max(follow, 1),
    }


HEAD = """# How well mistakes are found and named

Written by `python tests/marking/simulation.py`. A simulated learner, written without the marker's own code, works
through random exercises at 1 to 6 decimals, carries on full or rounded numbers, and leaves lines out.
"""

TITLES = {
    "attention": "Attention, self-attention, softmax, embeddings",
    "wide": "The same with scores up to ±50",
    "layers": "Multi-head attention, norms, positions, rotary, feed-forward, residual",
    "blocks": "Encoder and decoder blocks, latent attention, a GPT with its loss and its update",
}


def section(family: str, seed: int, rejected: int, right: int, tallies: Mapping[str, Tally]) -> str:
    """The results of one family of exercises as Markdown."""
    sums = totals(tallies)
    out = [
        f"## {TITLES.get(family, family)}",
        "",
        f"- Right sheets: {right}; marked wrong: {rejected}. Seed {seed}.",
        f"- Wrong sheets: {sums['wrong']}, each with one of {sums['kinds']} mistakes (by place);"
        f" {sums['distinguishable']} of them differ from the right numbers by more than rounding can do.",
        f"- Of these: first wrong step found {sums['found']:.1%}, mistake named {sums['named']:.1%},",
        f"  named alone (or only beside others with the very same numbers) {sums['alone']:.1%}.",
        f"- Later lines of these sheets followed through: {sums['followed']:.1%}.",
        "",
        "| mistake | at | sheets | told apart | first step found | named | alone | followed through |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for name in sorted(tallies):
        one = tallies[name]
        id, place = name.split("|")
        seen = one.sheets - one.same
        shares = (_share(one.found, seen), _share(one.named, seen), _share(one.alone, seen))
        followed = _share(one.followed, one.follow)
        out.append(f"| {id} | {place} | {one.sheets} | {seen} | {' | '.join(shares)} | {followed} |")
    return "\n".join(out) + "\n"


def _share(count: int, of: int) -> str:
    return "" if of == 0 else f"{count / of:.0%}"


def merged(page: str, sections: Mapping[str, str]) -> str:
    """The page with these sections in place of its own, the others as they stand."""
    old = {part.split("\n", 1)[0]: "## " + part for part in page.split("\n## ")[1:]}
    known = {family: old.get(TITLES[family], "") for family in TITLES} | dict(sections)
    return "\n".join([HEAD, *(text.rstrip("\n") + "\n" for text in known.values() if text)])


def with_sides(text: str, *tables: str) -> str:
    """A family's part of the page, with the tables of right and of cheating sheets before that of the mistakes."""
    head, bar, rest = text.partition("\n| mistake |")
    return head + "\n".join(f"\n{table}\n" for table in tables) + bar + rest
