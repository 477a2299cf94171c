"""The matrix parser: every notation agrees, what is written reads back, and no text does anything but fail in words."""

from __future__ import annotations

import numpy as np
import pytest
from harness import within
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attncli.core.matrix import EXACT, Matrix
from attncli.core.message import InputError
from attncli.problems.matrix_text import parse_matrix, parse_number, write_matrix
from attncli.problems.source import matrix_of

FUZZ = settings(max_examples=300, deadline=None, derandomize=True, database=None)
NUMBERS = st.floats(allow_nan=False)
MATRICES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=4), elements=NUMBERS)

#: Pieces of every notation, and of what does not belong.
PIECES = st.sampled_from(
    [
        *"0123456789+-*/^().,;|[]{}&\\ \n\t?_e√∞−，；：（）－１．　|", "1e5", "1e400", "-inf", "nan", "sqrt(", "exp(", "1/3", "√2",
        "\\frac{1}{2}", "\\frac", "\\sqrt{2}", "\\begin{bmatrix}", "\\end{bmatrix}", "\\begin{array}{cc}", "\\end{array}",
        "\\\\", "\\\\[2pt]", "\\infty", "\\left[", "\\right]", "$", "[[", "]]", "9^9^9", "__import__('os')", "lambda", "\x00", "\x1b[31m",
        "\ud800", "🙂", "#", '"', "'", "=", "@", "\r\n", "0x1", "1_0", "1j", "True", "None",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=30).map("".join))


def check_fuzz(text: str, *, blanks: bool) -> None:
    try:
        with within(20):
            matrix = parse_matrix(text, blanks=blanks)
    except InputError as error:
        said = str(error)
        assert 10 < len(said) < 500
    else:
        blank = np.zeros(matrix.shape, np.bool_) if matrix.blank is None else matrix.blank
        assert matrix.values.dtype == np.float64
        assert matrix.values.ndim in (2, 3)
        assert matrix.values.size
        assert np.array_equal(np.isnan(matrix.values), blank)
        assert blanks or not blank.any()
        assert matrix.decimals is not None and matrix.decimals.shape == matrix.shape
        assert matrix.entries is not None and len(matrix.entries) == matrix.values.size


@FUZZ
@given(TEXTS, st.booleans())
@example("(" * 100_000, False)
@example("[" * 100_000, False)
@example("-" * 100_000, False)
@example("- " * 50_000, False)
@example("1;" * 50_000, False)
@example("-1 " * 50_000, False)
@example("(" + ",1" * 50_000, False)
@example("\\\\[" * 30_000, False)
@example("\\frac{" * 30_000, False)
@example("\\begin{array}{" * 20_000, False)
@example("[1]," * 30_000, False)
@example("2^" * 49 + "2", False)
def test_any_text_is_a_matrix_or_an_error_in_words(text: str, blanks: bool) -> None:
    check_fuzz(text, blanks=blanks)


@FUZZ
@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)), lambda inner: st.lists(inner, max_size=4), max_leaves=12))  # fmt: skip
@example([[10**5000, 1]])
@example([[[[1]]]])
@example([[True]])
def test_any_nested_list_is_a_matrix_or_an_error_in_words(value: object) -> None:
    try:
        matrix = matrix_of(value)
    except InputError as error:
        assert len(str(error)) < 500
    else:
        assert matrix.values.ndim in (2, 3)
        assert not np.isnan(matrix.values).any()


@FUZZ
@given(MATRICES)
def test_written_matrices_read_back_exactly(values: np.ndarray) -> None:
    read = parse_matrix(write_matrix(values)).values
    assert read.shape == values.shape
    assert np.array_equal(read, values)


@FUZZ
@given(MATRICES)
def test_lists_and_arrays_read_the_same(values: np.ndarray) -> None:
    assert np.array_equal(matrix_of(values.tolist()).values, values)
    assert np.array_equal(matrix_of(values).values, values)


