"""The primitives: one a file, found by listing this folder.

An op knows its value, its formula, the arithmetic behind one of its cells, which axes its operands
share, and its backward rule, which is written with ops again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attncli.core.graph import Op, Params
from attncli.terms import Term, cell


def names() -> list[str]:
    """The names of all ops: the files in this folder."""
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))


def get(name: str) -> Op:
    """The op of this name."""
    import importlib

    op: Op = importlib.import_module(f"{__name__}.{name}").OP
    return op


def fixed(formula: str) -> Callable[[Params, bool], str]:
    """A formula that depends neither on parameters nor on the layout."""
    return lambda params, columns: formula


def at(values: Mapping[str, Any], id: str, index: Sequence[int]) -> Term:
    """The cell of `id` at `index`, counted from the last axis; an axis of length 1 is spread."""
    shape = values[id].shape
    own = tuple(index)[len(index) - len(shape) :]
    return cell(id, tuple(0 if size == 1 else i for i, size in zip(own, shape, strict=True)))
