"""What people call the steps of a calculation: ids in any case, symbols, the field's words in both languages, numbers.

One place decides what a name means, for sheets, `--step`, `why` and everything else that takes a step. A name that may
mean several steps is never guessed at: the error lists them.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from attncli.core.axes import Axis, show_shape
from attncli.core.graph import Graph, part_of
from attncli.core.message import InputError, Listed, Message, closest, unknown
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
        self._levels: tuple[Mapping[str, list[str]], ...] = ()

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

        Raises
        ------
        InputError
            It means none, and the error lists the steps; or it may mean several, and the error lists those.
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
            found = self._asked_of(self._meant(name.strip())) if len(name) <= _LONGEST else ()
            if len(self._found) < _MOST_KEPT:
                self._found[name] = found
        return found

    def _asked_of(self, ids: Iterable[str]) -> tuple[str, ...]:
        every = tuple(dict.fromkeys(ids))
        asked = tuple(step_id for step_id in every if step_id in self.asked)
        return asked if len(asked) == 1 else every

    def _meant(self, name: str) -> list[str]:
        if name in self.graph:
            return [name]
        self._levels = self._levels or self._written_down()
        exact, key = _plain(name), _key(name)
        if not key or name.startswith("d_"):  # d_k is a width, and dK a gradient
            return []
        symbols, ids, words, folded = self._levels
        return (
            symbols.get(exact)
            or ids.get(key)
            or words.get(key)
            or folded.get(key)
            or list(self._in_part(key))
            or list(self._gradients(name))
            or self._numbered(name)
        )

    def _written_down(self) -> tuple[Mapping[str, list[str]], ...]:
        """Names by how surely they mean a step: symbols as they are, ids in any case, words, symbols in any case."""
        graph = self.graph
        symbols, ids, words, folded = (_IdsByWord() for _ in range(4))
        for step_id in (*graph.steps, *graph.inputs):
            symbol, tail = graph.symbol(step_id), step_id.rpartition(".")[2]
            for written in (symbol, f"d{symbol[2:]}") if symbol.startswith("G_") else (symbol,):
                symbols.add(_plain(written), step_id)
                folded.add(_key(written), step_id)
            ids.add(_key(step_id), step_id)
            for word in (tail, *_split(WORDS.get(step_id, WORDS.get(tail, "")))):
                words.add(_key(word), step_id)
        for word in _split(_RESULT):
            words.add(_key(word), graph.output)
        return symbols, ids, words, folded

    def _in_part(self, key: str) -> Iterator[str]:
        """Of a name that begins with a part of the model, like “self weights” or “layer 2 ffn hidden”."""
        graph = self.graph
        parts = {part_of(step_id) for step_id in (*graph.steps, *graph.inputs)} - {""}
        for part in sorted(parts, key=len, reverse=True):
            called = (_key(part), *(_key(word) for word in _split(_PARTS.get(part.rstrip("."), ""))))
            for word in sorted(called, key=len, reverse=True):
                rest = key.removeprefix(word)
                if rest and rest != key:
                    words, folded = self._levels[2], self._levels[3]
                    found = [
                        step_id for step_id in words.get(rest) or folded.get(rest) or () if part_of(step_id) == part
                    ]
                    if found:
                        yield from found
                        return

    def _gradients(self, name: str) -> Iterator[str]:
        """Of a name for a gradient: the gradients of what it is the gradient of."""
        from attncli.core.graph import gradient_id

        for form in _GRADIENTS:
            written = form.fullmatch(unicodedata.normalize("NFKC", name))
            if written is None:
                continue
            inner = written["of"].strip()
            of = [inner] if inner in self.graph else self._meant(inner) if form is not _D or inner[0].isupper() else []
            found = [gradient_id(step_id) for step_id in of if gradient_id(step_id) in self.graph]
            if found:
                yield from found
                return

    def _numbered(self, name: str) -> list[str]:
        """The step of this number, as they are numbered on the screen."""
        written = _NUMBER.fullmatch(unicodedata.normalize("NFKC", name))
        steps = list(self.graph.steps)
        return [steps[int(written[1]) - 1]] if written and 0 < int(written[1]) <= len(steps) else []


class _IdsByWord(dict[str, list[str]]):
    def add(self, key: str, step_id: str) -> None:
        ids = self.setdefault(key, [])
        if step_id not in ids:
            ids.append(step_id)


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
    """The id of the step or input that is meant.

    Raises
    ------
    InputError
        There is none.
    """
    if not has_gradient and step_id not in graph and means_gradient(step_id):
        raise InputError(
            "{id} is a gradient, and gradients need something to start from: --upstream MATRIX or --loss TEXT,"
            ' like --loss "sum({output})".',
            id=step_id,
            output=graph.output,
        )
    return named_step(graph, step_id)


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

    Raises
    ------
    InputError
        There is no such cell.
    """
    shape = graph.shape(step_id)
    turned = layout == "columns"
    axes = graph.axes(step_id)
    shown = tuple([*axes[:-2], *reversed(axes[-2:])] if turned else axes)
    if not places and all(size == 1 for size in shape):
        return (0,) * len(shape)
    none = _no_cell(step_id, places, tuple(axis.size for axis in shown), problem)
    if len(places) != len(shape):
        raise none
    index = tuple(
        _place(step_id, place, axis.size, names(axis), none) for place, axis in zip(places, shown, strict=True)
    )
    return (*index[:-2], *reversed(index[-2:])) if turned else index


def _place(step_id: str, place: str, size: int, called: Sequence[str], none: InputError) -> int:
    """The index from 0 that a number counted from 1, or the name of a row or column, stands for."""
    found = [i for i, name in enumerate(called) if name and place in (name, name.partition(" ")[2])]
    if place.isdecimal() and len(place) < 10:
        if not 1 <= int(place) <= size:
            raise none
        return int(place) - 1
    if len(found) == 1:
        return found[0]
    if found:
        numbers = Listed([i + 1 for i in found])
        raise InputError(
            "“{place}” occurs several times in {id}: at {numbers}. Write the number.",
            place=place[:40],
            id=step_id,
            numbers=numbers,
        )
    given = [name for name in called if name]
    if not given:
        raise none
    raise _no_name(step_id, place, given)


#: Names of rows that an error lists.
_MOST_NAMES = 12


def _no_name(step_id: str, place: str, given: Sequence[str]) -> InputError:
    names = Listed.first(given, _MOST_NAMES)
    likely = closest(place, list(given))
    if likely is None:
        return InputError(
            "“{place}” is neither a number nor a name there: {id} has {names}.",
            place=place[:40],
            id=step_id,
            names=names,
        )
    return InputError(
        "“{place}” is neither a number nor a name there: {id} has {names}. Did you mean “{likely}”?",
        place=place[:40],
        id=step_id,
        names=names,
        likely=likely,
    )


def _no_cell(step_id: str, places: Sequence[str], sizes: tuple[int, ...], problem: str | None) -> InputError:
    shape, example = (
        show_shape(sizes),
        shlex.join(["attncli", "why", *filter(None, [problem]), step_id, *map(str, sizes)]),
    )
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


def named_step(graph: Graph, name: str) -> str:
    """The step that a name means: its id, symbol, number, or a word for it.

    Raises
    ------
    InputError
        It means none or several; the steps are listed.
    """
    if name in graph:
        return name
    return Names(graph).resolve(name)
