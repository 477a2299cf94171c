r"""Signs for terminals that cannot show all of Unicode: ᵀ becomes ^T, √ becomes sqrt, only where it must."""

from __future__ import annotations

import re

#: 10⁻⁸ and 2.5 · 10⁻⁶, which are 1e-8 and 2.5e-6 where no small digits are.
_POWER = re.compile(r"(?:(\d+(?:\.\d+)?) · )?10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

#: A root of something without brackets: sqrtd_k could not be read.
_ROOT = re.compile(r"√([\w.]+'?)")

_PLAIN = {
    "γ": "gamma", "β": "beta", "μ": "mu", "α": "alpha", "λ": "lambda", "π": "pi", "θ": "theta", "φ": "phi", "ω": "omega", "ρ": "rho", "δ": "delta", "τ": "tau", "Φ": "Phi", "Θ": "Theta", "Π": "prod", "≈": "~=", "±": "+-",
    "ᵀ": "^T", "²": "^2", "−": "-", "∞": "inf", "√": "sqrt", "×": "*", "·": "*", "⊙": "(*)", "Σ": "sum", "η": "eta",
    "Δ": "Delta", "σ": "sigma", "∂": "d", "→": "->", "…": "...", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-",
    "✓": "ok", "✗": "x", "≤": "<=", "≥": ">=", "∛": "cbrt", "ε": "eps", "│": "|", "├": "|", "└": "`", "─": "-", "↑": "^",
    **{sign: f"_{i}" for i, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")}, **{sign: f"^{i}" for i, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    "，": ", ", "。": ". ", "；": "; ", "：": ": ", "（": " (", "）": ") ", "、": ", ", "\N{REPLACEMENT CHARACTER}": "?",
}  # fmt: skip


def fits(text: str, encoding: str) -> bool:
    """Whether every sign of the text exists in this encoding."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitted(text: str, encoding: str) -> str:
    """The text with every sign that the encoding lacks replaced by one that it has."""
    if encoding.startswith("utf") or fits(text, encoding):
        return text
    if not fits("⁻⁸", encoding):
        text = _POWER.sub(lambda found: f"{found[1] or 1}e-{found[2].translate(_DIGITS)}", text)
    if not fits("√", encoding):
        text = _ROOT.sub(r"√(\1)", text)
    return "".join(_fitted_sign(sign, encoding) for sign in text)


def _fitted_sign(sign: str, encoding: str) -> str:
    if fits(sign, encoding):
        return sign
    return _PLAIN.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii")
