"""The terminal view read back: which numbers its tables show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"^(?:\d+\. )?(\w+)   \S.*$|^(\w+)   \d+(?:×\d+)*$")


@dataclass
class Shown:
    """The body of a step's tables: blocks of columns put side by side again."""

    rows: list[list[str]] = field(default_factory=list)

    def add(self, block: list[list[str]]) -> None:
        self.rows = [a + b for a, b in zip(self.rows, block, strict=True)] if self.rows else block


def tables(text: str) -> dict[str, list[list[str]]]:
    """Cells by step id, as they are written. Inputs, which stand side by side, are left out."""
    found: dict[str, Shown] = {}
    id = ""
    for lines in _runs(text):
        if isinstance(lines, str):
            heading = re.match(r"^\d+\. (\w+)(?:   |$)", lines) or re.match(r"^(G_\w+)   ", lines)
            if heading:
                id = heading[1]
        elif id:
            found.setdefault(id, Shown()).add(_body(lines))
    return {id: shown.rows for id, shown in found.items()}


def _runs(text: str) -> Iterator[str | list[str]]:
    """Lines outside of tables one by one, the lines of a table together."""
    table: list[str] = []
    for line in text.splitlines():
        if line.startswith(("╭", "│", "├", "╰", "+", "|")):
            table.append(line)
            if (
                line.startswith(("╰", "+"))
                and any(row.startswith(("│", "|")) for row in table)
                and _is_end(line, table)
            ):
                yield table
                table = []
        else:
            yield line


def _is_end(line: str, table: list[str]) -> bool:
    """Whether a line closes its table: in ASCII all three frame lines look much the same."""
    return line.startswith("╰") or (line.startswith("+") and len(table) > 2)


def _body(table: list[str]) -> list[list[str]]:
    """The numbers of a table, line by line, without names and heading."""
    middle = [i for i, line in enumerate(table) if line.startswith(("├", "|-"))]
    rows = table[middle[0] + 1 : -1] if middle else table[1:-1]
    return [re.split(r"\s{2,}", re.split(r"[│|]", row.strip("│| "))[-1].strip()) for row in rows]
