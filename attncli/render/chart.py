r"""Charts made of characters: numbers and a size in, lines of text out; and progress while one waits for them.

Charts need no colour and no cursor, so they stand in a pipe, a file or a live display alike. Where the encoding is not
Unicode everything is drawn in ASCII: a GBK terminal knows the blocks, but draws them two columns wide.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TextIO, TypeVar

from attncli.core.message import Language, Message, figure
from attncli.core.record import Record
from attncli.core.report import Chart, Maps, Plot, Span, Spans
from attncli.locale.fit import columns, fitted, padded, wrap
from attncli.render.document import Said, Speaker
from attncli.render.text import shortened

#: What tells several lines of one plot apart, in their order; plain letters, so that every font has them.
MARKS = "*o+x"
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
    """The signs that an encoding has for frames and areas.

    Parameters
    ----------
    below, left : a cell filled from below, from the left; from empty to full
    shades : shares of 1, from nothing to all
    """

    below: str
    left: str
    shades: str
    vertical: str
    tick: str
    corner: str
    horizontal: str
    dot: str


_UNICODE = Signs(" ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█", " ░▒▓█", "│", "┤", "└", "─", "·")
_ASCII = Signs(" .:#", " #", " .:+#", "|", "+", "+", "-", ".")


def _signs(encoding: str) -> Signs:
    return _UNICODE if encoding.lower().startswith("utf") else _ASCII


def drawn(part: Chart, say: Speaker, width: int, encoding: str) -> list[str]:
    """A picture in lines of at most `width` characters, whose signs the encoding has."""

    def fit(words: Said) -> str:
        return fitted(say(words), encoding)

    match part:
        case Plot():
            marked = zip(MARKS[: len(part.trends)], part.trends, strict=True)  # one too many has no mark of its own
            names = [f"{mark} {fit(trend.name)}" for mark, trend in marked]
            ends = f"{fit(part.x_name)} = {figure(part.x[0])}", figure(part.x[-1])
            lines = plot(part, min(width, WIDEST), _HEIGHT, ends, encoding)
            return [*wrap(_BETWEEN.join(names), width).split("\n"), *lines]
        case Spans():
            rows = [(span, fit(f"{figure(span.start)} … {figure(span.stop)}")) for span in part.spans]
            return bars(rows, width, encoding)
        case Maps():
            return _maps(part, fit, width, encoding)


def _maps(part: Maps, say: Speaker, width: int, encoding: str) -> list[str]:
    """As many maps side by side as fit the width, each below its name."""
    most = max(_SHORTEST_NAME, min(_LONGEST_NAME, width - 2 * len(part.maps[0][1][0]) - 7))
    names = [f"{number} {shortened(name, most, encoding)}" for number, name in enumerate(part.names, start=1)]
    maps = [[say(name), *shades(values, names, encoding)] for name, values in part.maps]
    wide = max(columns(line) for lines in maps for line in lines)
    across = max(1, (width + 3) // (wide + 3))
    out = []
    for start in range(0, len(maps), across):
        beside = zip(*maps[start : start + across], strict=True)
        out += ["   ".join(padded(text, wide) for text in line).rstrip() for line in beside]
    steps = [f"{sign * 2} {figure(low)}–{figure(high)}" for sign, low, high in scale_of_shades(encoding)[1:]]
    return [*out, *wrap(fitted(_BETWEEN.join(steps), encoding), width).split("\n")]


def plot(part: Plot, width: int, height: int, ends: tuple[str, str], encoding: str = "utf-8") -> list[str]:
    """Several lines over the same x axis: a mark at every number, dots in between; what no axis has a place for is left out.

    Parameters
    ----------
    width, height : columns and lines of all of it, the axes included
    ends : what stands under the first and the last place of the x axis
    """
    sign = _signs(encoding)
    across = [_on(x, part.log_x) for x in part.x]
    lines = []
    for trend in part.trends:
        points = zip(across, (_on(value, part.log_y) for value in trend.values), strict=True)
        lines.append([point for point in points if all(map(math.isfinite, point))])
    seen = [y for line in lines for _, y in line] or [0.0]
    bottom = min(seen) if part.low is None else _on(part.low, part.log_y)
    top = _above(max(seen) if part.high is None else _on(part.high, part.log_y), bottom)
    rows = max(2, height - 2)
    names = _axis_names(rows, bottom, top, log=part.log_y)
    room = _room(names, width)
    grid = [[" "] * room for _ in range(rows)]
    places = [
        [(_place(x, across[0], across[-1], room), _place(y, bottom, top, rows)) for x, y in line if bottom <= y <= top]
        for line in lines
    ]
    for line in places:
        for one, other in pairwise(line):
            _dots(grid, one, other, sign.dot)
    for mark, line in reversed(list(zip(MARKS, places, strict=False))):  # the first line is never covered
        for column, row in line:
            grid[row][column] = mark
    return _framed(["".join(row) for row in reversed(grid)], names, ends, sign)


def curve(
    values: Sequence[float], width: int, height: int, ends: tuple[str, str] = ("", ""), encoding: str = "utf-8"
) -> list[str]:
    """A series as a filled curve from 0 up, like the loss over the steps of a training.

    Parameters
    ----------
    values : any number of them; more than there are columns are averaged, fewer are joined by straight lines.
        NaN leaves a gap, ∞ fills its column.
    width, height : columns and lines of all of it, the axes included
    ends : what stands under the first and the last value
    """
    sign = _signs(encoding)
    finite = list(filter(math.isfinite, values))
    bottom = min([0.0, *finite])
    top = _above(max([bottom, *finite]), bottom)
    lines = max(1, height - 2)
    names = _axis_names(lines, bottom, top)
    room = _room(names, width)
    levels = len(sign.below) - 1
    heights = [_filled(value, bottom, top, lines * levels) for value in _spread(values, room)]
    body = [
        "".join(sign.below[min(levels, max(0, filled - row * levels))] for filled in heights).ljust(room)
        for row in reversed(range(lines))
    ]
    return _framed(body, names, ends, sign)


def bars(rows: Sequence[tuple[Span, str]], width: int, encoding: str = "utf-8", *, is_framed: bool = True) -> list[str]:
    """Bars side by side from the left, each on a line with its name before it and a text after it.

    All have the same scale, which reaches from the least start to the largest stop. A bar that is not empty shows,
    however short it is. Without a frame, names are numbers.
    """
    sign = _signs(encoding)
    finite = [end for span, _ in rows for end in (span.start, span.stop) if math.isfinite(end)] or [0.0]
    least, most = min(finite), max(finite)
    names = max((columns(span.name) for span, _ in rows), default=0)
    texts = max((columns(text) for _, text in rows), default=0)
    room = max(1, min(width, WIDEST) - names - texts - 4 if is_framed else min(60, width - names - texts - 3))
    unit = most / room - least / room or 1.0
    lines = []
    for span, text in rows:
        bar = _bar(span.start / unit - least / unit, span.stop / unit - least / unit, room, sign)
        if is_framed:
            lines.append(f"{padded(span.name, names)} {sign.vertical}{bar} {text}".rstrip())
        else:
            lines.append(f"{span.name:>{names}}  {bar}{' ' * bool(bar)}{text}")
    return lines


def shades(values: Collection[Sequence[float]], names: Sequence[str], encoding: str = "utf-8") -> list[str]:
    """A matrix of shares (0 to 1) as a map: the darker, the larger. Rows have names, columns their numbers."""
    sign = _signs(encoding)
    wide = max(map(columns, names), default=0)
    header = "".join(f"{number % 10} " for number in range(1, max(map(len, values), default=0) + 1))
    lines = [f"{' ' * wide}  {header}".rstrip()]
    for name, row in zip(names, values, strict=True):
        body = "".join(_shade(value, sign.shades) * 2 for value in row)
        lines.append(f"{padded(name, wide)} {sign.vertical}{body}{sign.vertical}")
    return lines


def scale_of_shades(encoding: str = "utf-8") -> list[tuple[str, float, float]]:
    """Every sign of a map with the shares it stands for: from, and up to."""
    found = _signs(encoding).shades
    edges = [0.0, *_edges(found), 1.0]
    return list(zip(found, edges, edges[1:], strict=False))


#: A share below this is drawn as nothing.
_FAINT = 0.05


def _edges(shades: str) -> list[float]:
    """The shares from which on each sign but the first is drawn."""
    return [_FAINT, *(i / (len(shades) - 1) for i in range(1, len(shades) - 1))]


def _shade(value: float, shades: str) -> str:
    return "?" if math.isnan(value) else shades[sum(value >= edge for edge in _edges(shades))]


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


def _on(value: float, log: bool) -> float:
    """A number's place on an axis; NaN where it has none."""
    if log:
        return math.log(value) if value > 0 else math.nan
    return float(value)


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


