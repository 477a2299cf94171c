r"""Exact numbers as text and LaTeX. Imported only when there are some, since it needs SymPy."""

from __future__ import annotations

from typing import Any

from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from attncli.arithmetic import Number


class _Text(StrPrinter):  # type: ignore[misc]  # SymPy has no types
    """√2/2, e^(√2/2), 1/(1 + e^2): the signs a person writes."""

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        base, power = expr.base, expr.exp
        if power == 1 / 2 or (power.is_Rational and power.p == 1 and power.q == 2):
            inside = self._print(base)
            return f"√{inside}" if base.is_Integer and base >= 0 else f"√({inside})"
        if power.is_Rational and power.p == -1 and power.q == 2:
            return f"1/{self._print(base**-power)}"
        return str(super()._print_Pow(expr, rational)).replace("**", "^")

    def _print_ExpBase(self, expr: Any) -> str:
        power = expr.args[0]
        text = self._print(power)
        return f"e^{text}" if power.is_Integer else f"e^({text})"

    _print_exp = _print_ExpBase

    def _print_Exp1(self, expr: Any) -> str:
        return "e"

    def _print_log(self, expr: Any) -> str:
        return f"ln({self._print(expr.args[0])})"

    def _print_Infinity(self, expr: Any) -> str:
        return "∞"

    def _print_NegativeInfinity(self, expr: Any) -> str:
        return "−∞"

    def _print_NaN(self, expr: Any) -> str:
        return "NaN"


class _Latex(LatexPrinter):  # type: ignore[misc]
    """SymPy's LaTeX, with ln for the natural logarithm and NaN for what has no value."""

    def _print_NaN(self, expr: Any) -> str:
        return r"\text{NaN}"


def exact_text(value: Number) -> str:
    """A SymPy number as one line of text."""
    return str(_Text({"order": "lex"}).doprint(value)).replace("*", "·")


def exact_latex(value: Number) -> str:
    r"""A SymPy number in LaTeX; GitHub shows no \operatorname."""
    return str(_Latex({"ln_notation": True}).doprint(value)).replace(r"\operatorname{", r"\mathrm{")
