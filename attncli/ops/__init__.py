"""The primitives, by subject, an operation beside its transpose.

An op knows its value, its formula, the arithmetic behind one of its cells, which axes its operands
share, and its backward rule, which is written with ops again.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from attncli.core.graph import Op


def registry() -> dict[str, Op]:
    """Every op there is, by its name."""
    modules = [
        import_module("attncli.core.gradient"),
        *(
            import_module(f"{__name__}.{subject}")
            for subject in sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
        ),
    ]
    return {op.name: op for module in modules for op in vars(module).values() if isinstance(op, Op)}
