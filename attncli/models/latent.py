"""Multi-head latent attention (MLA): keys and values rebuilt from one narrow latent (DeepSeek-V2, arXiv 2405.04434,
section 2.1.2), positions in a rotary part of their own (section 2.1.3), and the absorbed form of the same sums."""

from __future__ import annotations

from attncli.core.graph import Axis, Graph, show_shape
from attncli.core.message import N_, InputError, Message, ShapeError
from attncli.models.attention import SETTINGS as ATTENTION
from attncli.models.attention import attend
from attncli.models.heads import evenly, joined, output, split_why
from attncli.models.linear import linear
from attncli.models.model import TOKENS, Argument, Given, Model, Setting
from attncli.models.positions import BASE, PAIRING, POSITION_SCALE, START, rotated, rotation
from attncli.ops.layout import JOIN_COLUMNS, JOIN_ROWS, REPEAT_KV, SPLIT_HEADS
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


def latent(graph: Graph, x: str, given: Given, prefix: str = "") -> str:
    """The steps c_KV … concat, output for tokens x (token d_model); returns the id of output.

    Raises
    ------
    InputError
        Half a rotary part, half a cache, or settings of a rotation where nothing is turned.
    ShapeError
        Columns that the heads cannot share evenly.
    """
    return Latent(graph, x, given, prefix).output()


