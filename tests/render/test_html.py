"""The page to read, and what a notebook shows: both languages, every number, valid nesting, no way in for a hostile name."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rendering import ZH

from attncli.render import html
from attncli.render.formula import as_mathml
from attncli.render.view import View

VOID = {"meta", "input", "br", "link", "img", "hr"}
ALLOWED = frozenset(
    [
        "html",
        "head",
        "body",
        "meta",
        "title",
        "style",
        "div",
        "section",
        "form",
        "label",
        "input",
        "span",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "nav",
        "ol",
        "ul",
        "li",
        "a",
        "p",
        "small",
        "details",
        "summary",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "b",
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "mfrac",
        "msqrt",
        "mroot",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mtable",
        "mtr",
        "mtd",
        "mtext",
        "mspace",
    ]
)


_TEXTS: dict[int, str] = {}


def read_only(shown: View) -> str:
    """The page without a script, rendered once for all tests (views are kept, so their ids stay)."""
    if id(shown) not in _TEXTS:
        _TEXTS[id(shown)] = html.reading_page(shown)
    return _TEXTS[id(shown)]


class Page(HTMLParser):
    """Reads a page strictly: every element that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.texts.append((inside, data))
        if "td" in self.open:
            self.cells[-1] += data

    @property
    def text(self) -> str:
        return "".join(data for inside, data in self.texts if inside != "style")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_page_is_well_nested_and_complete(shown: View) -> None:
    page = Page(read_only(shown))
    numbers = page.cells
    for item in (*shown.inputs, *shown.steps):
        assert {"id": f"attncli-{item.id}"}.items() <= next(
            (a for a in page.all("section") if a.get("id") == f"attncli-{item.id}"), {}
        ).items()
        for block in item.panels:
            for value in block.values.ravel():
                expected = item.text(value)
                if item.values.dtype == object:
                    expected = Page(as_mathml(item.latex(value))).text
                assert expected in numbers


def test_every_table_says_what_it_is(shown: View) -> None:
    page = Page(read_only(shown))
    items = (*shown.inputs, *shown.steps)
    assert len(page.all("caption")) == sum(len(item.panels) for item in items)
    assert all(cell.get("scope") in ("row", "col") for cell in page.all("th"))


def test_both_languages_are_there(shown: View) -> None:
    page = Page(read_only(shown))
    views = (shown, shown.in_language(ZH))
    for item in shown.steps:
        if item.why is not None:
            why = [view.say(item.why) for view in views]
            assert all(text in page.text for text in why)
    spans = [span for span in page.all("span") if span.get("class") != "number"]
    assert sum(span.get("class") == "en" for span in spans) == sum(span.get("class") == "zh" for span in spans) > 5
    assert {span.get("lang") for span in spans} == {"en", "zh-Hans"}


def test_language_of_the_view_comes_first(seen: Callable[..., View], shown_zh: View) -> None:
    english, chinese = Page(read_only(seen("plain"))), Page(read_only(shown_zh))
    assert english.all("html") == [{"lang": "en"}] and chinese.all("html") == [{"lang": "zh-Hans"}]
    assert [("checked" in radio, radio["class"]) for radio in chinese.all("input")] == [
        (True, "to-zh"),
        (False, "to-en"),
    ]
    assert [("checked" in radio, radio["class"]) for radio in english.all("input")] == [
        (True, "to-en"),
        (False, "to-zh"),
    ]


def test_nothing_comes_from_outside(shown: View) -> None:
    text = read_only(shown)
    page = Page(text)  # refuses script, link, img, iframe: they are not among the allowed tags
    assert not re.search(r"https?:|@import|url\(|javascript:", text)
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    targets = {attributes["href"] for attributes in page.all("a")}
    assert targets <= {f"#{attributes.get('id')}" for attributes in page.all("section")}


