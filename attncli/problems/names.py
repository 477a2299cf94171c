"""What people call the steps of a calculation: ids in any case, symbols, the field's words in both languages, numbers.

One place decides what a name means, for sheets, `--step`, `why` and everything else that takes a step. A name that may
mean several steps is never guessed at: the error lists them.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from attncli.core.axes import Axis, show_shape
from attncli.core.graph import Graph, gradient_id, part_of
from attncli.core.message import N_, InputError, Listed, Message, closest, unknown
from attncli.core.terms import Index

#: Words for steps, by what their id ends in: the field's, in both languages. Their case, spaces, -, _ and 的 do not count.
WORDS: Mapping[str, str] = {
    "scores": "score, raw_scores, attention_scores, attn_scores, dot_products, similarity, similarities, QKT, 得分, 分数,"
    " 注意力得分, 注意力分数, 原始得分, 原始分数, 打分, 点积, 相似度",
    "scaled": "scaled_scores, scaled_attention_scores, 缩放, 缩放得分, 缩放分数, 缩放后得分, 缩放后分数",
    "masked": "mask, masked_scores, 掩码, 掩码得分, 掩码后得分, 掩码后分数, 加掩码, 加掩码得分, 遮住后得分",
    "M": "mask, attention_mask, attn_mask, causal_mask, 掩码, 因果掩码, 遮罩",
    "row_max": "max, maximum, row_maximum, row_maxima, 最大值, 行最大值, 每行最大值",
    "shifted": "shifted_scores, minus_max, 减最大值, 减去最大值, 减去最大值后, 平移, 平移后得分",
    "exp": "exponential, exponentials, powers, powers_of_e, numerators, 指数, 幂, 分子",
    "row_sum": "sum, sums, row_sums, denominator, denominators, normaliser, normalizer, 行和, 每行和, 求和, 分母",
    "A": "P, weights, weight, attention_weights, attn_weights, attention, attn, attention_probs, attn_probs, probs,"
    " probabilities, attention_probabilities, softmax, 权重, 注意力权重, 注意力, 概率",
    "loss.P": "probabilities, probs, softmax, predictions, 概率, 预测概率",
    "O": "context, ctx, context_vectors, attention_output, attn_output, attn_out, 上下文, 上下文向量, 注意力输出",
    "Q": "query, queries, 查询, 查询向量",
    "K": "key, keys, 键, 键向量",
    "V": "value, values, 值, 值向量",
    "X": "embeddings, embedding, embedded_tokens, 词嵌入, 嵌入, 词向量",
    "E": "embedding_table, embedding_matrix, 嵌入表, 词表, 词嵌入表",
    "T": "ids, tokens, token_ids, 编号, 词元编号",
    "PE": "positions, positional_encoding, position_encodings, pos_emb, 位置编码",
    "angle": "angles, 角度",
    "concat": "concatenated, concatenated_heads, joined_heads, 拼接, 拼接后, 多头拼接",
    "output": "attention_output, attn_output, attn_out, projected_output, 注意力输出",
    "mean": "means, row_mean, 均值, 平均值",
    "centred": "centered, minus_mean, 去均值, 中心化, 减去均值",
    "variance": "var, variances, 方差",
    "std": "standard_deviation, sd, 标准差",
    "rms": "root_mean_square, 均方根",
    "normalised": "normalized, x_hat, 归一化, 标准化, 归一化后",
    "residual": "residual_sum, skip, 残差, 残差和",
    "hidden": "hidden_layer, pre_activation, 隐藏层, 隐层",
    "activated": "activation, activations, 激活, 激活后",
    "logits": "logit, 未归一化得分, 逻辑值",
    "picked": "picked_probabilities, 取出概率",
    "surprise": "surprises, negative_log, nll, 负对数, 惊讶度",
    "error": "errors, 误差",
    "L": "loss, 损失, 损失值",
    "weighted": "weighted_gradient, 加权梯度",
    "row_dot": "row_dots, 行点积",
    "deviation": "deviations, 偏差, 与平均差",
}
#: Words for the result of the whole calculation, whatever its id.
_RESULT = "output, out, outputs, result, results, 输出, 输出结果, 结果"
#: Words for parts of a model.
_PARTS: Mapping[str, str] = {"self": "自, 自注意力, self_attention", "cross": "交叉, 交叉注意力, cross_attention"}

_GREEK = {"μ": "mu", "σ": "sigma", "γ": "gamma", "β": "beta", "θ": "theta", "ε": "varepsilon", "η": "eta", "δ": "delta", "Δ": "Delta"}  # fmt: skip
_NOT_READ = re.compile(r"operatorname|mathbf|mathrm|text(?=\{)|[\s_\-{}\\$^.的]+|矩阵$|[Mm]atrix$")
_NUMBER = re.compile(r"(?:step|no\.?|#|第)?[\s_-]*([0-9]{1,4})\s*(?:步|\.)?", re.IGNORECASE)
#: dA, and d before an id as it is: dscores.
_D = re.compile(r"d(?P<of>.+)")
#: How a gradient is written: ∂L/∂A, dL/dA, dA, ∇A, grad A, A.grad, gradient of A, A 的梯度.
_GRADIENTS = (
    re.compile(r"(?:∂L/∂|dL/d|∂loss/∂|dloss/d)(?P<of>.+)", re.IGNORECASE),
    _D,
    re.compile(r"(?:∂|∇|G_|(?:gradients?|grad)(?:[\s_-]+of)?)[\s_-]*(?P<of>.+)", re.IGNORECASE),
    re.compile(r"(?:对|关于)?\s*(?P<of>.+?)(?:[\s_.]*(?:grad|gradient)|\s*的?\s*梯度)", re.IGNORECASE),
)
#: Characters of a name that is looked at: nobody calls a step by a longer one.
_LONGEST = 80
#: Names whose meaning is kept, and steps that an error lists.
_MOST_KEPT, _MOST_LISTED = 4096, 60

#: What a name may mean: the ids, in order, by ways of calling a step, the surest first.
IdsByWay: TypeAlias = dict[str, dict[int, dict[str, None]]]


class Names:
    """The names of one calculation's steps and inputs.

    Parameters
    ----------
    asked : ids that are asked for; of several a name may mean, it means the one that is asked for
    """

    def __init__(self, graph: Graph, asked: Collection[str] = ()) -> None:
        self.graph = graph
        self.asked = frozenset(asked)
        self._found: dict[str, tuple[str, ...]] = {}

    def find(self, name: str) -> str | None:
        """The id that a name means; None where it means none, or may mean several."""
        if name in self.graph:
            return name
        meant = self.meant(name)
        return meant[0] if len(meant) == 1 else None

    def resolve(self, name: str, what: Message | None = None) -> str:
        """The id that a name means.

        Parameters
        ----------
        what : what was to be named, for the error: “The step”
        """
        step_id = self.find(name)
        if step_id is None:
            raise self.complaint(name, what)
        return step_id

    def complaint(self, name: str, what: Message | None = None) -> InputError:
        """The error for a name that means no step, or several, with the steps that there are."""
        what = what or Message("The step")
        shown = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
        meant = self.meant(name)
        if meant:
            return InputError(
                "{what} “{word}” may mean {choices}. Write one of them.",
                what=what,
                word=shown,
                choices=Listed.first(meant, _MOST_LISTED),
            )
        return unknown(what, shown, [*self.graph.steps, *self.graph.inputs], _MOST_LISTED)

    def meant(self, name: str) -> tuple[str, ...]:
        """Every id that a name may mean, in the order of the calculation."""
        if name in self.graph:
            return (name,)
        found = self._found.get(name)
        if found is None:
            found = tuple(dict.fromkeys(self._meant(name.strip()))) if len(name) <= _LONGEST else ()
            asked = tuple(step_id for step_id in found if step_id in self.asked)
            found = asked if len(asked) == 1 else found
            if len(self._found) < _MOST_KEPT:
                self._found[name] = found
        return found

    def _meant(self, name: str) -> list[str]:
        if name in self.graph:
            return [name]
        key = _key(name)
        if not key or name.startswith("d_"):  # d_k is a width, and dK a gradient
            return []
        ways = self._symbols.get(_plain(name)) or self._written.get(key)
        return list(ways[min(ways)]) if ways else self._gradients(name) or self._numbered(name)

    @cached_property
    def _symbols(self) -> IdsByWay:
        """Ids by their symbols as they are, and those of gradients also as dA."""
        found: IdsByWay = {}
        for step_id in (*self.graph.steps, *self.graph.inputs):
            for symbol in self._symbols_of(step_id):
                found.setdefault(_plain(symbol), {}).setdefault(0, {})[step_id] = None
        return found

    @cached_property
    def _written(self) -> IdsByWay:
        """Ids by what else they may be called, in any case.

        The surest way is that of the id; then a word for it; a symbol; a word or a symbol behind the name of its part of
        the model, like “self weights” or “layer 2 ffn hidden”, the longest name of the part first.
        """
        graph = self.graph
        found: IdsByWay = {}
        for step_id in (*graph.steps, *graph.inputs):
            part, tail = part_of(step_id), step_id.rpartition(".")[2]
            said = [tail, *_split(WORDS.get(step_id, WORDS.get(tail, "")))]
            said += _split(_RESULT) if step_id == graph.output else []
            words, symbols = [*map(_key, said)], [*map(_key, self._symbols_of(step_id))]
            ways = [[_key(step_id)], words, symbols]
            parts = [part, *_split(_PARTS.get(part.rstrip("."), ""))] if part else []
            for before in sorted(map(_key, parts), key=len, reverse=True):
                ways += [[before + key for key in words], [before + key for key in symbols]]
            for way, keys in enumerate(ways):
                for key in keys:
                    found.setdefault(key, {}).setdefault(way, {})[step_id] = None
        return found

    def _symbols_of(self, step_id: str) -> Iterator[str]:
        symbol = self.graph.symbol(step_id)
        yield symbol
        if symbol.startswith("G_"):
            yield f"d{symbol[2:]}"

    def _gradients(self, name: str) -> list[str]:
        """Of a name for a gradient: the gradients of what it is the gradient of."""
        for form in _GRADIENTS:
            written = form.fullmatch(unicodedata.normalize("NFKC", name))
            if written is None:
                continue
            inner = written["of"].strip()
            of = [inner] if inner in self.graph else self._meant(inner) if form is not _D or inner[0].isupper() else []
            found = [gradient_id(step_id) for step_id in of if gradient_id(step_id) in self.graph]
            if found:
                return found
        return []

    def _numbered(self, name: str) -> list[str]:
        """The step of this number, as they are numbered on the screen."""
        written = _NUMBER.fullmatch(unicodedata.normalize("NFKC", name))
        steps = list(self.graph.steps)
        return [steps[int(written[1]) - 1]] if written and 0 < int(written[1]) <= len(steps) else []


def means_gradient(name: str) -> bool:
    """Whether this is how a gradient is written: G_A, dA, ∂L/∂A, A.grad."""
    tail = unicodedata.normalize("NFKC", name).strip().rpartition(".")[2]
    return (
        tail.startswith("G_")
        or re.fullmatch(r"d[A-Z]\w*", tail) is not None
        or any(form.fullmatch(name.strip()) for form in (_GRADIENTS[0], *_GRADIENTS[2:]))
    )


def _plain(text: str) -> str:
    """A symbol without the signs that only set it in type: A_{…}, W_Q and μ as A…, WQ and mu."""
    text = "".join(_GREEK.get(sign, sign) for sign in unicodedata.normalize("NFKC", text))
    return _NOT_READ.sub("", text)


def _key(text: str) -> str:
    """A name of which case and separators do not count."""
    return _plain(text).casefold()


def _split(words: str) -> list[str]:
    return [word for word in words.split(", ") if word]


def step_of(graph: Graph, step_id: str, *, has_gradient: bool) -> str:
    """The id of the step or input that is meant; a gradient without anything to start from is refused."""
    if not has_gradient and step_id not in graph and means_gradient(step_id):
        raise InputError(
            "{id} is a gradient, and gradients need something to start from: --upstream MATRIX or --loss TEXT,"
            ' like --loss "sum({output})".',
            id=step_id,
            output=graph.output,
        )
    return Names(graph).resolve(step_id)


def index_of(
    graph: Graph,
    step_id: str,
    places: Sequence[str],
    layout: str,
    names: Callable[[Axis], Sequence[str]],
    problem: str | None = None,
) -> Index:
    """The cell's index from 0, tokens as rows, after checking it against the shape.

    Parameters
    ----------
    names : the names of the lines of an axis
    problem : the problem as it was named, for the command in a message
    """
    axes = graph.axes(step_id)
    as_columns = layout == "columns"
    shown = tuple([*axes[:-2], *reversed(axes[-2:])] if as_columns else axes)
    sizes = tuple(axis.size for axis in shown)
    if not places and set(sizes) <= {1}:
        return (0,) * len(sizes)
    none = _no_cell(step_id, places, sizes, problem)
    if len(places) != len(sizes):
        raise none
    index = tuple(
        _line(step_id, place, axis.size, names(axis), none) for place, axis in zip(places, shown, strict=True)
    )
    return (*index[:-2], *reversed(index[-2:])) if as_columns else index


def _line(step_id: str, place: str, size: int, names: Sequence[str], none: InputError) -> int:
    """The index from 0 that a number counted from 1, or the name of a row or column, stands for."""
    if place.isdecimal() and len(place) < 10:
        if not 1 <= int(place) <= size:
            raise none
        return int(place) - 1
    found = [i for i, name in enumerate(names) if name and place in (name, name.partition(" ")[2])]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            "“{place}” occurs several times in {id}: at {numbers}. Write the number.",
            place=place[:40],
            id=step_id,
            numbers=Listed([i + 1 for i in found]),
        )
    given = [name for name in names if name]
    if not given:
        raise none
    likely = closest(place, given)
    said = N_("“{place}” is neither a number nor a name there: {id} has {names}.")
    if likely is not None:
        said = N_("“{place}” is neither a number nor a name there: {id} has {names}. Did you mean “{likely}”?")
    raise InputError(said, place=place[:40], id=step_id, names=Listed.first(given, _MOST_NAMES), likely=likely)


#: Names of rows that an error lists.
_MOST_NAMES = 12


def _no_cell(step_id: str, places: Sequence[str], sizes: tuple[int, ...], problem: str | None) -> InputError:
    shape = show_shape(sizes)
    example = shlex.join(["attncli", "why", *filter(None, [problem]), step_id, *map(str, sizes)])
    if not places:
        return InputError(
            "Which number of {id}? It is {shape}, counted from 1. Write {example}.",
            id=step_id,
            shape=shape,
            example=example,
        )
    return InputError(
        "{id}[{cell}] does not exist: {id} is {shape}, counted from 1. Write {example}.",
        id=step_id,
        cell=",".join(places)[:40],
        shape=shape,
        example=example,
    )