def notations(values: np.ndarray) -> dict[str, str]:
    """One 2-D matrix in every notation of FORMATS."""
    rows = [[repr(float(value)) for value in row] for row in values]
    latex = r" \\ ".join(" & ".join(row).replace("inf", r"\infty") for row in rows)
    plain = "; ".join(" ".join(row) for row in rows)
    bracketed = "[" + ", ".join("[" + ", ".join(row) + "]" for row in rows) + "]"
    wide = {ord(sign): chr(ord(sign) + 0xFEE0) for sign in "0123456789.-,;[]"} | {ord(" "): "　"}
    with np.printoptions(threshold=10**6, linewidth=10**6, floatmode="unique"):
        printed = str(values)
    return {
        "rows": plain,
        "commas": "; ".join(", ".join(row) for row in rows),
        "lines": "\n".join(" ".join(row) for row in rows) + "\n",
        "lines of Windows": "\r\n".join(",".join(row) for row in rows) + "\r\n",
        "tabs": "\n".join("\t".join(row) for row in rows),
        "trailing semicolon": plain + ";",
        "blank lines": "\n\n".join(" ".join(row) for row in rows),
        "brackets": bracketed,
        "brackets on lines": bracketed.replace("],", "],\n"),
        "trailing commas": bracketed.replace("]", ",]"),
        "a trailing comma": bracketed + ",",
        "MATLAB": "[" + plain + "]",
        "MATLAB with commas": "[" + "; ".join(", ".join(row) for row in rows) + "]",
        "NumPy print": printed,
        "bmatrix": rf"\begin{{bmatrix}} {latex} \end{{bmatrix}}",
        "pmatrix": rf"$\begin{{pmatrix}} {latex} \\ \end{{pmatrix}}$",
        "array": rf"\left[\begin{{array}}{{cc}} {latex} \end{{array}}\right]",
        "display": "\\[\n\\begin{Bmatrix}\n" + latex.replace(r"\\", "\\\\[2pt]\n") + "\n\\end{Bmatrix}\n\\]",
        "true minus": plain.replace("-", "−").replace("inf", "∞"),
        "full width": "; ".join(", ".join(row) for row in rows).translate(wide),
        "Chinese brackets": bracketed.replace("[", "【").replace("]", "】").replace(",", "，"),
    }


@settings(FUZZ, max_examples=60)
@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=NUMBERS))
@example(np.array([[1.0, -2.5], [-np.inf, 1e-300]]))
@example(np.array([[1.0]]))
def test_all_notations_agree(values: np.ndarray) -> None:
    for name, text in notations(values).items():
        read = parse_matrix(text)
        assert read.shape == values.shape, (name, text)
        assert np.array_equal(read.values, values), (name, text)


@pytest.mark.parametrize(
    "text",
    [
        "1 2; 3 4 | 5 6; 7 8",
        "1 2\n3 4\n|\n5 6\n7 8\n",
        "[1 2; 3 4 | 5 6; 7 8]",
        "[[[1,2],[3,4]],[[5,6],[7,8]]]",
        "[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]",
        "1，2；3，4｜5，6；7，8",
        "[[1,2],[3,4]] | [[5,6],[7,8]]",
    ],
)
def test_heads(text: str) -> None:
    assert parse_matrix(text).values.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0.5", -0.5), (".5", 0.5), ("5.", 5), ("+2", 2), ("1e-3", 1e-3), ("1E3", 1e3), ("1/3", 1 / 3), ("sqrt(2)/2", 2**0.5 / 2),
        ("√2", 2**0.5), ("√(2+2)", 2), ("2√2", 2 * 2**0.5), ("e^-1", np.exp(-1)), ("3e^-1", 3 * np.exp(-1)), ("exp(-1)", np.exp(-1)),
        ("inf", np.inf), ("-inf", -np.inf), ("-∞", -np.inf), ("−∞", -np.inf), ("2^3^2", 512), ("-2^2", -4), ("(-2)^2", 4), ("2^-1", 0.5),
        ("1 - 2", -1), ("1 / 3", 1 / 3), ("(1 + 2) * 3", 9), ("2×3", 6), ("6÷3", 2), ("2·3", 6), ("（1＋2）／3", 1), ("－1．5", -1.5),
        (r"\frac{1}{3}", 1 / 3), (r"\dfrac{\sqrt{2}}{2}", 2**0.5 / 2), (r"\frac{1}{1+\frac{1}{2}}", 1 / 1.5), (r"\sqrt2", 2**0.5),
        (r"\frac{1}{2}\sqrt{2}", 2**0.5 / 2), (r"-\sqrt{\frac{1}{4}}", -0.5), ("(1/2)√2", 2**0.5 / 2), ("1{,}5", 1.5),
        (r"e^{-1}", np.exp(-1)), (r"2 \cdot 3", 6), (r"-\infty", -np.inf), (r"\exp(1)", np.e), ("0" * 500 + "1", 1),
    ],
)  # fmt: skip
def test_entries(text: str, value: float) -> None:
    assert float(parse_matrix(text).values[0, 0]) == pytest.approx(value, rel=1e-15)
    assert parse_matrix(text).shape == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        r"$$\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}$$", r"\[\begin{pmatrix} 1 & 2 \\[2pt] 3 & 4 \end{pmatrix}\]",
        r"\(\begin{smallmatrix} 1 & 2 \\ 3 & 4 \end{smallmatrix}\)", r"\left( 1 & 2 \\ 3 & 4 \right)", r"1 & 2 \\ 3 & 4 \\",
        r"\left[\begin{array}{c|c} 1 \quad & 2 \\ 3 & 4 \end{array}\right]", "1 & 2 ; 3 & 4", r"$1$ & $2$ \\ $3$ & $4$",
    ],
)  # fmt: skip
def test_latex_around_a_matrix(text: str) -> None:
    assert parse_matrix(text).values.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "text",
    [
        "(1, 2; 3, 4)", "（1，2；3，4）", "((1,2),(3,4))", "((1 2) (3 4))", "(1 2); (3 4)", "(1, 2)\n(3, 4)", "[(1,2),(3,4)]",
        "((1, 2), (6/(1 + 1), √(4·4)))", "(1 2\n3 4)",
    ],
)  # fmt: skip
def test_round_brackets_enclose_lists_too(text: str) -> None:
    assert parse_matrix(text).values.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "values"), [("(1/2) (3/4)", [0.5, 0.75]), ("(1+2)/3 (4)", [1, 4]), ("√(1) -(1+1)", [1, -2])]
)
def test_round_brackets_around_numbers_stay_arithmetic(text: str, values: list[float]) -> None:
    assert parse_matrix(text).values.tolist() == [values]


