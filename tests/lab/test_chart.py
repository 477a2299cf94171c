"""Charts made of characters: what they draw, and that they keep to their size whatever they are given."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncli.core.message import Message, figure
from attncli.core.report import Plot, Span, Trend
from attncli.locale.fit import columns
from attncli.render.chart import bars, curve, plot, scale_of_shades, shades

ENCODINGS = ("utf-8", "ascii", "gbk")
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def test_a_falling_curve() -> None:
    assert curve([4, 3, 2, 1, 0], 11, 6, ("1", "5")) == [
        "4 ┤█▃",
        "  │██▇▂",
        "  │████▆▁",
        "0 ┤██████▅",
        "  └────────",
        "   1      5",
    ]
    assert curve([4, 3, 2, 1, 0], 11, 6, encoding="gbk")[:2] == ["4 +#.", "  |###."]


def test_figures() -> None:
    shown = {
        0.99171: "0.9917", 63.214: "63.21", 12.0: "12", 0.1: "0.1", 0.0625: "0.0625", 1.2e-5: "1.200e-05", 9.99996: "10.00",
        -17.328125: "-17.33", 0.0: "0", 65504.0: "65504", 3.4e38: "3.400e+38", math.inf: "∞", -math.inf: "−∞", math.nan: "NaN",
    }  # fmt: skip
    assert {value: figure(value) for value in shown} == shown
    assert figure(10**30) == "1" + "0" * 30


@given(value=st.floats(-1e307, 1e307))
def test_a_figure_is_right_to_its_digits(value: float) -> None:
    text = figure(value)
    assert math.isclose(float(text), value, rel_tol=6e-4, abs_tol=1e-320)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(values=st.lists(NUMBERS, max_size=300), width=st.integers(20, 120), height=st.integers(3, 20))
def test_a_curve_keeps_to_its_size(encoding: str, values: list[float], width: int, height: int) -> None:
    lines = curve(values, width, height, encoding=encoding)
    assert len(lines) == height
    for line in lines:
        assert columns(line) <= width
        line.replace("∞", "").encode("utf-8" if encoding == "utf-8" else "ascii")


@given(values=st.lists(st.floats(0, 1e6), min_size=2, max_size=300), width=st.integers(20, 120))
def test_a_curve_is_as_high_as_its_numbers(values: list[float], width: int) -> None:
    """Read back from the picture: where numbers fall, the blocks fall."""
    values = sorted(values, reverse=True)
    lines = [line[line.index("┤" if "┤" in line else "│") + 1 :] for line in curve(values, width, 10)[:-2]]
    room = max(map(len, lines))
    heights = [sum(" ▁▂▃▄▅▆▇█".index(line.ljust(room)[j]) for line in lines) for j in range(room)]
    assert heights == sorted(heights, reverse=True)
    if values[0] > 0:
        assert heights[0] > 0


def test_many_numbers_are_averaged_and_none_is_lost() -> None:
    spike = [0.0] * 975 + [1000.0] * 25
    lines = curve(spike, 30, 6)
    # The last of 24 columns stands for 42 of the numbers: 25000/42 = 595 of 1000, which is 2.38 of 4 lines.
    assert [line[-1] for line in lines[1:4]] == ["▃", "█", "█"]


def test_a_gap_where_there_is_no_number() -> None:
    lines = curve([1.0] * 4 + [math.nan] * 4, 11, 4)
    assert lines[0].rstrip().endswith("████")
    assert len(lines[0].rstrip()) < len(curve([1.0] * 8, 11, 4)[0])


def _plot(x: list[float], *lines: list[float], logs: tuple[bool, bool]) -> Plot:
    trends = tuple(Trend("", values) for values in lines)
    return Plot(Message("a title"), "x", x, trends, log_x=logs[0], log_y=logs[1])


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(
    data=st.data(), width=st.integers(20, 120), height=st.integers(4, 20), logs=st.tuples(st.booleans(), st.booleans())
)
def test_a_plot_keeps_to_its_size(
    encoding: str, data: st.DataObject, width: int, height: int, logs: tuple[bool, bool]
) -> None:
    x = sorted(data.draw(st.sets(st.floats(1e-3, 1e6), min_size=1, max_size=30)))
    drawn = plot(
        _plot(x, *(data.draw(st.lists(NUMBERS, min_size=len(x), max_size=len(x))) for _ in range(2)), logs=logs),
        width, height, ("a", "b"), encoding,
    )  # fmt: skip
    assert len(drawn) == height
    assert all(columns(line) <= width for line in drawn)


def test_a_plot_puts_marks_where_the_numbers_are() -> None:
    lines = plot(_plot([1, 2, 4], [1, 2, 4], [1, 1, 1], logs=(True, True)), 21, 7, ("1", "4"))
    assert lines[0].rstrip().endswith("*")
    assert lines[4].count("o") == 2  # at x = 1 the first line's mark stands above the second's
    assert lines[4][3] == "*"
    assert [line.index("*") for line in lines if "*" in line] == [20, 11, 3]


def test_bars() -> None:
    rows = [
        (Span("one", 0, 4), "4"),
        (Span("苹果", 0, 2), "2"),
        (Span("none", 0, 0), "0"),
        (Span("NaN", 0, math.nan), "NaN"),
    ]
    assert bars(rows, 24) == [
        "one  │█████████████ 4",
        "苹果 │██████▌ 2",
        "none │ 0",
        "NaN  │ NaN",
    ]
    assert bars(rows, 24, encoding="gbk")[1] == "苹果 |###### 2"


@given(ends=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8), width=st.integers(20, 120))
def test_bars_keep_to_their_size(ends: list[tuple[float, float]], width: int) -> None:
    lines = bars([(Span("苹果", start, stop), "12.3") for start, stop in ends], width)
    assert len(lines) == len(ends)
    assert all(columns(line) <= width for line in lines)


def test_bars_that_start_below_zero_share_one_scale() -> None:
    narrow, wide = bars([(Span("a", -1, 1), ""), (Span("b", -10, 10), "")], 25)
    assert narrow.count("█") == 2
    assert wide.count("█") == 20
    assert narrow.index("█") - 3 == 9


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_shades_and_their_scale(encoding: str) -> None:
    scale = scale_of_shades(encoding)
    assert scale[0][1] == 0.0
    assert scale[-1][2] == 1.0
    for (_, _, stop), (_, start, _) in itertools.pairwise(scale):
        assert stop == start
    for sign, low, high in scale:
        middle = (low + high) / 2
        assert shades([[low, middle]], ["a"], encoding=encoding)[1][3:7] == sign * 4