class Latent:
    """The writing of one latent attention.

    Attributes
    ----------
    heads : query heads
    rotary : whether queries and keys have a part that is turned
    past : tokens in the cache
    """

    def __init__(self, graph: Graph, x: str, given: Given, prefix: str) -> None:
        self.graph, self.x, self.given, self.prefix = graph, x, given, prefix
        self.heads = int(given.setting("heads", 1))
        self.rotary = self._has("W_QR")
        self._check_parts()
        self._check_widths()
        cache = given.inputs.get(self._id("c_KV_past"))
        self.past = cache.shape[0] if cache is not None and cache.values.ndim == 2 else 0

    def output(self) -> str:
        latent = self._cached("c_KV", self._projected(self.x, "c_KV", "W_DKV"))
        source = self._projected(self.x, "c_Q", "W_DQ") if self._has("W_DQ") else self.x
        write = self._absorbed if self.given.setting("absorbed") else self._plain
        attended = write(latent, source)
        return output(self.graph, joined(self.graph, attended, self.prefix), self.given, self.prefix)

    # --- the two forms ------------------------------------------------------------------------------------------------

    def _plain(self, latent: str, source: str) -> str:
        """Keys and values rebuilt from the latent, head by head; then attention as usual."""
        whole = {"Q": self._projected(source, "Q_C", "W_UQ")}
        whole |= {name: self._projected(latent, f"{name}_C", f"W_U{name}") for name in "KV"}
        part, width = ("_C", "d_h") if self.rotary else ("", "d_k")
        q, k = (self._split(whole[name], f"{name}{part}_heads", width) for name in "QK")
        v = self._split(whole["V"], "V_heads", "d_v")
        if self.rotary:
            turned, shared = self._turned(source)
            q = self._beside(q, turned, "Q_heads", "Q")
            k = self._beside(k, self._for_every_head(shared), "K_heads", "K")
        return attend(self.graph, q, k, v, self.given, self.prefix, past=self.past)

    def _absorbed(self, latent: str, source: str) -> str:
        """Queries taken into the space of the latent, which is then key and value of all heads at once."""
        graph, prefix = self.graph, self.prefix
        q = self._split(self._projected(source, "Q_C", "W_UQ"), "Q_C_heads", "d_h")
        width = graph.axes(q)[-1]
        weight = self._split(self._weight("W_UK", latent), "W_UK_heads", "d_h")
        q = graph.apply(
            PRODUCT,
            self._id("Q_absorbed"),
            q,
            weight,
            symbol="Q_{absorbed}",
            transpose_b=True,
            why=N_(
                "q · (c W_UK) is (q W_UKᵀ) · c: instead of unfolding every key, each head folds W_UK into its query."
                " Now it can meet the latent itself."
            ),
        )
        k = latent
        if self.rotary:
            turned, shared = self._turned(source)
            width = Axis("d_k", width.size + graph.axes(turned)[-1].size, width.setter)
            q = self._beside(q, turned, "Q_heads", "Q")
            k = self._beside(k, shared, "K_latent", "K")
        k, v = self._split(k, "K_heads", "d_k", 1), self._split(latent, "V_heads", "d_c", 1)
        weighed = attend(
            graph,
            q,
            k,
            v,
            self.given,
            prefix,
            past=self.past,
            width=width.changed(name="d_k"),
            result="O_latent",
            symbol="O_{latent}",
        )
        return graph.apply(
            PRODUCT,
            self._id("O"),
            weighed,
            self._split(self._weight("W_UV", latent), "W_UV_heads", "d_v"),
            why=N_(
                "A (c W_UV) is (A c) W_UV: the latents are mixed first, and only the mixture of each head is unfolded"
                " into values."
            ),
        )

    # --- parts --------------------------------------------------------------------------------------------------------

    def _turned(self, source: str) -> tuple[str, str]:
        """Rotary parts, turned: of the queries (head query d_R), and of the keys of all heads (key d_R)."""
        q = self._split(self._projected(source, "Q_R", "W_QR"), "Q_R_heads", "d_R")
        k = self._projected(self.x, "K_R", "W_KR")
        cos, sin = rotation(self.graph, self.given, k, self.prefix, self.past)
        why = N_(
            "Only this narrow part is turned by its position. Were the content part turned, W_UK could not be folded into"
            " the queries: a rotation that differs from token to token would stand between them."
        )
        queries = rotated(self.graph, self.given, q, cos, sin, self._id("Q_R_rotated"), "Q_{R,rotated}", why)
        keys = rotated(self.graph, self.given, k, cos, sin, self._id("K_R_rotated"), "K_{R,rotated}", why)
        return queries, self._cached("K_R", keys)

    def _for_every_head(self, keys: str) -> str:
        """The keys' rotary part (key d_R), once for every head."""
        one = self._split(keys, "K_R_heads", "d_R", 1)
        if self.heads == 1:
            return one
        return self.graph.apply(
            REPEAT_KV,
            self._id("K_R_shared"),
            one,
            symbol="K_{R,shared}",
            group=self.heads,
            heads=self.heads,
            why=N_("The rotary part of the keys is the same for all heads, so it is repeated for each of them."),
        )

    def _beside(self, content: str, turned: str, step_id: str, name: str) -> str:
        graph = self.graph
        return graph.apply(
            JOIN_COLUMNS,
            self._id(step_id),
            content,
            turned,
            symbol=f"{name}_{{{step_id.rpartition('_')[2]}}}",
            axes=("d_k",),
            why=Message(
                N_(
                    "Content and position side by side, {content} and {turned} {columns}: {d} in all. The product of two such {rows}"
                    " is the sum of both products: what it is about, plus how far away it is."
                ),
                content=graph.axes(content)[-1].size,
                turned=graph.axes(turned)[-1].size,
                d=graph.axes(content)[-1].size + graph.axes(turned)[-1].size,
            ),
        )

    def _projected(self, x: str, step_id: str, weight: str) -> str:
        return linear(
            self.graph, self.given, x, self._id(step_id), self._id(weight), _columns(weight), why=_WHY[step_id]
        )

    def _weight(self, name: str, x: str) -> str:
        step_id = self._id(name)
        return self.graph.input(step_id, self.given.inputs[step_id], (self.graph.axes(x)[-1].name, _columns(name)))

    def _split(self, step_id: str, name: str, width: str, heads: int | None = None) -> str:
        """The columns of `id` shared out among the heads; with one head, all of them."""
        heads = self.heads if heads is None else heads
        each = self.graph.axes(step_id)[-1].size // heads
        plain = name.removesuffix("_heads")
        symbol = f"{plain.replace('_', '_{', 1)},heads}}" if "_" in plain else f"{plain}_{{heads}}"
        return self.graph.apply(
            SPLIT_HEADS,
            self._id(name),
            step_id,
            symbol=symbol,
            heads=heads,
            width=each,
            axes=("head" if heads == self.heads else "kv_head", width),
            why=split_why(step_id, heads, each),
        )

    def _cached(self, name: str, new: str) -> str:
        """What a cache holds, then the new rows."""
        past = self._id(f"{name}_past")
        if not self._has(f"{name}_past"):
            return new
        axes = self.graph.axes(new)
        old = self.graph.input(
            past, self.given.inputs[past], ("past_key", axes[-1].name), symbol=f"{name.replace('_', '_{')},past}}"
        )
        return self.graph.apply(
            JOIN_ROWS,
            self._id(f"{name}_all"),
            old,
            new,
            symbol=f"{name.replace('_', '_{')},all}}",
            axes=("key",),
            why=N_("Of earlier tokens only the latent and the turned part are kept. The cached {rows} come first."),
        )

    # --- what does not fit --------------------------------------------------------------------------------------------

    def _check_parts(self) -> None:
        """Half a rotary part, half a cache, or settings of a rotation where nothing is turned."""
        pairs = [("W_QR", "W_KR")]
        if self.rotary:
            pairs.append(("c_KV_past", "K_R_past"))
        elif self._has("K_R_past"):
            pairs.append(("W_KR", "K_R_past"))
        for pair in pairs:
            here = [name for name in pair if self._has(name)]
            if len(here) == 1:
                raise InputError(
                    "{given} is given, but {missing} is missing. Give both, or leave both out.",
                    given=self._id(here[0]),
                    missing=self._id(pair[1 - pair.index(here[0])]),
                )
        for name in ("base", "pairing", "start", "position_scale"):
            if not self.rotary and self.given.setting(name) is not None:
                raise InputError(
                    "{setting} is given, but nothing is turned. Add W_QR and W_KR, or leave {setting} out.",
                    setting=name,
                )

    def _check_widths(self) -> None:
        """Columns of the weights that do not fit the heads or come in pairs."""
        inputs = self.given.inputs
        for name in ("W_UQ", "W_UK", "W_UV", *(("W_QR",) if self.rotary else ())):
            evenly(self._id(name), inputs[self._id(name)], self.heads)
        if not self.rotary:
            return
        queries, keys = inputs[self._id("W_QR")], inputs[self._id("W_KR")]
        if queries.values.ndim != 2 or keys.values.ndim != 2:
            return  # said by the graph, with the axes it needs
        if keys.shape[1] % 2:
            raise ShapeError(
                "{name} is {shape}: rotary turns pairs of columns, and {count} columns cannot be paired. Give {name} an even"
                " number of columns.",
                name=self._id("W_KR"),
                shape=show_shape(keys.shape),
                count=keys.shape[1],
            )
        if queries.shape[1] != self.heads * keys.shape[1]:
            raise ShapeError(
                "{queries} is {queries_shape} and {keys} is {keys_shape}: each of {heads} heads turns {width} columns. Give"
                " {queries} {expected} columns, or change {keys}.",
                queries=self._id("W_QR"),
                queries_shape=show_shape(queries.shape),
                keys=self._id("W_KR"),
                keys_shape=show_shape(keys.shape),
                heads=self.heads,
                width=keys.shape[1],
                expected=self.heads * keys.shape[1],
            )

    def _has(self, name: str) -> bool:
        return self._id(name) in self.given

    def _id(self, name: str) -> str:
        return f"{self.prefix}{name}"


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
        build=lambda graph, given: latent(graph, given.enter(graph, TOKENS), given),
    ),
)
