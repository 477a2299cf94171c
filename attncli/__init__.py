"""attncli: Transformer attention by hand, every step with its arithmetic.

    import attncli
    problem = attncli.problem(inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"})
    print(attncli.forward(problem))

Nothing heavy is imported before it is used, so that `attncli --version` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from attncli.api import (
        AttnError,
        InputError,
        LimitError,
        Problem,
        Run,
        ShapeError,
        backward,
        forward,
        load,
        mark,
        problem,
    )

__all__ = [
    "AttnError",
    "InputError",
    "LimitError",
    "Problem",
    "Run",
    "ShapeError",
    "backward",
    "forward",
    "load",
    "mark",
    "problem",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import importlib

        api = importlib.import_module("attncli.api")
        globals().update({public: getattr(api, public) for public in __all__})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
