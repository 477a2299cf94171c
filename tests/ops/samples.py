"""Every op with operands to try it on. An op without a sample fails test_ops.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from attncli import ops
from attncli.core.graph import Graph, Notes, Op
from attncli.core.matrix import as_matrix

#: Every op there is, by its name.
OPS: dict[str, Op] = {
    op.name: op
    for module in ("attncli.core.gradient", *(name for _, name, _ in iter_modules(ops.__path__, "attncli.ops.")))
    for op in vars(import_module(module)).values()
    if isinstance(op, Op)
}
INF = np.inf


@dataclass(frozen=True)
class Sample:
    """Operands by name, parameters, the operands that are constants, names of new axes, and notes for the formula."""

    operands: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    notes: Notes = field(default_factory=dict)

    def graph(self, name: str) -> Graph:
        """One step Y over the operands."""
        graph = Graph("sample")
        for id, values in self.operands.items():
            matrix = as_matrix(values)
            axes = [f"{id}{position}" for position in range(matrix.values.ndim)]
            graph.input(id, matrix, axes, differentiable=id not in self.constants, hidden=True)
        graph.output = graph.apply(OPS[name], "Y", *self.operands, axes=self.axes, notes=self.notes, **self.params)
        return graph


def some(*shape: int) -> np.ndarray:
    """Numbers without pattern and away from 0, the same for the same shape."""
    values = np.random.default_rng(sum(shape) + 10 * len(shape)).normal(size=shape)
    return np.round(values + np.sign(values) * 0.1, 3)


def positive(*shape: int) -> np.ndarray:
    return np.abs(some(*shape)) + 0.5


A, B, H = some(2, 3), some(3, 2).T, some(2, 2, 3)
MASK = np.array([[0.0, -INF, 0.5], [-1.0, 0.0, -INF]])
LOST = np.array([[1.0, -INF, 2.0], [-INF, -INF, -INF]])

SAMPLES: dict[str, list[Sample]] = {
    "activation": [
        *(Sample({"a": some(2, 3)}, {"kind": kind}) for kind in ("relu", "gelu", "gelu_tanh", "silu")),
        Sample({"a": H}, {"kind": "gelu"}),
    ],
    "activation_slope": [Sample({"a": A}, {"kind": kind}) for kind in ("relu", "gelu", "gelu_tanh", "silu")],
    "affine": [
        Sample({"a": A, "w": some(3, 4), "b": some(1, 4)}),
        Sample({"a": A, "w": some(4, 3), "b": some(1, 4)}, {"transpose_b": True}),
    ],
    "adam_update": [
        Sample(
            {"a": A, "m": B, "v": positive(2, 3)},
            {"eta": as_matrix(0.1), "eps": as_matrix(1e-8)},
        ),
    ],
    "add_positions": [Sample({"a": A, "p": B})],
    "average": [Sample({"a": some(3, 1)}, {"mean": True}), Sample({"a": some(3, 1)}, {"mean": False})],
    "batch_share": [Sample({"a": A}, {"count": 3})],
    "class_error": [
        Sample({"p": positive(2, 3), "y": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]}, {}),
        Sample({"p": positive(2, 3), "y": [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]}, {"some": True}, ("y",)),
    ],
    "moving_average": [
        Sample(
            {"m": A, "g": B},
            {"keep": as_matrix(0.9), "rest": as_matrix(0.1), "square": square},
            notes={"label": r"\beta_1"},
        )
        for square in (False, True)
    ],
    "negative_log": [Sample({"a": positive(3, 1)}), Sample({"a": positive(2, 3)})],
    "pick": [
        Sample({"p": positive(2, 3), "y": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]}, {"count": 2}),
        Sample({"p": positive(2, 3), "y": [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]}, {"count": 1}, ("y",)),
    ],
    "unbiased": [Sample({"a": A, "c": [[0.19]]})],
    "angle": [
        Sample(
            {},
            {"start": as_matrix(start), "count": 3, "base": as_matrix(base), "pairs": pairs, "width": 4}
            | {"exponents": exponents, "position_scale": as_matrix(scale)},
        )
        for start, base, pairs, exponents, scale in (
            (0.0, 10000.0, 2, "pairs", 1.0),
            (1.5, 7.0, 2, "pairs", 0.25),
            (0.0, 100.0, 4, "columns", 1.0),
            (2.0, 50.0, 2, "pairs-minus-one", 3.0),
        )
    ],
    "centre": [Sample({"a": A, "b": some(2, 1)}, {"column": True})],
    "column_sum": [Sample({"a": A}), Sample({"a": H})],
    "cosine": [Sample({"a": A}), Sample({"a": H})],
    "cap_slope": [Sample({"a": A}, {"cap": as_matrix(2.0)}), Sample({"a": H}, {"cap": as_matrix(0.5)})],
    "divide": [
        Sample({"a": A, "b": positive(2, 1)}),
        Sample({"a": H, "b": positive(2, 2, 1)}),
        Sample({"a": A * [[1], [0]], "b": [[2.0], [0.0]], "s": [[1.0, -INF, 0.0], [-INF] * 3]}, {}, ("b", "s")),
    ],
    "encode": [Sample({}, {"ids": np.array([0.0, 2.0]), "count": 2}, notes={"tokens": ("我", "你")})],
    "exp": [Sample({"a": A}), Sample({"a": H}), Sample({"a": LOST})],
    "join_columns": [
        Sample({"a": A, "b": some(2, 1)}, axes=("joined",)),
        Sample({"a": H, "b": some(2, 2, 4)}, axes=("joined",)),
    ],
    "join_rows": [
        Sample({"a": A, "b": some(1, 3)}, axes=("joined",)),
        Sample({"a": H, "b": some(2, 4, 3)}, axes=("joined",)),
    ],
    "look_up": [Sample({"a": some(4, 2), "T": [2.0, 0.0, 2.0]}, {}, ("T",))],
    "mask": [
        Sample({"a": A, "M": MASK}, constants=("M",)),
        Sample({"a": H, "M": MASK}, constants=("M",)),
    ],
    "logarithm": [Sample({"a": positive(3, 1)}), Sample({"a": positive(2, 3, 1)})],
    "add_eps": [Sample({"a": positive(3, 1)}, {"eps": as_matrix(0.25)})],
    "head_mean": [Sample({"a": H}), Sample({"a": some(3, 2, 4)})],
    "to_heads": [Sample({"a": A}, {"heads": 3})],
    "log_loss": [
        Sample({"a": positive(2, 3), "y": [[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]]}, {}, ("y",)),
        Sample({"a": positive(2, 3), "y": np.abs(B)}, {"rows": True}, ("y",)),
        Sample({"a": positive(2, 2, 3), "y": H}, {"ndim": 3}, ("y",)),
    ],
    "log_slope": [
        Sample({"a": positive(2, 3), "y": [[0.5, 0.0, 1.0], [0.0, -2.0, 0.0]]}, {}, ("y",)),
        Sample({"a": positive(2, 2, 3), "y": H}, {}, ("y",)),
    ],
    "mean_square": [Sample({"a": A}), Sample({"a": H}, {"ndim": 3})],
    "merge_heads": [Sample({"a": some(2, 4, 3)}, {"heads": 2, "width": 3}, axes=("joined",))],
    "multiply": [Sample({"a": A, "b": B}), Sample({"a": H, "b": some(2, 2, 3) * 2})],
    "identity": [Sample({"a": A}), Sample({"a": H})],
    "product": [
        Sample({"a": A, "b": some(3, 4)}),
        Sample({"a": A, "b": some(4, 3)}, {"transpose_b": True}),
        Sample({"a": some(3, 2), "b": some(3, 4)}, {"transpose_a": True}),
        Sample({"a": some(3, 2), "b": some(4, 3)}, {"transpose_a": True, "transpose_b": True}),
        Sample({"a": H, "b": some(2, 4, 3)}, {"transpose_b": True}),
        Sample({"a": H, "b": some(2, 3, 1)}),
    ],
    "root": [Sample({"a": positive(2, 1)}), Sample({"a": positive(2, 2, 1)})],
    "residual": [Sample({"a": A, "b": B})],
    "root_eps": [
        Sample({"a": positive(2, 1)}, {"eps": as_matrix(0.1)}),
        Sample({"a": positive(2, 2, 1)}, {"eps": as_matrix(0.0)}),
    ],
    "row_mean": [Sample({"a": A}), Sample({"a": H})],
    "row_mean_square": [Sample({"a": A}), Sample({"a": H})],
    "rotate": [
        Sample({"a": some(3, 4), "c": some(3, 2), "s": some(3, 2) / 2}, {"pairing": "adjacent"}, ("c", "s")),
        Sample(
            {"a": some(3, 4), "c": some(3, 2), "s": some(3, 2) / 2}, {"pairing": "half", "reverse": True}, ("c", "s")
        ),
        Sample({"a": some(2, 3, 5), "c": some(3, 2), "s": some(3, 2) / 2}, {"pairing": "half"}, ("c", "s")),
    ],
    "row_max": [Sample({"a": A}), Sample({"a": H}), Sample({"a": LOST})],
    "row_sum": [Sample({"a": A}), Sample({"a": H})],
    "scale": [
        Sample({"a": A}, {"root": as_matrix(2.0)}, notes={"label": "d_k"}),
        Sample({"a": A}, {"root": as_matrix(5.0)}, notes={"label": "d_{model}"}),
        Sample({"a": A}, {"factor": as_matrix(-0.25)}),
        Sample({"a": H}, {"factor": as_matrix(3.0)}, notes={"label": "s"}),
    ],
    "scale_shift": [
        Sample({"a": A, "g": some(1, 3), "b": some(1, 3) + 1}, {"gamma": True, "beta": True}),
        Sample({"a": A, "g": some(1, 3)}, {"gamma": True, "beta": False}),
        Sample({"a": A, "b": some(1, 3)}, {"gamma": False, "beta": True}),
    ],
    "scatter_add": [
        Sample({"a": some(3, 2), "T": [0.0, 2.0, 0.0]}, {"count": 4}, ("T",)),
    ],
    "repeat_kv": [Sample({"a": H}, {"group": 3, "heads": 6})],
    "share_mean": [Sample({"a": some(2, 1)}, {"width": 3}), Sample({"a": some(2, 2, 1)}, {"width": 4})],
    "share_square": [Sample({"a": A, "g": some(2, 1)})],
    "sine": [Sample({"a": A})],
    "sinusoid": [
        Sample({"a": some(3, 2)}, {"width": 4, "arrangement": "interleaved"}),
        Sample({"a": some(3, 2)}, {"width": 3, "arrangement": "concatenated"}),
        Sample({"a": some(3, 4)}, {"width": 4, "arrangement": "interleaved"}),
    ],
    "slice_columns": [
        Sample({"a": some(2, 4)}, {"start": 1, "length": 2}),
        Sample({"a": H}, {"start": 0, "length": 1}),
    ],
    "slice_rows": [Sample({"a": some(4, 2)}, {"start": 1, "length": 2}), Sample({"a": H}, {"start": 0, "length": 1})],
    "softcap": [Sample({"a": A}, {"cap": as_matrix(0.8)}), Sample({"a": H}, {"cap": as_matrix(30.0)})],
    "split_heads": [Sample({"a": some(4, 6)}, {"heads": 2, "width": 3}, axes=("head", "d_k"))],
    "broadcast": [Sample({"a": some(2, 1)}, {"width": 3}), Sample({"a": some(2, 2, 1)}, {"width": 4})],
    "standardise": [Sample({"a": A, "b": positive(2, 1)})],
    "subtract": [
        Sample({"a": A, "b": B}),
        Sample({"a": A, "b": some(2, 1)}, {"column": True}),
        Sample({"a": H, "b": some(2, 2, 1)}, {"column": True}),
        Sample({"a": LOST, "b": [[2.0], [-INF]]}, {"column": True}, ("b",)),
    ],
    "sum_kv_groups": [Sample({"a": some(4, 2, 3)}, {"group": 2, "heads": 2})],
    "sum_paths": [
        Sample({"a": A, "b": B}, {"count": 2}),
        Sample({"a": H, "b": 2 * H, "c": 1 - H}, {"count": 3}),
    ],
    "update": [Sample({"a": A, "b": B}, {"eta": as_matrix(0.1)})],
    "square_sum": [Sample({"a": A}), Sample({"a": H}, {"ndim": 3})],
    "weighted_total": [
        Sample(
            {"a": some(1, 1), "b": some(1, 2)[:, :1]},
            {"factors": (as_matrix(0.5), as_matrix(1.0))},
            notes={"written": ("0.5", "1")},
        ),
        Sample({"a": some(1, 1)}, {"factors": (as_matrix(-2.0),)}, notes={"written": ("-2",)}),
    ],
    "weighted_sum": [
        Sample({"a": A, "b": np.where(B > 0, B, 0)}, constants=("b",)),
        Sample({"a": H, "b": 1 - H}, {"ndim": 3}, ("b",)),
    ],
}
