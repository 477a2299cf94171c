"""The LaTeX fragment: complete, balanced, and safe for a document that loads amsmath."""

from __future__ import annotations

import re
from collections.abc import Callable

from rendering import written

from attncli.render.view import View

#: Every command the fragment may use; all are LaTeX's own or amsmath's.
KNOWN = frozenset(
    [
        "approx",
        "begin",
        "end",
        "section",
        "subsection",
        "paragraph",
        "noindent",
        "textbf",
        "texttt",
        "text",
        "item",
        "setlength",
        "itemsep",
        "quad",
        "hline",
        "left",
        "right",
        "frac",
        "tfrac",
        "sqrt",
        "times",
        "cdot",
        "odot",
        "sum",
        "max",
        "tanh",
        "top",
        "infty",
        "eta",
        "Delta",
        "sigma",
        "partial",
        "surd",
        "to",
        "leq",
        "geq",
        "Sigma",
        "varepsilon",
        "mathrm",
        "mathbf",
        "operatorname",
        "textbackslash",
        "textasciicircum",
        "textasciitilde",
        "textless",
        "textgreater",
        "textbar",
        "textdollar",
        "textquoteleft",
        "usepackage",
    ]
)


def test_fragment_is_balanced_and_uses_known_commands(shown: View) -> None:
    text = written("latex", shown)
    assert set(re.findall(r"\\([A-Za-z]+)", text)) <= KNOWN
    open_parts: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_parts.append(name)
        else:
            assert open_parts.pop() == name
    assert not open_parts
    assert len(re.findall(r"^\\\[$", text, re.MULTILINE)) == len(re.findall(r"^\\\]$", text, re.MULTILINE))
    # No empty line inside a display: LaTeX stops at one.
    assert all("\n\n" not in display for display in re.findall(r"\\\[\n(.*?)\n\\\]", text, re.DOTALL))
    bare = re.sub(r"\\[\\{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0


def test_no_matrix_has_more_columns_than_amsmath_takes(shown: View) -> None:
    text = written("latex", shown).replace(r"\&", "")
    for inside in re.findall(r"\\begin\{bmatrix\} (.*?) \\end\{bmatrix\}", text):
        assert all(row.count("&") < 10 for row in inside.split(r"\\"))
    for columns, inside in re.findall(r"\\begin\{array\}\{([r|]+)\}(.*?)\\end\{array\}", text, re.DOTALL):
        assert all(row.count("&") < columns.count("r") for row in inside.split(r"\\"))


def test_packages_are_named_on_top(seen: Callable[..., View]) -> None:
    first = written("latex", seen("plain")).splitlines()[:2]
    assert all(line.startswith("%") for line in first)
    assert "amsmath" in first[0] and "ctex" in first[1]


def test_hostile_names_are_text(seen: Callable[..., View]) -> None:
    text = written("latex", seen("hostile", expand=True))
    assert r"\input" not in text
    assert r"\textdollar{}x\textdollar{} \textbackslash{}input\{y\} 100\% \#1 \&amp; \textasciitilde{}" in text
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert r"\section*{\textless{}b\textgreater{}*Who*\textless{}/b\textgreater{} \# " in text


def test_chinese_names_stand_in_text(seen: Callable[..., View]) -> None:
    text = written("latex", seen("tokens", expand=True))
    maths = re.findall(r"\\\[\n(.*?)\n\\\]", text, re.DOTALL) + re.findall(r"(?<!\\)\$(.*?)\$", text)
    left = [re.sub(r"\\text\{[^{}]*\}", "", formula) for formula in maths]
    assert any("我" in formula for formula in maths)
    assert not any(re.search(r"[\u4e00-\u9fff]", formula) for formula in left)


def test_signs_that_pdflatex_lacks_are_maths(shown: View) -> None:
    text = written("latex", shown)
    assert not set("√∞−×·η⊙ΔσΣᵀ²→≤≥") & set(text)


def test_wide_matrix_is_cut_into_pages_not_digits(seen: Callable[..., View]) -> None:
    view = seen("wide")
    item = next(item for item in view.steps if item.id == "A")
    text = written("latex", view).partition(r"$A$")[2].partition(r"\paragraph")[0]
    assert "columns 1–" in text and "–24:" in text
    numbers = re.findall(r"\d\.\d{3}", text)
    assert sorted(numbers) == sorted(item.text(value) for value in item.values.ravel())


def test_every_head_is_there(seen: Callable[..., View]) -> None:
    text = written("latex", seen("heads"))
    with_heads = [item for item in (*seen("heads").inputs, *seen("heads").steps) if len(item.panels) == 2]
    assert text.count(r"\textbf{Head 2}") == len(with_heads) > 5
