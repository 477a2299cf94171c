"""The comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from attncli.render._compare import Block, Chart, Document, Grid, Heading, Listing, Paragraph
from attncli.render.markdown import code, escaped


def as_markdown(document: Document) -> str:
    """A document with tables."""
    parts = [text for block in document.blocks() if (text := "\n".join(_lines(block)))]
    return "\n\n".join(parts) + "\n"


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {escaped(block.text)}"
    elif isinstance(block, Paragraph):
        yield escaped(block.text)
    elif isinstance(block, Grid):
        yield _row(["", *(" ".join(head) for head in block.heads)])
        yield _row(["---", *("---:" for _ in block.heads)])
        for label, cells in block.rows:
            yield _row([escaped(label.strip()), *cells])
    elif isinstance(block, Listing):
        for sign, name, text in block.rows:
            words = [sign, f"**{escaped(name)}**" if name else "", code(text) if name else escaped(text)]
            yield "- " + " ".join(word for word in words if word)
    elif isinstance(block, Chart):
        return  # the numbers stand in the table


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
