"""Multi-head latent attention (MLA): keys and values rebuilt from one narrow latent (DeepSeek-V2, arXiv 2405.04434,
section 2.1.2), positions in a rotary part of their own (section 2.1.3), and the absorbed form of the same sums."""

from __future__ import annotations

from attncli.core.axes import Axis, show_shape
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models.attention import SETTINGS as ATTENTION
from attncli.models.attention import attend, cached
from attncli.models.heads import evenly, joined, output, split
from attncli.models.layers import linear
from attncli.models.model import TOKENS, Argument, Model, Part, Setting, indexed
from attncli.models.positions import BASE, PAIRING, POSITION_SCALE, START, refuse_rotation, rotated, rotation
from attncli.ops.layout import JOIN_COLUMNS, REPEAT_KV
from attncli.ops.product import PRODUCT

ARGUMENTS = (
    TOKENS,
    Argument("W_DKV", ("d_model", "d_c"), N_("weights down to the latent of keys and values")),
    Argument("W_UK", ("d_c", "heads·d_h"), N_("weights up from the latent to the keys, the heads side by side")),
    Argument("W_UV", ("d_c", "heads·d_v"), N_("weights up from the latent to the values, the heads side by side")),
    Argument("W_DQ", ("d_model", "d_cq"), N_("weights down to the latent of the queries"), required=False),
    Argument("W_UQ", ("d_cq", "heads·d_h"), N_("weights up to the queries: from their latent, or from X without W_DQ")),
    Argument("W_QR", ("d_cq", "heads·d_R"), N_("weights of the queries' rotary part, by head"), required=False),
    Argument("W_KR", ("d_model", "d_R"), N_("weights of the keys' rotary part, one for all heads"), required=False),
    Argument("W_O", ("heads·d_v", "d_out"), N_("weights that mix the joined heads into the output")),
    Argument("b_O", ("d_out",), N_("bias of the output"), required=False),
    Argument("c_KV_past", ("past_key", "d_c"), N_("cached latents that go before c_KV"), required=False),
    Argument(
        "K_R_past",
        ("past_key", "d_R"),
        N_("cached rotary parts of keys, turned already, that go first"),
        required=False,
    ),
)

SETTINGS = (
    Setting("heads", "count", N_("query heads (default: 1)")),
    Setting("absorbed", "flag", N_("W_UK goes into the queries and W_UV behind the sum: keys are never rebuilt")),
    *ATTENTION,
    BASE,
    PAIRING,
    START,
    POSITION_SCALE,
)

_WHY = {
    "c_KV": N_("Every token is pressed into a narrow latent. Keys and values both come from it, and it is what a cache keeps in their place."),
    "c_Q": N_("The queries have a narrow latent of their own; it is not cached, it only saves weights."),
    "Q_C": N_("The content part of the queries, all heads side by side."),
    "K_C": N_("The latent unfolds into the keys of all heads, side by side."),
    "V_C": N_("The same latent unfolds into the values of all heads, side by side."),
    "Q_R": N_("The part of the queries that will carry the position, all heads side by side."),
    "K_R": N_("The part of the keys that will carry the position. It comes straight from X, one for all heads."),
}  # fmt: skip


_CACHED = N_("Of earlier tokens only the latent and the turned part are kept. The cached {rows} come first.")


def _latent(part: Part) -> str:
    """X (token d_model) and the weights → output (token d_out)."""
    return Latent(part, part.enter(TOKENS)).output()


