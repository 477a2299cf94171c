r"""LaTeX formulas as lines of text: \frac{Q K^{\top}}{\sqrt{d_k}} becomes Q Kᵀ / √d_k.

Only the commands that ops and models use; a test lists every formula and finds none left over.
"""

from __future__ import annotations

import re

_SIGNS = {
    r"\cdot": "·", r"\times": "×", r"\odot": "⊙", r"\sum": "Σ", r"\max": "max", r"\tanh": "tanh", r"\eta": "η",
    r"\Delta": "Δ", r"\sigma": "σ", r"\partial": "∂", r"\infty": "∞", r"\top": "ᵀ", r"\,": "", r"\ ": " ", r"\\": ";",
    r"\sin": "sin", r"\ln": "ln ", r"\cos": "cos", r"\varepsilon": "ε", r"\mu": "μ", r"\theta": "θ", r"\tau": "τ", r"\gamma": "γ", r"\beta": "β",
    r"\pi": "π", r"\Phi": "Φ", r"\ldots": "…",
    r"\mathbf": "", r"\operatorname": "", r"\text": "", r"\quad": " ",
}  # fmt: skip
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)")


def latex_text(latex: str) -> str:
    """The formula on one line, in Unicode."""
    text, _ = _read(latex, 0)
    return re.sub(r"\s+", " ", text).strip()


def _read(latex: str, start: int, end: str = "") -> tuple[str, int]:
    """Text from `start` up to the closing sign, and the place after it."""
    out: list[str] = []
    i = start
    while i < len(latex):
        sign = latex[i]
        if sign == end:
            return "".join(out), i + 1
        if sign == "\\":
            found = _COMMAND.match(latex, i)
            assert found is not None
            piece, i = _command(found.group(), latex, found.end())
            out.append(piece)
        elif sign == "{":
            piece, i = _read(latex, i + 1, "}")
            out.append(piece)
        elif sign in "^_":
            piece, i = _argument(latex, i + 1)
            out.append(_script(sign, piece))
        else:
            out.append(sign)
            i += 1
    return "".join(out), i


def _argument(latex: str, i: int) -> tuple[str, int]:
    if i < len(latex) and latex[i] == "{":
        return _read(latex, i + 1, "}")
    if i < len(latex) and latex[i] == "\\":
        found = _COMMAND.match(latex, i)
        assert found is not None
        return _command(found.group(), latex, found.end())
    return latex[i : i + 1], i + 1


def _command(command: str, latex: str, i: int) -> tuple[str, int]:
    if command == r"\frac":
        above, i = _argument(latex, i)
        below, i = _argument(latex, i)
        return f"{_grouped(above)} / {_grouped(below)}", i
    if command == r"\sqrt":
        inside, i = _argument(latex, i)
        return f"√{inside}" if re.fullmatch(r"[\w.]+", inside) else f"√({inside})", i
    if command in (r"\begin", r"\end"):
        _, i = _argument(latex, i)
        return "[" if command == r"\begin" else "]", i
    if command not in _SIGNS:
        raise ValueError(f"formula {latex!r}: {command} has no text")
    return _SIGNS[command], i


def _grouped(text: str) -> str:
    return f"({text})" if re.search(r"[ +\-/]", text.strip()) and not _is_root(text) else text


def _is_root(text: str) -> bool:
    """Whether the whole text stands under one root."""
    return bool(re.fullmatch(r"√([\w.]+|\([^()]*\))", text))


def _script(sign: str, text: str) -> str:
    if sign == "_":
        return f"_{text}"
    if text in ("ᵀ", "2"):
        return {"ᵀ": "ᵀ", "2": "²"}[text]
    if re.fullmatch(r"-\d+", text):
        return text.translate(_RAISED)
    if text.startswith("(") and text.endswith(")"):
        return f" {text}"
    return f"^{text}" if re.fullmatch(r"[\w.]+", text) else f"^({text})"
