"""The comparison of attention variants as blocks of text, which the terminal and Markdown lay out."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.core.message import N_, Language, Listed, Message
from attncli.core.record import Record
from attncli.cost.claims import Finding
from attncli.cost.comparison import Comparison, Entry, Model
from attncli.cost.count import Line
from attncli.cost.sizes import GROUPS, LATENT, ROTARY, WIDTHS, Assumed
from attncli.render._compare_words import (
    ASSUMED,
    LETTERS,
    NAMES,
    WORDS,
    bytes_text,
    counted,
    equation,
    exact,
    number,
    quotient,
    rounded,
    share,
    short,
)


class Heading(Record):
    """A heading: of level 1 for the whole, 2 for a part, 3 for an entry."""

    text: str
    level: int = 2


class Paragraph(Record):
    """A sentence or more."""

    text: str
    aside: bool = False


class Grid(Record):
    """A table: a label and a number for every entry in each line; `own` are the columns of what a model really uses."""

    heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    own: tuple[bool, ...]


class Chart(Record):
    """Bars: a name, a length, and a text."""

    rows: tuple[tuple[str, float, str], ...]


class Listing(Record):
    """Names with a formula or number each; `sign` is ✓, ✗ or empty."""

    rows: tuple[tuple[str, str, str], ...]


Block = Heading | Paragraph | Grid | Chart | Listing


class Document:
    """A comparison in one language."""

    def __init__(self, comparison: Comparison, language: Language, *, expand: bool = False) -> None:
        self.comparison = comparison
        self.language = language
        self.expand = expand
        self.several = len(comparison.models) > 1

    def say(self, message: Message | str) -> str:
        return (rounded(message) if isinstance(message, Message) else Message(message)).text(self.language)

    def blocks(self) -> Iterator[Block]:
        """From top to bottom."""
        yield Heading(self.title(), 1)
        for model in self.comparison.models:
            yield Paragraph(self._sizes(model))
        if any(self._assumed(model) for model in self.comparison.models):
            yield Paragraph(self.say(N_("* not given, but taken as said at the end")), aside=True)
        yield self._grid()
        yield from self._used()
        yield Heading(self.say(N_("KV cache per token")))
        yield self._chart()
        yield from self._cache()
        yield from self._claims()
        yield from self._same()
        if self.expand:
            yield from self._products()
        yield Heading(self.say(N_("What is counted")))
        for message in counted(self.comparison):
            yield Paragraph(self.say(message), aside=True)
        yield from self._sources()

    def title(self) -> str:
        variants = " · ".join(NAMES[variant] for variant in self.comparison.variants)
        models = [model.title for model in self.comparison.models if model.title]
        if not models:
            return self.say(Message(N_("{variants} at your sizes"), variants=variants))
        return self.say(Message(N_("{variants} at the sizes of {models}"), variants=variants, models=Listed(models)))

    def _sizes(self, model: Model) -> str:
        """Its sizes in words and letters; a star marks those that nobody gave."""
        assumed = {one.name for one in self._assumed(model)}
        found = []
        for name, words in WORDS.items():
            value = getattr(model.sizes, name)
            if not self._matters(name, model) or (name == "window" and not value):
                continue
            letter = "" if name == "bytes" else f"{LETTERS[name]}="
            found.append(self.say(Message(words, size=f"{letter}{number(value)}{'*' if name in assumed else ''}")))
        text = self.say(Listed(found))
        return self._after(model.title, text) if model.title else text

    def _assumed(self, model: Model) -> list[Assumed]:
        return [one for one in model.assumed if self._matters(one.name, model)]

    def _used(self) -> Iterator[Block]:
        """Which of the columns is the model's own: not to be told by bold type alone."""
        if self.several:
            return
        for entry in self.comparison.entries:
            if entry.own:
                used = Message(
                    N_("{model} itself uses {variant}."), model=entry.model.title, variant=self._head(entry)[-1]
                )
                yield Paragraph(self.say(used), aside=True)

    def _sources(self) -> Iterator[Block]:
        """Where the sizes come from, and why those are what they are that nobody gave."""
        if not any(model.source or self._assumed(model) for model in self.comparison.models):
            return
        yield Heading(self.say(N_("Where the sizes come from")))
        for model in self.comparison.models:
            if model.source:
                entries = ", ".join(f"{key} {value}" for key, value in model.config.items())
                yield Paragraph(self._after(model.title, model.source), aside=True)
                yield Paragraph(entries, aside=True)
            if model.source and model.given:
                given = Listed(LETTERS[name] for name in model.given)
                yield Paragraph(self.say(Message(N_("Given by you instead: {sizes}."), sizes=given)), aside=True)
            assumed = [self._reason(model, one) for one in self._assumed(model)]
            if assumed:
                what = Message(N_("* Not given, so taken: {sizes}."), sizes=Listed(assumed, N_("{one}; {another}")))
                yield Paragraph(self.say(what), aside=True)

    def _reason(self, model: Model, assumed: Assumed) -> str:
        """A size that nobody gave, and why it is what it is."""
        value = number(getattr(model.sizes, assumed.name))
        text = ASSUMED[assumed.name, assumed.rule]
        return self.say(Message(text, value=value, latent=number(LATENT), rotary=number(ROTARY)))

    def _variants(self, model: Model) -> set[str]:
        return {entry.count.variant for entry in self.comparison.entries if entry.model is model}

    def _matters(self, name: str, model: Model) -> bool:
        """Whether a size shows in what is compared."""
        variants = self._variants(model)
        if name == "kv_heads":
            return "gqa" in variants
        return "mla" in variants or name not in ("d_c", "d_c_q", "d_rope")

    def _head(self, entry: Entry) -> tuple[str, ...]:
        variant = NAMES[entry.count.variant]
        return (entry.model.title, variant) if self.several else (variant,)

    def _grid(self) -> Grid:
        entries = self.comparison.entries
        columns = [self._column(entry) for entry in entries]
        labels = self._labels()
        kept = [i for i in range(len(labels)) if any(column[i] not in ("", "–") for column in columns)]
        return Grid(
            tuple(self._head(entry) for entry in entries),
            tuple((labels[i], tuple(column[i] for column in columns)) for i in kept),
            tuple(entry.own for entry in entries),
        )

    def _labels(self) -> list[str]:
        of = "  " + self.say(N_("share of MHA's"))
        contexts = {model.sizes.context for model in self.comparison.models}
        tokens = exact(contexts.pop()) if len(contexts) == 1 else "n"
        return [
            self.say(N_("heads of keys and values")),
            self.say(N_("parameters")),
            of,
            self.say(N_("cache per token, numbers")),
            self.say(N_("cache per token, bytes")),
            of,
            self.say(Message(N_("cache at {tokens} tokens"), tokens=tokens)),
            self.say(N_("multiply-adds: prefill")),
            of,
            self.say(N_("multiply-adds: next token")),
            of,
            "  " + self.say(N_("with W_UK, W_UV absorbed")),
            of,
        ]

    @staticmethod
    def _column(entry: Entry) -> list[str]:
        count = entry.count
        sizes = count.sizes
        heads = {"mha": exact(sizes.heads), "mqa": "1", "gqa": exact(sizes.kv_heads), "mla": "–"}

        def part(name: str) -> list[str]:
            of_mha = entry.share(name)
            return ["–", "–"] if of_mha is None else [short(count.total(name)), share(of_mha)]

        return [
            heads[count.variant],
            *part("weights"),
            short(count.cache.value),
            bytes_text(count.cache_bytes),
            share(entry.cache_share),
            bytes_text(count.full_cache_bytes),
            *part("prefill"),
            *part("decode"),
            *part("absorbed"),
        ]

    def _chart(self) -> Chart:
        return Chart(
            tuple(
                (
                    " ".join(self._head(entry)),
                    float(entry.count.cache_bytes),
                    bytes_text(entry.count.cache_bytes),
                )
                for entry in self.comparison.entries
            )
        )

    def _cache(self) -> Iterator[Block]:
        """The published table: symbols, the numbers put in, the result."""
        text = N_("In numbers, as in table 1 of the DeepSeek-V2 paper (arXiv 2405.04434):")
        yield Paragraph(self.say(text))
        order = ("mha", "gqa", "mqa", "mla")
        entries = sorted(
            self.comparison.entries,
            key=lambda entry: (self.comparison.models.index(entry.model), order.index(entry.count.variant)),
        )
        yield Listing(tuple(("", " ".join(self._head(entry)), equation(entry.count.cache)) for entry in entries))
        for latent in self.comparison.latent:
            c, r = latent.proportions
            fields = {
                "c": number(c),
                "r": number(r),
                "widths": number(latent.widths.value),
                "groups": number(latent.groups.value),
                "as_widths": quotient(latent.widths, symbols=False),
                "as_groups": quotient(latent.groups, symbols=False),
            }
            said = Message(
                N_(
                    "MLA with d_c = {c}·d_h and d_h^R = {r}·d_h caches {widths}·d_h·l ({as_widths}), as much as GQA with {groups} groups ({as_groups})."
                ),
                **fields,
            )
            yield Paragraph(self._about(latent.model, self.say(said)))
            if not latent.as_published:
                paper = Message(
                    N_("The paper's proportions, {c} and {r}, give {widths}·d_h·l and {groups} groups."),
                    c=number(LATENT),
                    r=number(ROTARY),
                    widths=number(WIDTHS),
                    groups=number(GROUPS),
                )
                yield Paragraph(self.say(paper))

    def _about(self, model: str, text: str) -> str:
        """The text behind the model's name, where there are several."""
        if not self.several:
            return text
        return self._after(next(one.title for one in self.comparison.models if one.name == model), text)

    def _after(self, name: Message | str, text: str) -> str:
        """“name: text”"""
        return self.say(Message(N_("{where}: {what}"), where=name, what=text))

    def _claims(self) -> Iterator[Block]:
        yield Heading(self.say(N_("What is said about them, examined")))
        for claim in self.comparison.claims:
            yield Heading(self.say(claim.text), 3)
            yield Listing(tuple(self._finding(finding) for finding in claim.findings))
            yield Paragraph(self.say(claim.verdict), aside=True)

    def _finding(self, finding: Finding) -> tuple[str, str, str]:
        sign = "✓" if finding.holds else "✗"
        text = quotient(finding.ratio)
        if finding.where is not None:
            text = self.say(Message(N_("{text} ({where})"), text=text, where=finding.where))
        if finding.reading is not None:
            text = self._after(finding.reading, text)
        return sign, "", self._about(finding.model, text)

    def _same(self) -> Iterator[Block]:
        """One model with kv_heads 1, between, and heads, against heads computed one by one."""
        same = self.comparison.same
        shown = [row for row in same.rows if row.variant in self.comparison.variants]
        yield Heading(self.say(N_("Checked with numbers")))
        if "mla" in self.comparison.variants:
            both = Message(
                N_(
                    "MLA by the model latent, keys and values rebuilt or W_UK, W_UV absorbed, on the same weights: the outputs differ by {difference} at most."
                ),
                difference=f"{same.absorbed:.1e}",
            )
            yield Paragraph(self.say(both))
        if not shown:
            return
        how = Message(
            N_(
                "The model multi_head computes all heads at once; beside it every head on its own, by the model attention. The same weights (seed {seed}), {tokens} tokens, d_model {d_model}, {heads} heads of width {d_head}, causal. Largest difference between the outputs:"
            ),
            seed=same.seed,
            tokens=same.tokens,
            d_model=same.d_model,
            heads=same.heads,
            d_head=same.d_head,
        )
        yield Paragraph(self.say(how))
        whose = {
            "mqa": N_("all heads use one K and V"),
            "gqa": N_("neighbouring heads share K and V"),
            "mha": N_("every head has its own K and V"),
        }
        yield Listing(
            tuple(
                (
                    "",
                    f"kv_heads = {row.kv_heads}",
                    f"{row.difference:.1e}  {self._after(NAMES[row.variant], self.say(whose[row.variant]))}",
                )
                for row in shown
            )
        )
        apart = Message(
            N_(
                "What is left is rounding of float64. That it means something: kv_heads = 1 and kv_heads = {heads} differ by {apart} on these weights."
            ),
            heads=same.heads,
            apart=number(same.apart),
        )
        yield Paragraph(self.say(apart), aside=True)

    def _products(self) -> Iterator[Block]:
        """Every product that is counted, of one layer, and the totals."""
        yield Heading(self.say(N_("Every product, in one layer")))
        parts = (
            ("weights", N_("parameters")),
            ("prefill", N_("multiply-adds: prefill")),
            ("decode", N_("multiply-adds: next token")),
            ("absorbed", N_("multiply-adds: next token, W_UK and W_UV absorbed")),
        )
        for entry in self.comparison.entries:
            for name, label in parts:
                lines: tuple[Line, ...] = getattr(entry.count, name)
                if not lines:
                    continue
                yield Heading(f"{' '.join(self._head(entry))} · {self.say(label)}", 3)
                yield Listing(tuple(("", line.name, equation(line.count)) for line in lines))
                total = Message(
                    N_("Together, times l = {layers}: {total}"),
                    layers=entry.count.sizes.layers,
                    total=exact(entry.count.total(name)),
                )
                yield Paragraph(self.say(total))
