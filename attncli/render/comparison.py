"""The comparison of attention variants as blocks, and its numbers, formulas and standing words."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from attncli.core.message import N_, Listed, Message, figure
from attncli.cost.claims import D_HEAD, D_MODEL, HEADS, TOKENS, Finding
from attncli.cost.comparison import Comparison, VariantCount
from attncli.cost.count import DIMENSIONS, GROUPS, LATENT, ROTARY, WIDTHS, Count, Product, Ratio
from attncli.cost.published import ComparedModel
from attncli.render.document import Bars, Block, Heading, ListEntry, Listing, Paragraph, Said, Tabular, TabularColumn

#: Parts of a count in words.
PARTS = {
    "weights": N_("parameters"),
    "prefill": N_("multiply-adds: prefill"),
    "decode": N_("multiply-adds: next token"),
    "absorbed": N_("multiply-adds: next token, W_UK and W_UV absorbed"),
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
    ("bytes", "plain"): N_("{value} bytes per number, as in fp16 and bf16 (--bytes)"),
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


def bytes_text(value: Fraction) -> str:
    """512 KiB: in units of 1024."""
    power = 0
    while value >= 1024 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    return f"{number(value)} {_UNITS[power]}"


#: What is apart by less is rounding of float64, whose digits are another machine's other digits.
_ROUNDING = 1e-12


def _apart(difference: float) -> str:
    return f"< {_ROUNDING:.0e}" if difference < _ROUNDING else f"{difference:.1e}"


def share(part: Fraction) -> str:
    """7.031 %, or 171.5× where it is many times as much."""
    return f"{number(part)}×" if part >= 10 else f"{number(100 * part)} %"


def equation(product: Product) -> str:
    """2·n_h·d_h·l = 2·32·128·32 = 262,144"""
    if len(product.factors) == 1 and not product.factors[0].terms:
        return f"{product.symbols} = {exact(product.value)}"
    return f"{product.symbols} = {product.numbers} = {exact(product.value)}"


def in_numbers(ratio: Ratio) -> str:
    """262,144 / 8,192 = 32"""
    return f"{exact(ratio.above.value)} / {exact(ratio.below.value)} = {number(ratio.value)}"


def quotient(ratio: Ratio) -> str:
    """2·n_h·d_h·l / (2·d_h·l) = 262,144 / 8,192 = 32"""
    below = ratio.below.symbols
    below = below if len(ratio.below.factors) == 1 else f"({below})"
    return f"{ratio.above.symbols} / {below} = {in_numbers(ratio)}"


def counted(comparison: Comparison) -> Iterator[Message]:
    """What the numbers hold and what they leave out."""
    variants = set(comparison.variants)
    sizes = [model.sizes for model in comparison.models]
    yield Message(
        "Parameters: the projections W_Q, W_K, W_V and W_O of every layer. Not counted: embeddings, norms, feed-forward."
    )
    if any(size.bias for size in sizes) and variants - {"mla"}:
        yield Message("Biases b_Q, b_K, b_V and b_O are counted as parameters where a model has them; MLA has none.")
    if "mla" in variants:
        yield Message(
            "MLA: W_DKV makes the latent and W_UK, W_UV the keys and values from it; W_DQ and W_UQ do so for the queries, where they have a latent, else W_UQ alone; W_QR and W_KR make the rotary parts, the key's one for all heads."
        )
    yield Message("Cache: keys and values of every token in every layer; for MLA its latent and its rotary key.")
    if any(size.window for size in sizes):
        yield Message("With a window of w the cache keeps the last w tokens, and a token sees no more than these.")
    yield Message(
        "A multiply-add is one multiplication and the addition that follows it. Counted: every matrix product, in every layer. Not counted: softmax, norms, rotation by position, adding biases."
    )
    if all(size.causal for size in sizes):
        yield from _pairs({size.cached < size.context for size in sizes})
    else:
        yield Message("Prefill: all n tokens at once, all n² pairs, as where the mask comes after the product.")
    yield Message("Next token: the last of the n, when the others are in the cache.")
    if "mla" in variants:
        yield Message(
            "MLA can compute the next token in two ways. The plain way makes the keys and values of all visible tokens anew from their latents. The absorbed way multiplies W_UK into the query and W_UV into the mixed latents, once each: (q W_UK^T) c^T = q (c W_UK)^T."
        )


def _pairs(windowed: set[bool]) -> Iterator[Message]:
    """Which pairs of a query and a key a prefill counts: without a window that is shorter than the context, and with one."""
    if False in windowed:
        yield Message(
            "Prefill: all n tokens at once, and token i meets i keys: n·(n+1)/2 pairs. --prefill full counts all n² pairs, as where the mask comes after the product."
        )
    if True in windowed:
        yield Message(
            "Prefill with a window shorter than the context: the first w tokens meet 1 to w keys, each of the other n−w meets w: w(w+1)/2 + (n−w)·w pairs. --prefill full counts all n² pairs, as where the mask comes after the product."
        )


def page(comparison: Comparison, *, expand: bool = False) -> Iterator[Block]:
    """From top to bottom, every number worked out before the reader's eyes; with `expand` also every product."""
    yield from _Page(comparison).blocks(expand=expand)


