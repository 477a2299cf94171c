"""No verdict and no screen depends on how a sentence is worded: its kind decides."""

from __future__ import annotations

import ast
from pathlib import Path

import attncli

PACKAGE = Path(attncli.__file__).parent


def _reads_wording(node: ast.AST) -> bool:
    """x.template compared, searched, or asked how it begins or ends."""
    if isinstance(node, ast.Compare):
        return any(_is_template(side) for side in (node.left, *node.comparators))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_template(node.func.value)
    return isinstance(node, ast.Subscript) and _is_template(node.value)


def _is_template(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "template"


def test_nothing_decides_by_the_text_of_a_sentence() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _reads_wording(node) and hasattr(node, "lineno")
    ]
    assert found == []
