"""The message catalogues beside the code: read the texts out of it, bring the .po up to date, write the .mo.

    python tests/locale/catalogue.py

After that every text without a translation is an empty msgstr in attncli/locale/zh/LC_MESSAGES/attncli.po; fill it
in and run this again. The tests fail as long as one is missing.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[2]
CODE = ROOT / "attncli"
LANGUAGES = ("zh",)

#: Calls whose first argument is a template: by name (these, and every kind of AttnError), and as a method.
FUNCTIONS = frozenset({"N_", "Message", "t"})
METHODS = frozenset({"text", "say"})


class FixedHeader(Catalog):
    """A catalogue whose header holds nothing that changes from day to day or from one Babel to the next."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        return [
            ("Project-Id-Version", "attncli"),
            ("Language", str(self.locale_identifier)),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
        ]

    @mime_headers.setter
    def mime_headers(self, headers: object) -> None:
        """A file's own header adds nothing."""


def files() -> list[Path]:
    """Every module of attncli."""
    return sorted(CODE.rglob("*.py"))


@cache
def functions() -> frozenset[str]:
    """Names of everything that is called with a template, the errors found in the code itself."""
    bases: dict[str, set[str]] = {}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    errors = {"AttnError"}
    while more := {name for name, above in bases.items() if above & errors} - errors:
        errors |= more
    return FUNCTIONS | errors


def templates(tree: ast.AST, *, methods: bool = True) -> Iterator[ast.expr]:
    """The first argument of every call that takes a template, both sides of a choice apart.

    Methods also take texts that are put together for a page; functions take nothing but templates.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _takes_template(node.func, methods):
            yield from _branches(node.args[0])


def _takes_template(function: ast.expr, methods: bool) -> bool:
    if isinstance(function, ast.Name):
        return function.id in functions()
    return methods and isinstance(function, ast.Attribute) and function.attr in METHODS


def _branches(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _branches(node.body)
        yield from _branches(node.orelse)
    else:
        yield node


@cache
def extracted() -> dict[str, list[str]]:
    """Every template that holds words or fields, and the files it stands in."""
    found: dict[str, list[str]] = {}
    for path in files():
        for node in templates(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _says_something(node.value):
                places = found.setdefault(node.value, [])
                name = path.relative_to(ROOT).as_posix()
                if name not in places:
                    places.append(name)
    return found


def _says_something(text: str) -> bool:
    return any(c.isalpha() for c in text)


def po_path(language: str) -> Path:
    return CODE / "locale" / language / "LC_MESSAGES" / "attncli.po"


def read(language: str) -> Catalog:
    """The catalogue as it is written down."""
    with po_path(language).open("rb") as file:
        return read_po(file, locale=language)


def updated(language: str) -> Catalog:
    """The catalogue with exactly the templates of the code: translations kept, gone texts dropped, new ones empty."""
    before = read(language) if po_path(language).exists() else Catalog(locale=language)
    catalog = FixedHeader(locale=language, domain="attncli", header_comment="", fuzzy=False)
    for template, places in extracted().items():
        known = before.get(template)
        catalog.add(template, known.string if known else "", locations=[(place, 0) for place in places])
        message = catalog[template]
        message.flags.discard("python-format")
        message.flags.discard("python-brace-format")
    return catalog


def po_bytes(catalog: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_po(buffer, catalog, width=100, include_lineno=False, omit_header=False)
    return buffer.getvalue()


def mo_bytes(catalog: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()


def main() -> None:
    for language in LANGUAGES:
        catalog = updated(language)
        po_path(language).write_bytes(po_bytes(catalog))
        po_path(language).with_suffix(".mo").write_bytes(mo_bytes(catalog))
        missing = [str(message.id) for message in catalog if message.id and not message.string]
        print(f"{language}: {len(catalog)} texts, {len(missing)} without a translation")
        for text in missing:
            print(f"  {text}")


if __name__ == "__main__":
    main()
