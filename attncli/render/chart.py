r"""Charts made of characters: numbers and a size in, lines of text out.

They need no colour and no cursor, so they stand in a pipe, a file or a live display alike. Where the encoding is not
Unicode everything is drawn in ASCII: a GBK terminal knows the blocks, but draws them two columns wide.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from attncli.core.record import Record
from attncli.core.report import Chart, Maps, Plot, Span, Spans
from attncli.locale.fit import columns, fitted, padded, wrap
from attncli.render.document import Said, Speaker
from attncli.render.text import figure, printable

#: What tells several lines of one plot apart, in their order; plain letters, so that every font has them.
MARKS = "*o+x"
#: A cell filled from below, from empty to full.
_FROM_BELOW = " ▁▂▃▄▅▆▇█"
_FROM_BELOW_ASCII = " .:#"
#: A cell filled from the left.
_FROM_LEFT = " ▏▎▍▌▋▊▉█"
_FROM_LEFT_ASCII = " #"
#: Shares of 1, from nothing to all.
_SHADES = " ░▒▓█"
_SHADES_ASCII = " .:+#"
#: A picture is not wider than this, however wide the screen.
WIDEST = 80
_HEIGHT = 11
#: Columns that a name beside a map may take.
_LONGEST_NAME, _SHORTEST_NAME = 10, 2
#: Between two names, or two signs of a scale.
_BETWEEN = "  "
#: A chart has room for itself beside the numbers of its axis.
_NARROWEST = 8


class Signs(Record):
    """The signs that an encoding has for frames and areas."""

    below: str
    left: str
    shades: str
    vertical: str
    tick: str
    corner: str
    horizontal: str
    dot: str


_UNICODE = Signs(_FROM_BELOW, _FROM_LEFT, _SHADES, "│", "┤", "└", "─", "·")
_ASCII = Signs(_FROM_BELOW_ASCII, _FROM_LEFT_ASCII, _SHADES_ASCII, "|", "+", "+", "-", ".")


def signs(encoding: str) -> Signs:
    """The signs for this encoding."""
    return _UNICODE if encoding.lower().startswith("utf") else _ASCII


class Bar(Record):
    """A bar from `start` to `stop`, with a name before it and a text after it."""

    name: str
    stop: float
    text: str = ""
    start: float = 0.0


class MarkedLine(Record):
    """A line of a plot: one number for every place on the x axis; where it is NaN there is a gap."""

    values: Sequence[float]
    mark: str = MARKS[0]


def curve(
    values: Sequence[float],
    width: int,
    height: int,
    *,
    encoding: str = "utf-8",
    low: float | None = None,
    high: float | None = None,
    ends: tuple[str, str] | None = None,
) -> list[str]:
    """A series as a filled curve, like the loss over the steps of a training.

    Parameters
    ----------
    values : any number of them; more than there are columns are averaged, fewer are joined by straight lines.
        NaN leaves a gap, ∞ fills its column.
    width, height : columns and lines of all of it, the axes included
    low, high : ends of the y axis; by default 0 (or the least number, if that is below 0) and the largest number
    ends : what stands under the first and the last value; by default 1 and their count
    """
    sign = signs(encoding)
    finite = [value for value in values if math.isfinite(value)]
    bottom = min(0.0, *finite, 0.0) if low is None else low
    top = max([*finite, bottom]) if high is None else high
    top = _above(top, bottom)
    lines = max(1, height - 2)
    names = _axis_names(lines, bottom, top)
    room = max(_NARROWEST, width - max(map(columns, names)) - 2)
    levels = len(sign.below) - 1
    heights = [_filled(value, bottom, top, lines * levels) for value in _spread(values, room)]
    body = [
        "".join(sign.below[min(levels, max(0, filled - row * levels))] for filled in heights).ljust(room)
        for row in reversed(range(lines))
    ]
    first, last = ends or ("1", str(len(values)))
    return _framed(body, names, first, last, sign)


def plot(
    lines: Sequence[MarkedLine],
    width: int,
    height: int,
    *,
    x: Sequence[float],
    log_x: bool = False,
    log_y: bool = False,
    low: float | None = None,
    high: float | None = None,
    encoding: str = "utf-8",
    ends: tuple[str, str] | None = None,
) -> list[str]:
    """Several lines over the same x axis: a mark at every number, dots in between.

    Parameters
    ----------
    x : places of the numbers, rising
    log_x, log_y : logarithmic axes; numbers that are not positive are left out there
    low, high : ends of the y axis; by default the least and the largest number
    """
    sign = signs(encoding)
    points = [
        [(_on(x_, log_x), _on(y, log_y)) for x_, y in zip(x, line.values, strict=True) if _has(x_, log_x, y, log_y)]
        for line in lines
    ]
    seen = [y for line in points for _, y in line] or [0.0]
    bottom = min(seen) if low is None else _on(low, log_y)
    top = max(seen) if high is None else _on(high, log_y)
    top = _above(top, bottom)
    rows = max(2, height - 2)
    names = _axis_names(rows, bottom, top, log=log_y)
    room = max(_NARROWEST, width - max(map(columns, names)) - 2)
    left, right = _on(x[0], log_x), _on(x[-1], log_x)
    grid = [[" "] * room for _ in range(rows)]
    places = [
        [(_place(a, left, right, room), _place(b, bottom, top, rows)) for a, b in line if bottom <= b <= top]
        for line in points
    ]
    for line in places:
        for one, other in pairwise(line):
            _dots(grid, one, other, sign.dot)
    for line, given in zip(reversed(places), reversed(lines), strict=True):  # the first line is never covered
        for column, row in line:
            grid[row][column] = given.mark
    first, last = ends or (figure(x[0]), figure(x[-1]))
    return _framed(["".join(row) for row in reversed(grid)], names, first, last, sign)


def bars(rows: Sequence[Bar], width: int, *, encoding: str = "utf-8", is_framed: bool = True) -> list[str]:
    """Bars side by side from the left, each on a line with its name before it and its text after it.

    All have the same scale, which reaches from the least start to the largest stop. A bar that is not empty shows,
    however short it is. Without a frame, names are numbers.
    """
    sign = signs(encoding)
    finite = [end for row in rows for end in (row.start, row.stop) if math.isfinite(end)] or [0.0]
    least, most = min(finite), max(finite)
    names = max((columns(row.name) for row in rows), default=0)
    texts = max((columns(row.text) for row in rows), default=0)
    room = max(1, min(width, WIDEST) - names - texts - 4 if is_framed else min(60, width - names - texts - 3))
    unit = most / room - least / room or 1.0
    lines = []
    for row in rows:
        bar = _bar(row.start / unit - least / unit, row.stop / unit - least / unit, room, sign)
        if is_framed:
            lines.append(f"{padded(row.name, names)} {sign.vertical}{bar} {row.text}".rstrip())
        else:
            lines.append(f"{row.name:>{names}}  {bar}{' ' * bool(bar)}{row.text}")
    return lines


def shades(
    values: Collection[Sequence[float]], names: Sequence[str], *, encoding: str = "utf-8", cell: int = 2
) -> list[str]:
    """A matrix of shares (0 to 1) as a map: the darker, the larger. Rows have names, columns their numbers."""
    sign = signs(encoding)
    wide = max(map(columns, names), default=0)
    count = max(map(len, values), default=0)
    header = "".join(f"{number % 10 ** (cell - 1):<{cell}}" for number in range(1, count + 1))
    lines = [f"{' ' * wide}  {header}".rstrip()]
    for name, row in zip(names, values, strict=True):
        body = "".join(_shade(value, sign) * cell for value in row)
        lines.append(f"{padded(name, wide)} {sign.vertical}{body}{sign.vertical}")
    return lines


def scale_of_shades(encoding: str = "utf-8") -> list[tuple[str, float, float]]:
    """Every sign of a map with the shares it stands for: from, and up to."""
    found = signs(encoding).shades
    edges = [0.0, *(_edge(i, len(found)) for i in range(1, len(found))), 1.0]
    return [(found[i], edges[i], edges[i + 1]) for i in range(len(found))]


#: A share below this is drawn as nothing.
_FAINT = 0.05


def _edge(i: int, count: int) -> float:
    return _FAINT if i == 1 else (i - 1) / (count - 1)


def _shade(value: float, sign: Signs) -> str:
    if math.isnan(value):
        return "?"
    count = len(sign.shades)
    return sign.shades[sum(value >= _edge(i, count) for i in range(1, count))]


def _spread(values: Sequence[float], room: int) -> Iterator[float]:
    """One number a column: means where there are more numbers than columns, points between two where there are fewer."""
    count = len(values)
    for column in range(room if count else 0):
        if count > room:
            yield _mean(values[column * count // room : (column + 1) * count // room])
            continue
        place = column * (count - 1) / max(1, room - 1)
        before = min(int(place), count - 1)
        after = min(before + 1, count - 1)
        share = place - before
        step = values[after] - values[before]
        yield values[before] + share * step if math.isfinite(step) else values[after if share > 0.5 else before]


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _filled(value: float, bottom: float, top: float, steps: int) -> int:
    """How many of `steps` a value fills; what is above the bottom shows, NaN does not."""
    if math.isnan(value) or value <= bottom:
        return 0
    return max(1, round(steps * _share(min(value, top), bottom, top)))


def _has(x: float, log_x: bool, y: float, log_y: bool) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)


def _on(value: float, log: bool) -> float:
    """A number's place on an axis."""
    return math.log(value) if log else float(value)