def _room(names: list[str], width: int) -> int:
    """Columns that are left beside the names of the lines."""
    return max(_NARROWEST, width - columns(names[0]) - 2)


def _framed(body: list[str], names: list[str], ends: tuple[str, str], sign: Signs) -> list[str]:
    before, room = " " * columns(names[0]), len(body[0])
    lines = [
        f"{name} {sign.tick if name.strip() else sign.vertical}{line}".rstrip()
        for name, line in zip(names, body, strict=True)
    ]
    gap = max(1, room - sum(map(columns, ends)))
    return [*lines, f"{before} {sign.corner}{sign.horizontal * room}", f"{before}  {(' ' * gap).join(ends)}"]


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


# Progress on standard error: a bar while sheets are marked or made, a curve of the loss while a model is trained.

#: Seconds between two pictures, and lines of the curve.
_EVERY, _CURVE = 0.1, 10
Result = TypeVar("Result")


def counting(
    results: Iterator[Result], file: TextIO, stack: ExitStack, done: int, total: int | None
) -> Iterator[Result]:
    """The same results, counted on the screen as they go by.

    Parameters
    ----------
    done : results that an earlier run left
    total : how many come, these included; None: a stream, nobody knows
    """
    from rich import progress
    from rich.console import Console

    end = (progress.TimeElapsedColumn(),) if total is None else (progress.BarColumn(), progress.TimeRemainingColumn())
    shown = stack.enter_context(
        progress.Progress(
            progress.SpinnerColumn(), progress.MofNCompleteColumn(), *end, console=Console(file=file), transient=True
        )
    )
    task = shown.add_task("", total=total, completed=done)
    for result in results:
        shown.advance(task)
        yield result
    shown.stop()  # before anything is written below it


def telling(file: TextIO, stack: ExitStack, total: int, language: Language) -> Callable[[int, float], None]:
    """A function that is told the number of each step and its loss; the picture is gone when `stack` closes."""
    from rich import progress
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(file=file)
    words = progress.TextColumn("{task.description}", markup=False)
    steps = progress.Progress(
        words, progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn(), console=console
    )
    task = steps.add_task(Message("steps").text(language), total=total)
    live = stack.enter_context(Live(steps, console=console, transient=True, auto_refresh=False))
    losses: list[float] = []
    last = 0.0

    def tell(step: int, loss: float) -> None:
        nonlocal last
        losses.append(loss)
        now = time.monotonic()
        if now - last < _EVERY:
            return
        last = now
        steps.update(task, completed=step)
        ends = str(step - len(losses) + 1), f"{step}: {Message('loss {loss}', loss=loss).text(language)}"
        lines = curve(losses, min(console.width, WIDEST), _CURVE, ends, console.encoding)
        live.update(Group(*(Text(line, no_wrap=True) for line in lines), steps), refresh=True)

    return tell