@pytest.mark.parametrize("text", ["2(3,4)", "(1,2)3", "-(1, 2)", "(1, 2"])
def test_a_list_is_no_factor(text: str) -> None:
    with pytest.raises(InputError, match="is not a number"):
        parse_matrix(text)


@pytest.mark.parametrize("text", [r"\frac12", r"\tfrac12", r"\dfrac 1 2", r"\frac1{2}", r"\frac{1}2", r"\frac{1}{2}"])
def test_a_digit_needs_no_braces_in_tex(text: str) -> None:
    assert parse_matrix(text).values.tolist() == [[0.5]]
    inside = rf"\begin{{bmatrix}}{text}&-{text}\\3&4\end{{bmatrix}}"
    assert parse_matrix(inside).values.tolist() == [[0.5, -0.5], [3, 4]]


@pytest.mark.parametrize("command", ["hline", "cline{1-2}"])
def test_lines_of_a_table_are_refused(command: str) -> None:
    with pytest.raises(InputError, match="draws a line, and a matrix of numbers has none"):
        parse_matrix(rf"\begin{{array}}{{cc}} a & b \\ \{command} 1 & 2 \end{{array}}")


def test_a_comma_is_never_guessed_to_be_a_decimal_comma() -> None:
    assert parse_matrix("1,2").values.tolist() == [[1, 2]]
    assert parse_matrix("0,330 0,670").values.tolist() == [[0, 330, 0, 670]]
    assert parse_matrix("1,5; 2,5").values.tolist() == [[1, 5], [2, 5]]
    assert parse_matrix("1{,}5 & 2{,}5").values.tolist() == [[1.5, 2.5]]


def test_spaces_and_signs_part_entries_as_people_mean_them() -> None:
    assert parse_matrix("1 -2").values.tolist() == [[1, -2]]
    assert parse_matrix("1 - 2").values.tolist() == [[-1]]
    assert parse_matrix("1, -2").values.tolist() == [[1, -2]]
    assert parse_matrix("-1 -2 +3").values.tolist() == [[-1, -2, 3]]
    assert parse_matrix("1/2 1 / 2").values.tolist() == [[0.5, 0.5]]
    assert parse_matrix("2 √4 (1+1) 3").values.tolist() == [[2, 2, 2, 3]]
    assert parse_matrix("[1, 2]").shape == parse_matrix("1 2").shape == (1, 2)
    assert parse_matrix("[[1], [2]]").shape == parse_matrix("1; 2").shape == (2, 1)


@FUZZ
@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000), st.integers(0, 4))
def test_written_decimals_are_kept(number: object, places: int) -> None:
    text = f"{number:.{places}f}"
    matrix = parse_matrix(f"{text} 1/3; √2 -inf")
    assert matrix.decimals is not None
    assert matrix.decimals.tolist() == [[places, EXACT], [EXACT, EXACT]]


def test_decimals_of_other_notations() -> None:
    for text in (
        "0.50 1e-3 5. .25",
        "[0.50, 1e-3, 5., .25]",
        r"\begin{bmatrix}0.50 & 1e-3 & 5. & .25\end{bmatrix}",
        "０．５０，1e-3，5．，．25",
    ):
        decimals = parse_matrix(text).decimals
        assert decimals is not None and decimals.tolist() == [[2, 3, 0, 2]], text


def test_blanks_only_where_they_are_allowed() -> None:
    matrix = parse_matrix("1 ?; _ ？", blanks=True)
    assert matrix.blank is not None and matrix.blank.tolist() == [[False, True], [True, True]]
    with pytest.raises(InputError, match="only an answer may have"):
        parse_matrix("1 ?")


@FUZZ
@given(st.text(max_size=20))
def test_a_single_number_is_one_or_an_error(text: str) -> None:
    try:
        value, _, _ = parse_number(text)
    except InputError:
        return
    assert not np.isnan(value)


def test_matrices_pass_unchanged() -> None:
    matrix = Matrix(np.eye(2))
    assert matrix_of(matrix) is matrix