_OF_MHA = Message("  share of MHA's")


class _Page:
    """A comparison from top to bottom."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.several = len(comparison.models) > 1

    def blocks(self, *, expand: bool) -> Iterator[Block]:
        yield Heading(self.title(), 1)
        for model in self.comparison.models:
            yield Paragraph(self._sizes(model))
        if any(self._assumed(model) for model in self.comparison.models):
            yield Paragraph(Message("* not given: assumed, as explained at the end"), tone="aside")
        yield self._grid()
        yield from self._used()
        yield Heading(Message("KV cache per token"))
        yield self._chart()
        yield from self._cache()
        yield from self._claims()
        yield from self._same()
        if expand:
            yield from self._products()
        yield Heading(Message("What is counted"))
        for message in counted(self.comparison):
            yield Paragraph(message, tone="aside")
        yield from self._sources()

    def title(self) -> Message:
        variants = " · ".join(self.comparison.variants).upper()
        models = [model.preset.title for model in self.comparison.models if model.preset.title]
        if not models:
            return Message("{variants} at your sizes", variants=variants)
        return Message("{variants} at the sizes of {models}", variants=variants, models=Listed(models))

    def _sizes(self, model: ComparedModel) -> Message:
        """Its sizes in words and letters; a star marks those that nobody gave."""
        assumed, found = self._assumed(model), []
        for name, size in DIMENSIONS.items():
            value = getattr(model.sizes, name)
            if size.words and self._matters(name, model) and (value or name != "window"):
                letter = "" if name == "bytes" else f"{size.letter}="
                found.append(Message(size.words, size=f"{letter}{number(value)}{'*' if name in assumed else ''}"))
        return _after(model.preset.title, Listed(found)) if model.preset.title else Listed(found)

    def _assumed(self, model: ComparedModel) -> list[str]:
        return [name for name in model.assumed if self._matters(name, model)]

    def _used(self) -> Iterator[Block]:
        """Which of the columns is the model's own: not to be told by bold type alone."""
        for entry in () if self.several else self.comparison.entries:
            if entry.own:
                model, variant = entry.model.preset.title, entry.count.variant.upper()
                yield Paragraph(Message("{model} itself uses {variant}.", model=model, variant=variant), tone="aside")

    def _sources(self) -> Iterator[Block]:
        """Where the sizes come from, and why those are what they are that nobody gave."""
        if not any(model.preset.source or self._assumed(model) for model in self.comparison.models):
            return
        yield Heading(Message("Where the sizes come from"))
        for model in self.comparison.models:
            if model.preset.source:
                entries = ", ".join(f"{key} {value}" for key, value in model.preset.config.items())
                yield Paragraph(_after(model.preset.title, model.preset.source), tone="aside")
                yield Paragraph(entries, tone="aside")
            if model.preset.source and model.given:
                given = Listed(DIMENSIONS[name].letter for name in model.given)
                yield Paragraph(Message("Given by you instead: {sizes}.", sizes=given), tone="aside")
            assumed = [_reason(model, name) for name in self._assumed(model)]
            if assumed:
                what = Message("* Not given, so assumed: {sizes}.", sizes=Listed(assumed, N_("{one}; {another}")))
                yield Paragraph(what, tone="aside")

    def _matters(self, name: str, model: ComparedModel) -> bool:
        """Whether a size shows in what is compared."""
        variants = {entry.count.variant for entry in self.comparison.entries if entry.model is model}
        if name == "kv_heads":
            return "gqa" in variants
        return "mla" in variants or name not in ("d_c", "d_c_q", "d_rope")

    def _head(self, entry: VariantCount) -> tuple[str, ...]:
        variant = entry.count.variant.upper()
        return (entry.model.preset.title, variant) if self.several else (variant,)

    def _grid(self) -> Tabular:
        label = TabularColumn(("",) * (1 + self.several), is_number=False)
        columns = (TabularColumn(self._head(entry), strong=entry.own) for entry in self.comparison.entries)
        rows = tuple(row for row in self._rows() if set(row[1:]) != {"–"})
        return Tabular((label, *columns), rows, labelled=True)

    def _rows(self) -> Iterator[tuple[Said, ...]]:
        """What each line of the table says, and its number for every variant."""
        entries = self.comparison.entries
        counts = [entry.count for entry in entries]
        contexts = {model.sizes.context for model in self.comparison.models}
        tokens = exact(contexts.pop()) if len(contexts) == 1 else "n"
        yield Message("heads of keys and values"), *map(_heads, counts)
        yield from self._part("weights", Message(PARTS["weights"]))
        yield Message("cache per token, numbers"), *(short(count.cache.value) for count in counts)
        yield Message("cache per token, bytes"), *(bytes_text(count.cache_bytes) for count in counts)
        yield _OF_MHA, *(share(entry.cache_share) for entry in entries)
        full = (bytes_text(count.full_cache_bytes) for count in counts)
        yield Message("cache at {tokens} tokens", tokens=tokens), *full
        yield from self._part("prefill", Message(PARTS["prefill"]))
        yield from self._part("decode", Message(PARTS["decode"]))
        yield from self._part("absorbed", Message("  with W_UK, W_UV absorbed"))

    def _part(self, part: str, name: Message) -> Iterator[tuple[Said, ...]]:
        """A part of the count, and as a share of MHA's."""
        shares = [(entry, entry.share(part)) for entry in self.comparison.entries]
        yield name, *("–" if of_mha is None else short(entry.count.total(part)) for entry, of_mha in shares)
        yield _OF_MHA, *("–" if of_mha is None else share(of_mha) for _, of_mha in shares)

    def _chart(self) -> Bars:
        caches = ((" ".join(self._head(entry)), entry.count.cache_bytes) for entry in self.comparison.entries)
        return Bars(tuple((name, float(size), bytes_text(size)) for name, size in caches))

    def _cache(self) -> Iterator[Block]:
        """The published table: symbols, the numbers put in, the result."""
        yield Paragraph(Message("In numbers, as in table 1 of the DeepSeek-V2 paper (arXiv 2405.04434):"))
        order = ("mha", "gqa", "mqa", "mla")
        entries = sorted(
            self.comparison.entries,
            key=lambda entry: (self.comparison.models.index(entry.model), order.index(entry.count.variant)),
        )
        yield Listing(tuple(ListEntry(equation(entry.count.cache), " ".join(self._head(entry))) for entry in entries))
        for entry in self.comparison.of_variant("mla"):
            c, r = entry.model.sizes.proportions
            widths, groups = entry.count.widths, entry.count.groups
            said = Message(
                "MLA with d_c = {c}·d_h and d_h^R = {r}·d_h caches {widths}·d_h·l ({as_widths}), as much as GQA with {groups} groups ({as_groups}).",
                c=number(c),
                r=number(r),
                widths=number(widths.value),
                groups=number(groups.value),
                as_widths=in_numbers(widths),
                as_groups=in_numbers(groups),
            )
            yield Paragraph(self._about(entry.model, said))
            if (c, r) != (LATENT, ROTARY):
                paper = Message(
                    "The paper's proportions, {c} and {r}, give {widths}·d_h·l and {groups} groups.",
                    c=number(LATENT),
                    r=number(ROTARY),
                    widths=number(WIDTHS),
                    groups=number(GROUPS),
                )
                yield Paragraph(paper)

    def _about(self, model: ComparedModel, text: Said) -> Said:
        """The text behind the model's name, where there are several."""
        return _after(model.preset.title, text) if self.several else text

    def _claims(self) -> Iterator[Block]:
        yield Heading(Message("Common claims, checked"))
        for claim in self.comparison.claims:
            yield Heading(claim.text, 3)
            yield Listing(tuple(self._finding(finding) for finding in claim.findings))
            yield Paragraph(claim.verdict, tone="aside")

    def _finding(self, finding: Finding) -> ListEntry:
        sign = "✓" if finding.holds else "✗"
        text: Said = quotient(finding.ratio)
        if finding.where is not None:
            text = Message("{text} ({where})", text=text, where=finding.where)
        if finding.reading is not None:
            text = _after(finding.reading, text)
        return ListEntry(self._about(finding.model, text), sign=sign, tone="right" if finding.holds else "false")

    def _same(self) -> Iterator[Block]:
        """One model with kv_heads 1, between, and heads, against heads computed one by one."""
        same = self.comparison.same
        shown = [row for row in same.rows if row[0] in self.comparison.variants]
        yield Heading(Message("Checked with numbers"))
        if "mla" in self.comparison.variants:
            both = Message(
                "MLA by the model latent, keys and values rebuilt or W_UK, W_UV absorbed, on the same weights. Largest difference between the outputs: {difference}",
                difference=_apart(same.absorbed),
            )
            yield Paragraph(both)
        if not shown:
            return
        how = Message(
            "The model multi_head computes all heads at once; beside it every head on its own, by the model attention. The same weights (seed {seed}), {tokens} tokens, d_model {d_model}, {heads} heads of width {d_head}, causal. Largest difference between the outputs:",
            seed=same.seed,
            tokens=TOKENS,
            d_model=D_MODEL,
            heads=HEADS,
            d_head=D_HEAD,
        )
        yield Paragraph(how)
        yield Listing(tuple(_same_heads(*row) for row in shown))
        apart = Message(
            "What is left is rounding of float64. By comparison, kv_heads = 1 and kv_heads = {heads} differ by {apart} on these weights.",
            heads=HEADS,
            apart=number(same.apart),
        )
        yield Paragraph(apart, tone="aside")

    def _products(self) -> Iterator[Block]:
        """Every product that is counted, of one layer, and the totals."""
        yield Heading(Message("Every product, in one layer"))
        for entry in self.comparison.entries:
            for part, products in entry.count.parts.items():
                head = Message("{head} · {part}", head=" ".join(self._head(entry)), part=Message(PARTS[part]))
                yield Heading(head, 3)
                yield Listing(tuple(ListEntry(equation(count), name) for name, count in products.items()))
                total = Message(
                    "Together, times l = {layers}: {total}",
                    layers=entry.count.sizes.layers,
                    total=exact(entry.count.total(part)),
                )
                yield Paragraph(total)


def _after(name: Said, text: Said) -> Message:
    """“name: text”"""
    return Message("{where}: {what}", where=name, what=text)


def _reason(model: ComparedModel, name: str) -> Message:
    """A size that nobody gave, and why it is what it is."""
    value = number(getattr(model.sizes, name))
    return Message(ASSUMED[name, model.assumed[name]], value=value, latent=number(LATENT), rotary=number(ROTARY))


def _same_heads(variant: str, kv_heads: int, difference: float) -> ListEntry:
    whose = {
        "mqa": N_("all heads use one K and V"),
        "gqa": N_("neighbouring heads share K and V"),
        "mha": N_("every head has its own K and V"),
    }
    meaning = _after(variant.upper(), Message(whose[variant]))
    text = Message("{difference}  {whose}", difference=_apart(difference), whose=meaning)
    return ListEntry(text, f"kv_heads = {kv_heads}")


def _heads(count: Count) -> str:
    """Heads of keys and values; MLA has a latent instead."""
    heads = {"mha": count.sizes.heads, "mqa": 1, "gqa": count.sizes.kv_heads}.get(count.variant)
    return "–" if heads is None else exact(heads)
