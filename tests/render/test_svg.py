"""The SVG: well-formed, self-contained, the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from rendering import written

from attncli.render import svg
from attncli.render.view import View

SVG = "{http://www.w3.org/2000/svg}"


def test_is_well_formed_and_loads_nothing(shown: View) -> None:
    text = written("svg", shown)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert "@font-face" not in text and "@import" not in text
    assert set(re.findall(r"url\(([^)]*)", text)) <= {f"#{node.get('id')}" for node in root.iter() if node.get("id")}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not list(root.iter(f"{SVG}script"))


def test_says_what_the_terminal_says(seen: Callable[..., View]) -> None:
    lines: dict[float, str] = {}
    for node in ElementTree.fromstring(written("svg", seen("plain"))).iter(f"{SVG}text"):
        y = float(node.get("y", "0"))
        lines[y] = lines.get(y, "") + (node.text or "")
    text = "\n".join(lines.values()).replace("\xa0", " ")
    for item in seen("plain").steps:
        assert item.id in text
        assert all(item.text(value) in text for value in item.values.ravel())


def test_spaces_at_the_beginning_of_a_text_are_kept_without_css(seen: Callable[..., View]) -> None:
    xml = "{http://www.w3.org/XML/1998/namespace}space"
    root = ElementTree.fromstring(written("svg", seen("plain")))
    kept = {id(text) for group in root.iter() if group.get(xml) == "preserve" for text in group.iter(f"{SVG}text")}
    indented = [text for text in root.iter(f"{SVG}text") if (text.text or "").startswith("\xa0")]
    assert indented and all(id(text) in kept for text in indented)


def test_a_chinese_character_takes_two_places(seen: Callable[..., View]) -> None:
    nodes = ElementTree.fromstring(written("svg", seen("tokens"))).iter(f"{SVG}text")
    lengths = {node.text: float(node.get("textLength", "0")) for node in nodes if "爱" in (node.text or "")}
    assert lengths
    for text, length in lengths.items():
        chinese = sum("\u4e00" <= sign <= "\u9fff" for sign in text or "")
        assert length == pytest.approx((len(text or "") + chinese) * 20 * 0.61)


def test_same_bytes_and_ids_by_content(seen: Callable[..., View]) -> None:
    first, again, other = (svg.picture(seen(name)) for name in ("heads", "heads", "plain"))
    assert first == again
    ids = [set(re.findall(r'id="(attncli-[0-9a-f]{12})-', text)) for text in (first, other)]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]


def test_width_is_asked_for(seen: Callable[..., View]) -> None:
    widths = [
        int(float(ElementTree.fromstring(written("svg", seen("plain", width=w))).get("width", "0"))) for w in (60, 120)
    ]
    assert widths[0] < widths[1]


def test_hostile_names_are_text(seen: Callable[..., View]) -> None:
    text = written("svg", seen("hostile"))
    assert "<script" not in text and "\x1b" not in text and "\x07" not in text
    assert "<title>&lt;b&gt;*Who*&lt;/b&gt; # $is$ “it” &amp; {why}</title>" in text


def test_frames_are_drawn_without_gaps(seen: Callable[..., View]) -> None:
    """Every upright of a frame begins where the one above it ends; no font could promise that."""
    text = written("svg", seen("plain"))
    assert not set("│─╭╮╰╯├┤┬┴┼") & set(re.sub("<title>.*?</title>", "", text))
    uprights: dict[str, list[tuple[float, float]]] = {}
    for x, y, height in re.findall(r"M([\d.]+) ([\d.]+)h1.2v([\d.]+)h-1.2z", text):
        if float(height) > 2:
            uprights.setdefault(x, []).append((float(y), float(height)))
    first = uprights[min(uprights, key=float)]
    assert len(first) > 6
    assert all(abs(top + height - after) < 0.1 for (top, height), (after, _) in pairwise(first[:5]))
