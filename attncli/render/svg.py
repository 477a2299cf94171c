"""A picture of the terminal view, as one SVG that loads nothing from outside."""

from __future__ import annotations

import hashlib
import html
import io
import re

from attncli.render.text import clean
from attncli.render.view import View

_CHARACTER = 20
_ASPECT = 0.61
_PLACE = _CHARACTER * _ASPECT
#: A monospaced font that is there, and beside it one with Chinese characters twice as wide.
_FONTS = (
    "'Fira Code', 'Cascadia Mono', 'DejaVu Sans Mono', Menlo, Consolas, 'Sarasa Mono SC', 'Noto Sans Mono CJK SC',"
    " 'PingFang SC', 'Microsoft YaHei', monospace"
)
#: Rich's own template loads a font from the network; this one does not. Spaces are kept twice: in CSS for browsers, by
#: xml:space for what draws SVG without them (librsvg, and pandoc by it), which else lets those that begin a text go.
_FORMAT = """<svg class="attncli-terminal" width="{width}" height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{ font-family: FONTS; font-size: {char_height}px; line-height: {line_height}px; white-space: pre }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
#: Rich writes the end of every line as a text of its own.
_LINE_END = re.compile(r"<text [^>]*>\n</text>")
_TEXT = re.compile(r'<text class="([^"]*)" x="([^"]*)" y="([^"]*)" textLength="[^"]*"([^>]*)>([^<]*)</text>')
#: Frames are drawn, not written: no font's │ is as high as a line here, and gaps would stay between the lines. For each
#: sign the sides that it reaches: left, right, up, down.
_FRAME = {
    "─": "lr", "│": "ud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "┬": "lrd", "┴": "lru", "├": "rud", "┤": "lud", "┼": "lrud",
}  # fmt: skip
_RUN = re.compile(f"─+|[{''.join(_FRAME)}]")
#: The height of a line in characters (Rich's), where its middle is above the foot of the letters, and how thick a frame is.
_LINE, _MIDDLE, _THICK = 24.4, 6.3, 1.2


def picture(view: View) -> str:
    """The view as the terminal shows it, `view.width` characters wide."""
    from rich.console import Console

    from attncli.render.document import say_in
    from attncli.render.run import screen
    from attncli.render.terminal import WIDTH, coloured_text

    console = Console(
        file=io.StringIO(), width=view.width or WIDTH, record=True, force_terminal=True, color_system="truecolor",
        legacy_windows=False, _environ={},
    )  # fmt: skip
    coloured_text(screen(view), say_in(view.language), console)
    console.print()  # Rich clips the last line away
    title = clean(view.title())
    svg_id = "attncli-" + hashlib.sha256(console.export_text(clear=False, styles=True).encode()).hexdigest()[:12]
    svg = console.export_svg(title="", code_format=_format(title), font_aspect_ratio=_ASPECT, unique_id=svg_id)
    return _TEXT.sub(_with_true_length, _LINE_END.sub("", svg))


def _format(title: str) -> str:
    braces = html.escape(title).replace("{", "{{").replace("}", "}}")
    return _FORMAT.replace("TITLE", braces).replace("FONTS", _FONTS)


def _with_true_length(found: re.Match[str]) -> str:
    """The text with the length that it takes, since Rich counts a Chinese character as one place; frames as lines."""
    from rich.cells import cell_len

    name, x, y, rest, inside = found.groups()
    text = html.unescape(inside)
    lines = "".join(
        _lines(run.group(), float(x) + cell_len(text[: run.start()]) * _PLACE, float(y)) for run in _RUN.finditer(text)
    )
    bare = html.escape(_RUN.sub(lambda run: "\N{NO-BREAK SPACE}" * len(run.group()), text), quote=False)
    drawn = f'<path class="{name}" d="{lines}"/>' if lines else ""
    if not bare.strip("\N{NO-BREAK SPACE} "):
        return drawn
    return f'<text class="{name}" x="{x}" y="{y}" textLength="{cell_len(text) * _PLACE:g}"{rest}>{bare}</text>{drawn}'


def _lines(run: str, x: float, y: float) -> str:
    """A sign of a frame, or a run of ─, as thin boxes from its middle to the sides that it reaches."""
    middle, height = y - _MIDDLE, _LINE / 2
    centre, right = x + _PLACE / 2, x + len(run) * _PLACE
    sides = _FRAME[run[0]]
    boxes = []
    if "l" in sides or "r" in sides:
        begin, end = x if "l" in sides else centre - _THICK / 2, right if "r" in sides else centre + _THICK / 2
        boxes.append((begin, middle - _THICK / 2, end - begin, _THICK))
    if "u" in sides or "d" in sides:
        top, bottom = middle - height * ("u" in sides), middle + height * ("d" in sides)
        boxes.append((centre - _THICK / 2, top, _THICK, bottom - top))
    return "".join(f"M{left:.6g} {top:.6g}h{wide:.6g}v{high:.6g}h{-wide:.6g}z" for left, top, wide, high in boxes)
