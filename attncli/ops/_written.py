"""Numbers of a formula's own, as one writes them."""

from __future__ import annotations


def in_formula(value: float) -> str:
    r"""A number for the template of a formula: 0.1, 1e-08 as 10^{{-8}}, 2.5e-06 as 2.5 \cdot 10^{{-6}}."""
    digits, _, power = f"{value:g}".partition("e")
    if not power:
        return digits
    size = f"10^{{{{{int(power)}}}}}"
    return size if digits == "1" else rf"{digits} \cdot {size}"