def test_hostile_names_are_text(seen: Callable[..., View]) -> None:
    text = read_only(seen("hostile", expand=True))
    page = Page(text)
    assert "<script>alert(1)</script>" in page.text
    assert "<script" not in text and "<b>*Who" not in text and "<i>" not in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text)
    assert ("title", "<b>*Who*</b> # $is$ “it” & {why}") in page.texts


def test_weights_are_shaded_by_their_value(seen: Callable[..., View]) -> None:
    text = read_only(seen("heads"))
    shares = re.findall(r'<td class="share" style="--share:([\d.]+)"[^>]*>([^<]*)<', text)
    assert len(shares) == 8
    assert all(abs(float(share) - float(number)) < 6e-4 for share, number in shares)
    # 0/0 has no shade.
    lost = read_only(seen("lost"))
    assert "--share:nan" not in lost


def test_arithmetic_is_folded_until_asked_for(seen: Callable[..., View]) -> None:
    folded, opened = (read_only(seen("plain", expand=expand)) for expand in (False, True))
    assert "<details>" in folded and "<details open>" not in folded
    assert "<details open>" in opened and "<details>" not in opened
    assert "<li><b>S[1,2]</b> = 1×0 + 2×1 = 2</li>" in folded


def test_many_cells_are_listed_only_when_asked_for(seen: Callable[..., View], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_MOST_CELLS", 1)
    assert "2 cells: --expand" in html.reading_page(seen("plain"))
    assert "2 cells: --expand" not in html.reading_page(seen("plain", expand=True))


def test_fragment_leaves_the_page_around_it_alone(shown: View) -> None:
    text = html.fragment(shown)
    page = Page(text)
    assert page.tags[0][0] == "div" and not {"html", "head", "body", "title", "meta"} & {tag for tag, _ in page.tags}
    assert not any("id" in attributes for _, attributes in page.tags)  # two of them may stand on one page
    assert "h1" not in {tag for tag, _ in page.tags}


def test_every_rule_of_the_style_is_under_one_class() -> None:
    css = Path(html.__file__).with_name("page.css").read_text(encoding="utf-8")
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    css = re.sub(r"@media [^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", css)
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", css)
    assert len(selectors) > 40
    for selector in selectors:
        for part in re.split(r",(?![^()]*\))", selector):
            assert part.strip().startswith(".attncli"), part


def _luminance(colour: tuple[float, ...]) -> float:
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _hex(text: str) -> tuple[float, ...]:
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))


def test_contrast_is_readable_in_light_dark_and_print() -> None:
    """WCAG 2.2, success criterion 1.4.3: 4.5 to 1, also on the strongest shade."""
    css = Path(html.__file__).with_name("page.css").read_text(encoding="utf-8")
    themes = re.findall(r"\{ (--back:.*?--most: [\d.]+)", css)
    assert len(themes) == 3
    for theme in themes:
        value = dict(re.findall(r"--(\w+): ([^;]+)", theme))
        back, most = _hex(value["back"]), float(value["most"])
        accent = tuple(float(part) for part in value["accent"].split())
        shade = tuple(b + (a - b) * most for a, b in zip(accent, back, strict=True))
        for surface in (back, shade):
            assert _contrast(_hex(value["front"]), surface) >= 4.5
        assert _contrast(_hex(value["faint"]), back) >= 4.5
        assert _contrast(_hex(value["faint"]), _hex(value["soft"])) >= 4.5
        assert _contrast(accent, back) >= 4.5


def test_a_notebook_shows_the_fragment(seen: Callable[..., View]) -> None:
    assert seen("plain").run._repr_html_() == html.fragment(seen("plain"))


def test_links_to_steps_of_the_same_symbol_can_be_told_apart(seen: Callable[..., View]) -> None:
    page = read_only(seen("plain"))
    titles = re.findall(r'<li><a href="#[^"]*" title="([^"]*)">', page)
    view = seen("plain")
    assert titles[: len(view.inputs) + len(view.steps)] == [item.id for item in (*view.inputs, *view.steps)]