class Latent:
    """The writing of one latent attention.

    Attributes
    ----------
    heads : query heads
    rotary : whether queries and keys have a part that is turned
    past : tokens in the cache
    """

    def __init__(self, part: Part, x: str) -> None:
        self.part, self.x = part, x
        self.heads = int(part.setting("heads", 1))
        self.rotary = "W_QR" in part
        self._check_parts()
        self._check_widths()
        cache = part.matrix("c_KV_past") if "c_KV_past" in part else None
        self.past = cache.shape[0] if cache is not None and cache.values.ndim == 2 else 0

    def output(self) -> str:
        latent = cached(self.part, "c_KV", self._projected(self.x, "c_KV", "W_DKV"), _CACHED)
        source = self._projected(self.x, "c_Q", "W_DQ") if "W_DQ" in self.part else self.x
        write = self._absorbed if self.part.setting("absorbed") else self._plain
        return output(self.part, joined(self.part, write(latent, source)))

    # --- the two forms ------------------------------------------------------------------------------------------------

    def _plain(self, latent: str, source: str) -> str:
        """Keys and values rebuilt from the latent, head by head; then attention as usual."""
        whole = {"Q": self._projected(source, "Q_C", "W_UQ")}
        whole |= {name: self._projected(latent, f"{name}_C", f"W_U{name}") for name in "KV"}
        name, width = ("{}_C", "d_h") if self.rotary else ("{}", "d_k")
        q, k = (self._split(whole[of], name.format(of), width) for of in "QK")
        v = self._split(whole["V"], "V", "d_v")
        if self.rotary:
            turned, shared = self._turned(source)
            q = self._beside(q, turned, "Q", "heads")
            k = self._beside(k, self._for_every_head(shared), "K", "heads")
        return attend(self.part, q, k, v, past=self.past)

    def _absorbed(self, latent: str, source: str) -> str:
        """Queries taken into the space of the latent, which is then key and value of all heads at once."""
        part, axes = self.part, self.part.graph.axes
        q = self._split(self._projected(source, "Q_C", "W_UQ"), "Q_C", "d_h")
        width = axes(q)[-1]
        weight = self._split(self._weight("W_UK", latent), "W_UK", "d_h")
        why = N_(
            "q · (c W_UK) is (q W_UKᵀ) · c: instead of unfolding every key, each head folds W_UK into its query."
            " Now it can meet the latent itself."
        )
        q = part.apply(PRODUCT, "Q_absorbed", q, weight, symbol="Q_{absorbed}", transpose_b=True, why=why)
        k = latent
        if self.rotary:
            turned, shared = self._turned(source)
            width = Axis("d_k", width.size + axes(turned)[-1].size, width.setter)
            q = self._beside(q, turned, "Q", "heads")
            k = self._beside(k, shared, "K", "latent")
        k, v = self._split(k, "K", "d_k", heads=1), self._split(latent, "V", "d_c", heads=1)
        width = width.changed(name="d_k")
        weighed = attend(part, q, k, v, past=self.past, width=width, result="O_latent", symbol="O_{latent}")
        why = N_(
            "A (c W_UV) is (A c) W_UV: the latents are mixed first, and only the mixture of each head is unfolded"
            " into values."
        )
        return part.apply(PRODUCT, "O", weighed, self._split(self._weight("W_UV", latent), "W_UV", "d_v"), why=why)

    # --- parts --------------------------------------------------------------------------------------------------------

    def _turned(self, source: str) -> tuple[str, str]:
        """Rotary parts, turned: of the queries (head query d_R), and of the keys of all heads (key d_R)."""
        q = self._split(self._projected(source, "Q_R", "W_QR"), "Q_R", "d_R")
        k = self._projected(self.x, "K_R", "W_KR")
        cos, sin = rotation(self.part, k, self.past)
        why = N_(
            "Only this narrow part is turned by its position. Were the content part turned, W_UK could not be folded into"
            " the queries: a rotation that differs from token to token would stand between them."
        )
        queries = rotated(self.part, q, cos, sin, "Q_R", why)
        keys = rotated(self.part, k, cos, sin, "K_R", why)
        return queries, cached(self.part, "K_R", keys, _CACHED)

    def _for_every_head(self, keys: str) -> str:
        """The keys' rotary part (key d_R), once for every head."""
        one = self._split(keys, "K_R", "d_R", heads=1)
        if self.heads == 1:
            return one
        why = N_("The rotary part of the keys is the same for all heads, so it is repeated for each of them.")
        symbol, heads = indexed("K_R", "shared"), self.heads
        return self.part.apply(REPEAT_KV, "K_R_shared", one, symbol=symbol, group=heads, heads=heads, why=why)

    def _beside(self, content: str, turned: str, name: str, tail: str) -> str:
        widths = [self.part.graph.axes(step_id)[-1].size for step_id in (content, turned)]
        why = Message(
            "Content and position side by side, {content} and {turned} {columns}: {d} in all. The product of two such {rows}"
            " is the sum of both products: what it is about, plus how far away it is.",
            content=widths[0],
            turned=widths[1],
            d=sum(widths),
        )
        step, symbol = f"{name}_{tail}", indexed(name, tail)
        return self.part.apply(JOIN_COLUMNS, step, content, turned, symbol=symbol, axes=("d_k",), why=why)

    def _projected(self, x: str, name: str, weight: str) -> str:
        return linear(self.part, x, name, weight, _columns(weight), _WHY[name])

    def _weight(self, name: str, x: str) -> str:
        return self.part.input(name, (self.part.graph.axes(x)[-1].name, _columns(name)))

    def _split(self, source: str, name: str, width: str, heads: int | None = None) -> str:
        """The columns of `source` shared out among the heads; with one head, all of them."""
        heads = self.heads if heads is None else heads
        return split(self.part, source, name, width, heads, self.heads)

    # --- what does not fit --------------------------------------------------------------------------------------------

    def _check_parts(self) -> None:
        """Half a rotary part, half a cache, or settings of a rotation where nothing is turned."""
        part = self.part
        pairs = [("W_QR", "W_KR")]
        if self.rotary:
            pairs.append(("c_KV_past", "K_R_past"))
        elif "K_R_past" in part:
            pairs.append(("W_KR", "K_R_past"))
        for pair in pairs:
            here = [name for name in pair if name in part]
            if len(here) == 1:
                raise InputError(
                    "{given} is given, but {missing} is missing. Give both, or leave both out.",
                    given=part.named(here[0]),
                    missing=part.named(pair[1 - pair.index(here[0])]),
                )
        if not self.rotary:
            refuse_rotation(part, Message("W_QR and W_KR"))

    def _check_widths(self) -> None:
        """Columns of the weights that do not fit the heads or come in pairs."""
        part = self.part
        for name in ("W_UQ", "W_UK", "W_UV", *(("W_QR",) if self.rotary else ())):
            evenly(part, name, self.heads)
        if not self.rotary:
            return
        queries, keys = part.matrix("W_QR"), part.matrix("W_KR")
        if queries.values.ndim != 2 or keys.values.ndim != 2:
            return  # said by the graph, with the axes it needs
        if keys.shape[1] % 2:
            raise ShapeError(
                "{name} is {shape}: rotary turns pairs of columns, and {count} columns cannot be paired. Give {name} an even"
                " number of columns.",
                name=part.named("W_KR"),
                shape=show_shape(keys.shape),
                count=keys.shape[1],
            )
        if queries.shape[1] != self.heads * keys.shape[1]:
            raise ShapeError(
                "{queries} is {queries_shape} and {keys} is {keys_shape}: each of {heads} heads turns {width} columns. Give"
                " {queries} {expected} columns, or change {keys}.",
                queries=part.named("W_QR"),
                queries_shape=show_shape(queries.shape),
                keys=part.named("W_KR"),
                keys_shape=show_shape(keys.shape),
                heads=self.heads,
                width=keys.shape[1],
                expected=self.heads * keys.shape[1],
            )


def _columns(weight: str) -> str:
    """The axis of a weight's columns."""
    return next(argument.axes[1] for argument in ARGUMENTS if argument.name == weight)


MODELS = (
    Model(
        name="latent",
        text=N_(
            "multi-head latent attention (MLA): keys and values rebuilt from one narrow latent, positions kept apart"
        ),
        arguments=ARGUMENTS,
        settings=SETTINGS,
        build=_latent,
    ),
)
