"""The page that can be explored, in a real browser: pointing, keys, changing, links, languages, screens, and no way in."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from harness import run
from opened import Opened, example, view_of

from attncli import api
from attncli.problems import library
from attncli.render import explorer, html

Open = Callable[..., Opened]
A1, B6 = "a1-pronoun", "b6-full-backward"


def problem(**more: Any) -> Any:
    return api.problem(inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"}, gradient={"G_O": "1 2"}, **more)


@pytest.fixture
def a1(open_page: Open) -> Opened:
    return open_page(example(A1))


def test_pointing_shows_the_arithmetic_and_where_it_comes_from(a1: Opened) -> None:
    a1.cell("A[1,2]").hover()
    assert a1.arithmetic == "A[1,2] = e^0 / (e^-0.707 + e^0) = 0.670"
    assert a1.marked("chosen") == {"A[1,2]"}
    assert a1.marked("operand") == {"exp[1,2]", "row_sum[1,1]"}
    assert {"Q[1,1]", "K[2,2]", "scores[1,1]", "exp[1,2]"} <= a1.marked("source")
    assert a1.marked("reached") == {"O[1,1]", "O[1,2]"}
    assert not {"V[1,1]", "A[1,1]"} & (a1.marked("source") | a1.marked("reached"))
    a1.page.mouse.move(0, 0)
    assert a1.marked("chosen") == set()
    assert a1.arithmetic.startswith("Point at a number")


def test_a_click_keeps_a_number_chosen_until_escape(a1: Opened) -> None:
    a1.cell("O[1,1]").click()
    a1.page.mouse.move(0, 0)
    assert a1.arithmetic == "O[1,1] = 0.330×2 + 0.670×0 = 0.660"
    a1.page.keyboard.press("Escape")
    assert a1.arithmetic.startswith("Point at a number")


def test_a_tap_does_what_a_click_does(open_page: Open) -> None:
    page = open_page(example(A1), width=360, height=740, has_touch=True, is_mobile=True)
    page.cell("scores[1,2]").tap()
    assert page.arithmetic == "S[1,2] = 1×0 + 2×1 = 2"


def test_arrow_keys_go_from_number_to_number_and_over_to_the_next_matrix(a1: Opened) -> None:
    a1.cell("scores[1,1]").focus()
    assert a1.arithmetic.startswith("S[1,1] = ")
    a1.page.keyboard.press("ArrowRight")
    assert a1.arithmetic.startswith("S[1,2] = ")
    a1.page.keyboard.press("ArrowRight")
    assert a1.arithmetic.startswith("S_scaled[1,1] = ")
    a1.page.keyboard.press("ArrowUp")
    a1.page.keyboard.press("ArrowUp")
    assert a1.page.evaluate("document.activeElement.dataset.cell") == "V[2,1]"
    a1.page.keyboard.press("ArrowUp")
    assert a1.arithmetic == "V[1,1] = 2  (given)"


def test_tab_stops_once_in_every_matrix(a1: Opened) -> None:
    stops = a1.page.evaluate("[...document.querySelectorAll('td[tabindex=\"0\"]')].map(box => box.dataset.cell)")
    assert stops == [
        "scores[1,1]",
        "scaled[1,1]",
        "row_max[1,1]",
        "shifted[1,1]",
        "exp[1,1]",
        "row_sum[1,1]",
        "A[1,1]",
        "O[1,1]",
    ]


def test_a_change_is_followed_forward_and_backward(open_page: Open) -> None:
    page = open_page(explorer.page(view_of(problem())))
    before = page.texts()
    page.change("Q[1,1]", "3.5")
    assert page.text("scores[1,1]") == "3.500"
    assert page.text("A[1,1]") == "0.743"
    assert page.text("G_Q[1,1]") != before["G_Q[1,1]"]
    assert page.message.startswith("Q[1,1] is now 3.5; ")
    assert {"Q[1,1]", "A[1,1]", "G_K[1,1]"} <= page.marked("changed")
    assert page.text("G_A[1,2]") == before["G_A[1,2]"]  # it does not follow from Q
    page.cell("A[1,1]").hover()
    assert page.arithmetic == "A[1,1] = e^0 / (e^0 + e^-1.061) = 0.743  · with the numbers as given: 0.330"
    page.press("reset")
    assert page.texts() == before
    assert page.marked("changed") == set()


@pytest.mark.parametrize(
    ("typed", "meant"), [("1/3", "1/3"), ("−2", "-2"), ("１．５", "1.5"), ("1,5", "1.5"), (" 1e-1 ", "0.1")]
)
def test_numbers_are_read_as_people_write_them(a1: Opened, typed: str, meant: str) -> None:
    over = meant.partition("/")
    a1.change("Q[1,1]", typed)
    assert a1.numbers()["Q[1,1]"] == float(over[0]) / float(over[2] or 1)


@pytest.mark.parametrize("typed", ["x", "1..2", "1/0", "--1", "inf", "alert(1)", "1 2", "1e999"])
def test_a_wrong_entry_is_marked_and_said_and_changes_nothing(a1: Opened, typed: str) -> None:
    before = a1.numbers()
    a1.change("Q[1,1]", typed)
    assert a1.cell("Q[1,1]").get_attribute("aria-invalid") == "true"
    assert f"“{typed}” is not a number" in a1.message
    assert a1.numbers() == before
    a1.change("Q[1,1]", "7")
    assert a1.cell("Q[1,1]").get_attribute("aria-invalid") is None
    a1.change("Q[1,1]", "")
    assert a1.text("Q[1,1]") == "1" and "again, as given" in a1.message


def test_only_what_was_given_can_be_changed(open_page: Open) -> None:
    page = open_page(example(B6))
    inputs = set(
        page.page.evaluate("[...document.querySelectorAll('input[data-cell]')].map(e => e.dataset.cell.split('[')[0])")
    )
    assert inputs == {
        "E",
        "W_Q",
        "W_K",
        "W_V",
    }  # not T, which chooses rows; M and G_O follow from a setting and the loss


def test_a_link_holds_the_changes(open_page: Open) -> None:
    page = open_page(example(A1))
    page.change("K[1,2]", "0.5")
    page.change("Q[1,1]", "1/3")
    page.page.check('[name="view"][value="board"]')
    page.page.check(".to-zh")
    page.press("link")
    again = open_page(example(A1), "#" + page.handed.partition("#")[2])
    assert again.numbers() == page.numbers()
    assert again.text("Q[1,1]") == "1/3"
    assert again.page.locator("#attncli.board").count() == 1
    assert again.page.evaluate("document.documentElement.lang") == "zh-Hans"


def test_a_link_may_open_with_the_answers_hidden(open_page: Open) -> None:
    page = open_page(example(A1), "#Q[1,1]=3&answers=hidden&view=board")
    assert page.text("A[1,2]") == "" and page.text("Q[1,1]") == "3"
    page.change("scores[1,1]", "3")
    assert page.marked("right") == {"scores[1,1]"}
    page.press("hide")
    assert page.text("A[1,1]") == "0.670"


def test_a_link_takes_nothing_but_numbers(open_page: Open) -> None:
    link = "#Q[1,1]=<img src=x onerror=alert(1)>&__proto__=1&A[1,1]=2&cell=constructor&view=<b>&lang=xx"
    page = open_page(example(A1), link)
    assert page.numbers() == open_page(example(A1)).numbers()
    assert "The link changes" in page.message
    assert page.page.locator("img").count() == 0


def run_command(text: str) -> dict[str, Any]:
    """The numbers that a command gives."""
    ran = run(*shlex.split(text)[1:], "--format", "json")
    assert ran.status == 0, ran
    return {step["id"]: step["value"] for step in ran.data["steps"]}


@pytest.mark.parametrize(
    ("id", "name"),
    [(A1, "V[2,2]"), ("candle-softmax-down-columns", "scores[1,2,1]"), ("d4-latent", "X[1,2]"), ("candle-three-heads", "K[2,1,1]"), (None, "G_O[1,2]")],
)  # fmt: skip
def test_the_command_gives_the_numbers_of_the_page(open_page: Open, id: str | None, name: str) -> None:
    text = example(id) if id is not None else explorer.page(view_of(problem()))
    page = open_page(text)
    page.change(name, "1.25")
    page.press("command")
    assert page.handed.startswith("attncli ")
    found = page.numbers()
    shape = {
        step["id"]: step["shape"]
        for step in page.page.evaluate("JSON.parse(document.getElementById('attncli-data').textContent)")["steps"]
    }
    for step, value in run_command(page.handed).items():
        flat = json.dumps(value).replace("[", " ").replace("]", " ").replace(",", " ").replace('"', "").split()
        theirs = [number for cell, number in found.items() if cell.startswith(f"{step}[")]
        assert len(theirs) == len(flat), shape[step]
        assert sorted(theirs) == pytest.approx(sorted(map(float, flat)), rel=1e-9, abs=1e-12)


def test_answers_can_be_hidden_and_typed(a1: Opened) -> None:
    a1.press("hide")
    assert a1.text("A[1,2]") == ""
    body = a1.page.locator("#attncli").inner_text()
    assert not re.search(r"0\.660|0\.670|2\.679|1\.493", body)
    a1.cell("scores[1,2]").focus()
    assert a1.arithmetic == "S[1,2] = 1×0 + 2×1 = ?"
    a1.cell("O[1,2]").focus()
    assert a1.arithmetic == "O[1,2] = A[1,1]×0 + A[1,2]×4 = ?"
    a1.change("A[1,2]", "0.67")
    assert a1.marked("right") == {"A[1,2]"}
    assert "agrees to half a unit" in a1.message and "only compares" in a1.message
    a1.change("A[1,1]", "0.331")
    assert a1.marked("off") == {"A[1,1]"}
    assert "off by more than half a unit" in a1.message
    a1.change("O[1,1]", "two")
    assert a1.cell("O[1,1]").get_attribute("aria-invalid") == "true"
    a1.cell("O[1,2]").focus()
    assert a1.arithmetic == "O[1,2] = A[1,1]×0 + 0.670×4 = ?"
    a1.press("hide")
    assert a1.arithmetic.startswith("O[1,2] = 0.330×0 + 0.670×4 ≈ 2.679  · ≈: attncli goes on with more digits")
    assert a1.text("A[1,2]") == "0.670" and a1.text("A[1,1]") == "0.330"


@pytest.mark.parametrize(
    ("typed", "right"), [("0.6697", True), ("0.6693", True), ("0.669", False), ("0.6702", True), ("0.6704", False)]
)
def test_half_a_unit_is_what_decides(a1: Opened, typed: str, right: bool) -> None:
    a1.press("hide")
    a1.change("A[1,2]", typed)
    assert a1.marked("right" if right else "off") == {"A[1,2]"}


def test_both_languages_are_spoken(a1: Opened) -> None:
    a1.page.check(".to-zh")
    assert a1.page.get_by_text("隐藏答案").is_visible()
    a1.cell("Q[1,1]").click()
    assert a1.arithmetic == "Q[1,1] = 1  (已知)"
    english = a1.page.evaluate("[...document.querySelectorAll('span.en')].filter(e => e.checkVisibility()).length")
    assert english == 0
    a1.page.check(".to-en")
    assert a1.arithmetic == "Q[1,1] = 1  (given)"


def test_an_altered_term_is_noticed(open_page: Open) -> None:
    text = example(A1)
    data = json.loads(re.search(r'id="attncli-data">(.*?)</script>', text, re.DOTALL).group(1))  # type: ignore[union-attr]
    step = next(step for step in data["steps"] if step["id"] == "O")
    step["terms"][0][0] = "product"
    altered = re.sub(
        r'(id="attncli-data">).*?(</script>)', lambda m: m[1] + json.dumps(data) + m[2], text, flags=re.DOTALL
    )
    page = open_page(altered)
    assert "Do not trust this page" in page.message and "first at O[1,1] (1 in all)" in page.message
    assert open_page(text).message == ""


def test_an_altered_script_does_not_run(open_page: Open) -> None:
    page = open_page(example(A1).replace('"use strict";', '"use strict";alert(1);', 1), quiet=False)
    assert page.arithmetic == ""
    assert len(page.wrong) == 1 and "Content Security Policy" in page.wrong[0]


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]>-->&quot;';alert(1)//",
    "__proto__",
    "\u202ered\x1b[31m",
]


def test_hostile_names_and_titles_are_only_text(open_page: Open) -> None:
    from attncli.problems.source import matrix_of

    size = len(HOSTILE)
    hostile = api.problem(
        model="self_attention",
        inputs={"X": matrix_of([[i, 1] for i in range(size)]), "W_Q": "1 0; 0 1", "W_K": "1 1; 0 1", "W_V": "1 2; 3 4"},
        gradient={"loss": "sum(O)"},
        labels={"token": HOSTILE},
        title={"en": HOSTILE[0], "zh": HOSTILE[1]},
    ).changed(prompt={"en": HOSTILE[1], "zh": HOSTILE[2]})
    page = open_page(explorer.page(view_of(hostile)))
    assert page.page.title() == HOSTILE[0]
    assert page.page.locator("img").count() == 0 and page.page.locator("script").count() == 2
    page.change("X[1,1]", "2")
    page.press("command")
    page.page.check(".to-zh")
    assert page.page.locator("h1").inner_text() == HOSTILE[1]


def test_hostile_tokens_are_only_text(open_page: Open) -> None:
    token = "<b>'\"$`"
    hostile = api.problem(model="tokens", inputs={"text": token}, settings={"vocabulary": list(token)})
    page = open_page(explorer.page(view_of(hostile)))
    page.press("command")
    assert run_command(page.handed)["T"] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("id", [A1, B6, "e9-decoder-block", "aibyhand-three-heads", "f2-gpt-block"])
@pytest.mark.parametrize("which", ["reading", "board"])
def test_nothing_is_wider_than_a_phone(open_page: Open, id: str, which: str) -> None:
    page = open_page(example(id), f"#view={which}", width=360, height=740)
    assert page.page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("code", ["en", "zh"])
def test_the_whole_way_back_fits_on_one_screen(open_page: Open, code: str) -> None:
    page = open_page(example(B6, code), "#view=board")
    assert page.page.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]") == [
        900,
        1280,
    ]
    bar = page.page.locator(".bar").bounding_box()["y"]
    boxes = page.page.evaluate(
        "[...document.querySelectorAll('[data-cell]')].map(e => [e.dataset.cell, e.getBoundingClientRect()]).map(([n, b]) => [n, b.left, b.top, b.right, b.bottom])"
    )
    assert len(boxes) == len(page.names())
    assert all(left >= 0 and top >= 0 and right <= 1280 and bottom <= bar for _, left, top, right, bottom in boxes)
    assert float(page.page.evaluate("getComputedStyle(document.querySelector('td')).fontSize.slice(0, -2)")) >= 10


def test_operands_stand_beside_their_result(open_page: Open) -> None:
    page = open_page(example(A1))
    section = page.page.locator("#attncli-O")
    section.scroll_into_view_if_needed()
    names = section.locator("[data-operand]").evaluate_all("all => all.map(e => e.dataset.operand)")
    assert names == ["A[1,1]", "A[1,2]", "V[1,1]", "V[1,2]", "V[2,1]", "V[2,2]"]
    page.change("V[1,1]", "9")
    assert section.locator('[data-operand="V[1,1]"]').inner_text() == "9"
    section.locator('[data-operand="A[1,2]"]').hover()
    assert page.arithmetic.startswith("A[1,2] = ")


def test_printed_it_has_no_buttons_and_every_number(open_page: Open) -> None:
    page = open_page(example(A1))
    page.page.emulate_media(media="print")
    assert not page.page.locator(".tools").is_visible() and not page.page.locator(".bar").is_visible()
    assert page.page.locator('[data-cell="O[1,2]"]').is_visible()


def test_light_and_dark(open_page: Open) -> None:
    colours = [
        open_page(example(A1), color_scheme=scheme).page.evaluate(
            "getComputedStyle(document.getElementById('attncli')).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(15, 20, 25)"]


def test_what_a_screen_reader_is_told(a1: Opened) -> None:
    assert a1.page.locator('[data-role="arithmetic"]').get_attribute("aria-live") == "polite"
    unnamed = a1.page.evaluate(
        "[...document.querySelectorAll('input, button, textarea')].filter(e => !e.labels?.length && !e.ariaLabel && !e.textContent.trim() && e.checkVisibility()).length"
    )
    assert unnamed == 0
    assert a1.page.locator("[data-do=hide]").get_attribute("aria-pressed") == "false"
    a1.press("hide")
    assert a1.page.locator("[data-do=hide]").get_attribute("aria-pressed") == "true"


def test_steps_that_are_not_shown_are_still_followed(open_page: Open) -> None:
    page = open_page(explorer.page(view_of(library.load(A1), steps=["O"])))
    assert page.page.locator('[data-cell="A[1,1]"]').count() == 0
    page.change("Q[1,1]", "3")
    assert page.text("O[1,1]") == "1.340"
    page.cell("O[1,1]").hover()
    assert page.arithmetic.startswith("O[1,1] = 0.670×2 + 0.330×0 = 1.340")


def test_points_of_a_column_stand_under_one_another(open_page: Open) -> None:
    """Also of numbers that can be changed, and after a change."""
    page = open_page(
        explorer.page(view_of(api.problem(inputs={"Q": "1 2.25; 3.5 10", "K": "1 0; 0.5 1", "V": "2 0; 0 4"})))
    )
    where = """name => {
      const element = document.querySelector(`[data-cell="${CSS.escape(name)}"]`);
      const style = getComputedStyle(element), right = element.getBoundingClientRect().right;
      const text = element.tagName === "INPUT" ? element.value : element.firstChild.data;
      const end = element.tagName === "INPUT" ? right - parseFloat(style.paddingRight) : (() => {
        const range = document.createRange(); range.selectNodeContents(element); return range.getBoundingClientRect().right; })();
      const canvas = document.createElement("canvas").getContext("2d"); canvas.font = `${style.fontSize} ${style.fontFamily}`;
      const tail = text.includes(".") ? text.slice(text.indexOf(".")) : "";
      return end - canvas.measureText(tail).width;
    }"""

    def points(*names: str) -> float:
        places = [page.page.evaluate(where, name) for name in names]
        return float(max(places) - min(places))

    assert points("Q[1,1]", "Q[2,1]") < 1
    assert points("Q[1,2]", "Q[2,2]") < 1
    assert points("scores[1,1]", "scores[2,1]") < 1
    page.change("Q[1,1]", "1.75")
    assert points("Q[1,1]", "Q[2,1]") < 1


def test_brackets_are_as_high_as_what_they_hold_in_any_font(open_page: Open) -> None:
    text = html.reading_page(view_of(problem(), arithmetic="exact", expand=True))
    page = open_page(re.sub(r"font-family: math,[^;]*;", 'font-family: "DejaVu Sans", sans-serif;', text))
    found = page.page.evaluate("""() => [...document.querySelectorAll("mrow.square")].map(row => {
      const style = getComputedStyle(row), inside = row.querySelector("mtable").getBoundingClientRect();
      return [row.getBoundingClientRect().height - inside.height, parseFloat(style.borderLeftWidth), parseFloat(style.borderRightWidth)];
    })""")
    assert found
    assert all(more >= 0 and left >= 0.5 and right >= 0.5 for more, left, right in found)
