"""What lies in a folder of the package, where a further file is a further thing: recipes, experiments, subjects of ops."""

from __future__ import annotations

from pathlib import Path


def names_beside(file: str, ending: str = ".py") -> list[str]:
    """The names of a module's neighbours, sorted; without those that begin with an underscore, which they share.

    Parameters
    ----------
    file : the module's own `__file__`
    """
    return sorted(one.stem for one in Path(file).parent.glob(f"*{ending}") if not one.stem.startswith("_"))
