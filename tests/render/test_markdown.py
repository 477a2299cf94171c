"""Markdown: complete, balanced, and nothing a name says becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from rendering import written

from attncli.render import markdown
from attncli.render.formula import as_latex
from attncli.render.view import View

BLOCK = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)


def blocks_of(text: str) -> list[str]:
    return BLOCK.findall(text)


def unbroken(text: str) -> str:
    """With the rows of a matrix on one line again."""
    return text.replace("\\\\\n", "\\\\ ")


def balanced(latex: str) -> bool:
    depth = 0
    for sign in re.sub(r"\\[{}\\]", "", latex):
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return False
    begins, ends = re.findall(r"\\begin\{(\w+)\}", latex), re.findall(r"\\end\{(\w+)\}", latex)
    return depth == 0 and sorted(begins) == sorted(ends) and latex.count(r"\left") == latex.count(r"\right")


def test_every_step_has_its_blocks(shown: View) -> None:
    text = written("markdown", shown)
    blocks = blocks_of(text)
    items = (*shown.inputs, *shown.steps)
    assert len(blocks) == sum(len(item.panels) for item in items)
    assert all(map(balanced, blocks))
    left = BLOCK.sub("", text)
    assert "$$" not in left
    assert all(line.count("$") % 2 == 0 for line in left.splitlines())
    for item in items:
        assert re.search(rf"^### \${re.escape(as_latex(item.symbol))}\$", text, re.MULTILINE)


def test_every_number_of_every_matrix_is_there(shown: View) -> None:
    blocks = iter(blocks_of(unbroken(written("markdown", shown))))
    for item in (*shown.inputs, *shown.steps):
        for block in item.panels:
            last = re.findall(r"(?:\\begin\{bmatrix\}|\\begin\{array\}\{r+\}) (.*?) \\end", next(blocks))[-1]
            rows = [row.split(" & ") for row in last.split(r" \\ ")]
            assert rows == [[item.latex(value) for value in row] for row in block.values]


def test_github_shows_it(shown: View) -> None:
    r"""GitHub takes a \\ away that is not the last thing on its line, and knows no \operatorname."""
    text = written("markdown", shown)
    assert re.search(r"\\\\[^\n]", "".join(blocks_of(text))) is None
    assert "operatorname" not in text


def test_formula_has_the_numbers_put_in(seen: Callable[..., View]) -> None:
    text = unbroken(written("markdown", seen("plain")))
    assert (
        r"S = Q K^{\top} = \begin{bmatrix} 1 & 2 \end{bmatrix} \begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}^{\top}"
        r" = \begin{bmatrix} 1 & 2 \end{bmatrix}"
    ) in text
    turned = unbroken(written("markdown", seen("plain", layout="columns")))
    assert (
        r"S = K^{\top} Q = \begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix}^{\top} \begin{bmatrix} 1 \\ 2 \end{bmatrix}"
        r" = \begin{bmatrix} 1 \\ 2 \end{bmatrix}"
    ) in turned


def test_heads_get_their_own_operands(seen: Callable[..., View]) -> None:
    section = unbroken(written("markdown", seen("heads"))).partition("`scores`")[2].partition("###  ")[0]
    second = section.partition("#### Head 2")[2]
    assert r"\begin{bmatrix} 1 & 0 \\ 2 & 1 \end{bmatrix} \begin{bmatrix} 1 & 1 \\ 0 & 1 \end{bmatrix}^{\top}" in second


def test_expand_lists_every_cell(seen: Callable[..., View]) -> None:
    text = written("markdown", seen("heads", expand=True))
    cells = sum(item.values.size for item in seen("heads").steps if item.step is not None)
    assert len(re.findall(r"^- \$.*\$$", text, re.MULTILINE)) == cells
    assert r"- $S_{1,1,2} = 1 \times 0 + 2 \times 1 = 2$" in text
    assert "- $" not in written("markdown", seen("heads"))


def test_names_are_in_a_table_and_stay_names(seen: Callable[..., View]) -> None:
    text = written("markdown", seen("hostile", expand=True))
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows[:6]}) == 1
    assert rows[0].startswith("| **它** |")
    assert "| **a\\|b\\*c_d\\`e\\`** |" in text
    outside = BLOCK.sub("", text)
    assert "<" not in outside and "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "&amp;amp;" in outside


def test_title_is_one_line_of_text(seen: Callable[..., View]) -> None:
    first = written("markdown", seen("hostile")).splitlines()[0]
    assert first == "# &lt;b&gt;\\*Who\\*&lt;/b&gt; # &#36;is&#36; “it” &amp; {why}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("W_Q and e^x", "W_Q and e^x"),
        ("_a_", "\\_a\\_"),
        ("# x", "\\# x"),
        ("- x", "\\- x"),
        ("1. x", "1\\. x"),
        ("[a](b)", "\\[a\\](b)"),
        ("a\\b", "a\\\\b"),
        ("~~a~~", "\\~\\~a\\~\\~"),
    ],
)
def test_escaping(text: str, expected: str) -> None:
    assert markdown.escaped(text) == expected


def test_verification_and_notes(seen: Callable[..., View]) -> None:
    text = written("markdown", seen("plain"))
    assert re.search(r"^\| \$G_Q\$ \| \d\.\de[-+]\d\d \| agrees \|$", text, re.MULTILINE)
    assert "- Result: O = " in text


def test_other_language(shown_zh: View) -> None:
    text = written("markdown", shown_zh)
    assert "## 中·Inputs" in text
    whys = [item.why for item in shown_zh.steps if item.why is not None]
    assert all(markdown.escaped(shown_zh.say(why)) in text for why in whys)


def test_wide_matrix_is_complete(seen: Callable[..., View]) -> None:
    view = seen("wide")
    block = next(item for item in view.steps if item.id == "A").panels[0]
    assert block.values.shape == (2, 24)
    found = [block for block in blocks_of(written("markdown", view)) if block.startswith(r"\begin{aligned}")]
    assert any("{" + "r" * 24 + "}" in text for text in found)
    assert np.isfinite(block.values).all()