def _off(place: float) -> float:
    """The number at a place of a logarithmic axis; rounding may have carried it past the last float."""
    return math.exp(min(place, math.log(sys.float_info.max)))


def _place(value: float, low: float, high: float, cells: int) -> int:
    return round(_share(value, low, high) * (cells - 1)) if high > low else 0


def _share(value: float, low: float, high: float) -> float:
    """Where a value stands between two others, from 0 to 1; halved first, so that the differences stay finite."""
    return (value / 2 - low / 2) / (high / 2 - low / 2)


def _above(top: float, bottom: float) -> float:
    """The end of an axis, which is longer than nothing."""
    return top if top / 2 > bottom / 2 else bottom + max(1.0, abs(bottom))


def _dots(grid: list[list[str]], one: tuple[int, int], other: tuple[int, int], dot: str) -> None:
    """A straight dotted line between two places."""
    steps = max(abs(other[0] - one[0]), abs(other[1] - one[1]))
    for step in range(1, steps):
        column = round(one[0] + (other[0] - one[0]) * step / steps)
        row = round(one[1] + (other[1] - one[1]) * step / steps)
        grid[row][column] = dot


def _axis_names(lines: int, bottom: float, top: float, *, log: bool = False) -> list[str]:
    """What stands before every line from top to bottom: a number at both ends and, where there is room, in the middle."""
    at = {0: top, lines - 1: bottom}
    if lines >= 7 and lines % 2:
        at[lines // 2] = top / 2 + bottom / 2
    names = [figure(_off(at[i]) if log else at[i], 3) if i in at else "" for i in range(lines)]
    wide = max(map(columns, names))
    return [" " * (wide - columns(name)) + name for name in names]


def _framed(body: list[str], names: list[str], first: str, last: str, sign: Signs) -> list[str]:
    wide, room = columns(names[0]), max(map(len, body))
    lines = [
        f"{name} {sign.tick if name.strip() else sign.vertical}{line}".rstrip()
        for name, line in zip(names, body, strict=True)
    ]
    lines.append(f"{' ' * wide} {sign.corner}{sign.horizontal * room}")
    gap = max(1, room - columns(first) - columns(last))
    lines.append(f"{' ' * wide}  {first}{' ' * gap}{last}")
    return lines


def _bar(start: float, stop: float, room: int, sign: Signs) -> str:
    """A bar between two places of `room` cells; its end may fall inside a cell."""
    if math.isnan(start) or math.isnan(stop):
        return ""
    levels = len(sign.left) - 1
    start, stop = (min(max(end, 0.0), float(room)) for end in (start, stop))
    first = math.floor(start)
    filled = round(stop * levels) - first * levels
    if filled <= 0:
        filled = 1 if stop > start else 0
    whole, part = divmod(filled, levels)
    return " " * first + sign.left[-1] * whole + (sign.left[part] if part else "")


# The pictures of a report.


def drawn(part: Chart, say: Speaker, width: int, encoding: str) -> list[str]:
    """A picture in lines of at most `width` characters, whose signs the encoding has."""

    def fit(words: Said) -> str:
        return fitted(say(words), encoding)

    match part:
        case Plot():
            return _plot(part, fit, width, encoding)
        case Spans():
            return _spans(part, width, encoding)
        case Maps():
            return _maps(part, fit, width, encoding)


def _plot(part: Plot, say: Speaker, width: int, encoding: str) -> list[str]:
    marked = list(zip(MARKS[: len(part.trends)], part.trends, strict=True))  # one too many has no mark of its own
    names = wrap(_BETWEEN.join(f"{mark} {say(trend.name)}" for mark, trend in marked), width).split("\n")
    ends = f"{say(part.x_name)} = {figure(part.x[0])}", figure(part.x[-1])
    lines = [MarkedLine(trend.values, mark) for mark, trend in marked]
    return names + plot(
        lines, min(width, WIDEST), _HEIGHT, x=part.x, log_x=part.log_x, log_y=part.log_y, low=part.low, high=part.high,
        encoding=encoding, ends=ends,
    )  # fmt: skip


def _spans(part: Spans, width: int, encoding: str) -> list[str]:
    def bar(span: Span) -> Bar:
        text = fitted(f"{figure(span.start)} … {figure(span.stop)}", encoding)
        return Bar(span.name, span.stop, text, span.start)

    return bars(list(map(bar, part.spans)), width, encoding=encoding)


def _maps(part: Maps, say: Speaker, width: int, encoding: str) -> list[str]:
    """As many maps side by side as fit the width, each below its name."""
    most = max(_SHORTEST_NAME, min(_LONGEST_NAME, width - 2 * len(part.maps[0][1][0]) - 7))
    names = [f"{number} {shortened(name, most, encoding)}" for number, name in enumerate(part.names, start=1)]
    maps = [[say(name), *shades(values, names, encoding=encoding)] for name, values in part.maps]
    wide = max(columns(line) for lines in maps for line in lines)
    across = max(1, (width + 3) // (wide + 3))
    out = []
    for start in range(0, len(maps), across):
        out += [
            "   ".join(padded(text, wide) for text in line).rstrip()
            for line in zip(*maps[start : start + across], strict=True)
        ]
    steps = [f"{sign * 2} {figure(low)}–{figure(high)}" for sign, low, high in scale_of_shades(encoding)[1:]]
    return [*out, *wrap(fitted(_BETWEEN.join(steps), encoding), width).split("\n")]


def shortened(name: str, most: int, encoding: str) -> str:
    """A token that keeps its place beside a map or in a table."""
    text = fitted(printable(name[:100]), encoding)
    while columns(text) > most:
        text = text[:-1]
    return text
