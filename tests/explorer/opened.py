"""A page as its reader has it: what it shows, and what went wrong in it."""

from __future__ import annotations

from functools import cache
from typing import Any

from attncli.locale import language
from attncli.problems import library
from attncli.problems.lesson import lesson_of
from attncli.problems.problem import Problem, run
from attncli.render import explorer
from attncli.render.view import View, view

#: Sets numbers as typing would, and gives back every number of the page.
_EDIT = """edits => {
  for (const [name, text] of edits) {
    const input = document.querySelector(`[data-cell="${CSS.escape(name)}"]`);
    input.value = text;
    input.dispatchEvent(new Event("change", {bubbles: true}));
  }
  return window.attncli.names().map(name => String(window.attncli.number(name)));
}"""


class Opened:
    """A page in a browser."""

    def __init__(self, page: Any, address: str, *, quiet: bool) -> None:
        self.page = page
        self.quiet = quiet
        self.wrong: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.set_default_timeout(20_000)
        page.goto(address)

    def cell(self, name: str) -> Any:
        return self.page.locator(f'[data-cell="{name}"]')

    def text(self, name: str) -> str:
        """The number as it stands there."""
        cell = self.cell(name)
        return str(cell.input_value() if cell.evaluate("e => e.tagName") == "INPUT" else cell.text_content())

    def texts(self) -> dict[str, str]:
        """Every number as it stands there."""
        script = """Object.fromEntries([...document.querySelectorAll("[data-cell]")].map(
            e => [e.dataset.cell, e.tagName === "INPUT" ? e.value : e.textContent]))"""
        return dict(self.page.evaluate(script))

    @property
    def arithmetic(self) -> str:
        return str(self.page.locator('[data-role="arithmetic"]').text_content())

    @property
    def message(self) -> str:
        return str(self.page.locator('[data-role="message"]').text_content())

    @property
    def handed(self) -> str:
        """The link or command that was handed out."""
        return str(self.page.locator('[data-role="copy"]').input_value())

    def press(self, name: str) -> None:
        self.page.locator(f'[data-do="{name}"]').click()

    def change(self, name: str, text: str) -> None:
        self.cell(name).fill(text)
        self.cell(name).press("Enter")

    def names(self) -> list[str]:
        return list(self.page.evaluate("window.attncli.names()"))

    def numbers(self, edits: list[tuple[str, str]] = []) -> dict[str, float]:  # noqa: B006
        """Every number of the page, in full, after these changes."""
        found = self.page.evaluate(_EDIT, edits)
        return dict(zip(self.names(), (float(text.replace("Infinity", "inf")) for text in found), strict=True))

    def marked(self, mark: str) -> set[str]:
        """Names of the cells with this mark."""
        script = f"""[...document.querySelectorAll("td.{mark}")].map(
            box => box.dataset.cell ?? box.querySelector("[data-cell]")?.dataset.cell).filter(Boolean)"""
        return set(self.page.evaluate(script))

    def assert_nothing_went_wrong(self) -> None:
        assert not self.quiet or self.wrong == []
        assert [url for url in self.requests if not url.startswith("file:")] == []
        assert len({url.partition("#")[0] for url in self.requests}) == 1


def view_of(problem: Problem, code: str = "en", **how: Any) -> View:
    shown = {key: how.pop(key) for key in ("expand",) if key in how}
    return view(run(problem, **how), language(code), **shown)


@cache
def example(id: str, code: str = "en", **how: Any) -> str:
    """The page of a worked example, with its question, its printed numbers and what to notice."""
    problem = library.load(id)
    found = run(problem, **how)
    return str(explorer.page(view(found, language(code), lesson=lesson_of(problem))))
