r"""The page that can be explored: the arithmetic of every cell as data, and a script that evaluates just that.

There is no second implementation of any model: what the script calculates after a change are the terms of the ops,
the same ones that it shows. Numbers that do not follow from a change stay attncli's own, to the last bit.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic import Number
from attncli.core.graph import Input, Step
from attncli.core.message import N_, Message
from attncli.core.terms import Index, Term
from attncli.problems.question import CommandLine, command_line
from attncli.render.arithmetic import OPENED
from attncli.render.document import Block, Heading, Steps
from attncli.render.html import Fragment, anchor, reading_page, tag, whole_page
from attncli.render.run import NOTES
from attncli.render.text import cell_name, constant_text, plain, printable
from attncli.render.view import Item, View

if TYPE_CHECKING:
    pass


#: Numbers up to which a page calculates anew at every change.
MOST_CELLS = 3_000

_BODY = """<div class="attncli attncli-{code} explorer reading" id="attncli" lang="{lang}">
<div class="attncli-body">
{body}</div>
<div class="bar">
<p data-role="arithmetic" role="status" aria-live="polite"></p>
<p data-role="message" role="status" aria-live="polite"></p>
</div>
</div>
<script type="application/json" id="attncli-data">{data}</script>
<script>{script}</script>"""

#: Names of the parts where there is little room.
_SHORT = {
    "input": N_("Inputs"),
    "target": N_("Forward"),
    "forward": N_("Forward"),
    "upstream": N_("Backward"),
    "backward": N_("Backward"),
    "update": N_("Update"),
}

#: What the script says, by key.
_WORDS = {
    "idle": N_(
        "Point at a number, tap it, or go to it with the arrow keys: its arithmetic appears here. Blue numbers can be changed."
    ),
    "given": N_("given"),
    "before": N_("with the numbers as given: {value}"),
    "about": N_("≈: attncli goes on with more digits than are shown"),
    "changed": N_("{cell} is now {value}; {count} numbers have changed with it."),
    "back": N_("{cell} is {value} again, as given."),
    "wrong": N_("“{text}” is not a number that can stand here. Write one like 1.5, -2 or 1/3."),
    "reset": N_("All numbers are as given again."),
    "agrees": N_("{cell}: {text} agrees to half a unit of the last place shown."),
    "differs": N_("{cell}: {text} is off by more than half a unit of the last place shown."),
    "count": N_("{right} of {all} agree. This only compares numbers; attncli check marks them, with every way of rounding."),
    "hide": N_("The answers are hidden. Type what you get; inputs still show their numbers."),
    "show": N_("All answers are shown."),
    "link": N_("This link holds your changes:"),
    "command": N_("The same on the command line:"),
    "copied": N_("Copied."),
    "foreign": N_("The link changes {name}, which cannot be changed on this page, so it was ignored."),
    "tampered": N_(
        "Do not trust this page: its arithmetic does not come to what attncli calculated, first at {cell} ({count} in all)."
        " The file has been altered."
    ),
}  # fmt: skip


def why_not(view: View) -> Message | None:
    """Why a run is shown as a page to read only, or None."""
    if view.run.trace.arithmetic != "floating":
        return Message(
            "This page is for reading: its numbers are exact or rounded at every line, and a page calculates in full precision only."
        )
    count = sum(math.prod(values.shape) for values in view.run.trace.numbers.values())
    if count > MOST_CELLS:
        text = N_(
            "This page is for reading only: it has {count} numbers, and beyond {most} it does "
            "not recalculate. --step makes it smaller."
        )
        return Message(text, count=f"{count:,}", most=f"{MOST_CELLS:,}")
    return None


def page(view: View) -> str:
    """The run as a page of its own: to explore where it can be calculated anew, else to read, which it says."""
    reason = why_not(view)
    return _explored(view) if reason is None else reading_page(view, reason)


def _explored(view: View) -> str:
    """The run as one offline file: numbers, sentences, the arithmetic as data, and the script that evaluates it."""
    folder = Path(__file__).parent
    style = "".join((folder / name).read_text(encoding="utf-8") for name in ("page.css", "explorer.css"))
    script = (folder / "explorer.js").read_text(encoding="utf-8")
    fragment = Explorer(view)
    policy = [
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    body = _BODY.format(
        lang=tag(view),
        code=view.language.code,
        body="".join(fragment.body()),
        data=_inert(json.dumps(fragment.data(), separators=(",", ":"))),
        script=script,
    )
    return whole_page(view, policy="; ".join(policy), style=style, body=body)


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _inert(text: str) -> str:
    """JSON that cannot end the element it stands in, whatever a name holds."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class Explorer(Fragment):
    """A run as HTML whose every number can be pointed at, and its inputs changed."""

    role = ' role="grid"'

    def __init__(self, view: View) -> None:
        super().__init__(view, top=1, contents=True)
        self.command: CommandLine = command_line(view.run)
        run = view.run
        #: Everything that was calculated, shown or not: a shown number may come from one that is not.
        nodes: list[Input | Step] = [*run.graph.inputs.values(), *run.graph.steps.values()]
        self.nodes = [node for node in nodes if node.id in run.trace.numbers]
        self.first: dict[str, int] = {}
        count = 0
        for node in self.nodes:
            self.first[node.id] = count
            count += math.prod(run.trace.numbers[node.id].shape)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def top_of_page(self) -> Iterator[str]:
        yield "<header>\n"
        yield from super().top_of_page()
        yield f"{self.tools()}</header>\n"

    def section(self, heading: Heading, blocks: Sequence[Block]) -> str:
        """A part of the calculation with a short name besides its heading, for the board; the rest is hidden with the answers."""
        text = super().section(heading, blocks)
        first = blocks[0]
        if isinstance(first, Steps) and first.steps[0].view is self.view:
            short = _SHORT.get(first.steps[0].item.phase)
            mark = (
                f'<span class="short" aria-hidden="true">{self.say(Message(short))}</span>' if short is not None else ""
            )
            return text.replace('<div class="steps', f'{mark}<div class="steps', 1)
        edited = self.say(Message("These sentences are about the original numbers, before your changes."))
        note = f'<p class="only-edited">{edited}</p>\n' if heading.text is NOTES else ""
        return f'<div class="answers">\n{note}{text}</div>\n'

    def tools(self) -> str:
        """Two views, what can be done, and the place where a link or command is handed out."""
        views = "".join(
            f'<label><input type="radio" name="view" value="{name}" autocomplete="off"{" checked" * (name == "reading")}> '
            f"{self.say(Message(text))}</label>"
            for name, text in (("reading", N_("Reading")), ("board", N_("Board")))
        )
        buttons = [
            ("hide", N_("Hide the answers"), ' aria-pressed="false"'),
            ("reset", N_("Reset"), " disabled"),
            ("link", N_("Copy a link"), ""),
            *([("command", N_("Copy as a command"), "")] if self.command is not None else []),
        ]
        shown = "".join(
            f'<button type="button" data-do="{name}"{more}>{self.say(Message(text))}</button>'
            for name, text, more in buttons
        )
        return (
            f'<div class="tools" role="group" aria-label="View · 视图"><form class="views">{views}</form>{shown}</div>\n'
            '<p class="handed" hidden><span data-role="handed"></span>'
            '<textarea readonly rows="2" data-role="copy"></textarea></p>\n'
        )

    def attributes(self, item: Item) -> str:
        kind = " calculated" if item.step is not None else ""
        return f'class="step {item.phase}{kind}" id="{anchor(item)}" data-step="{escape(item.id)}"'

    def arithmetic(self, item: Item) -> str:
        return self.folded(' class="all"') + '<ul class="cells"></ul></details>\n'

    def cell(self, item: Item, index: Index, text: str, pad: str) -> str:
        """A number that carries its name, and can be changed where it was given."""
        name = escape(cell_name(item.id, index, self.view.layout))
        label = escape(cell_name(item.name, index, self.view.layout))
        if self.can_change(item.id, index):
            return (
                f'<td class="given"{pad}><input data-cell="{name}" aria-label="{label}" value="{text}" size="{max(len(text), 2)}"'
                ' autocomplete="off" spellcheck="false"></td>'
            )
        share = ' class="share"' if item.weights else ""
        return f'<td{share} data-cell="{name}"{pad}>{text}</td>'

    def can_change(self, step_id: str, index: Index) -> bool:
        """Whether a number was given as such; what is hidden stays so, because it decides which steps there are."""
        return step_id in self.command.inputs and math.isfinite(self.view.run.trace.numbers[step_id][index])

    def of_contrast(self, view: View) -> Fragment:
        return _Still(view, top=self.top, contents=False)

    # --- what is calculated with --------------------------------------------------------------------------------------

    def data(self) -> dict[str, object]:
        """Numbers, terms, words and the command, for the script."""
        view = self.view
        return {
            "steps": [self.step_data(node) for node in self.nodes],
            "columns": view.layout == "columns",
            "words": {
                shown.language.code: {key: shown.language.translate(text) for key, text in _WORDS.items()}
                for shown in self.views
            },
            "command": {
                "before": self.command.before,
                "inputs": self.command.inputs,
                "after": self.command.after,
            },
        }

    def step_data(self, node: Input | Step) -> dict[str, object]:

        run = self.view.run
        values = run.trace.numbers[node.id]
        found: dict[str, object] = {
            "id": node.id,
            "name": self.view.symbol(node.id),
            "shape": list(values.shape),
            "places": run.places(node.id),
            "values": plain(np.asarray(values, dtype=np.float64).ravel()),
        }
        if isinstance(node, Step):
            terms = node.terms(run.trace.numbers)
            found["terms"] = [self.encoded(terms[index]) for index in np.ndindex(*values.shape)]
            found["operands"] = [operand for operand in dict.fromkeys(node.inputs) if operand in self.first]
            if node.is_attention:
                found["weights"] = True
            if node.op.name in OPENED:
                found["opens"] = True
        return found

    def encoded(self, term: Term) -> object:
        """A term as data: a cell is its number, a constant ["#", value, text], the rest [kind, parts …]."""
        return term.fold(
            self.number_of,
            lambda value: ["#", value, constant_text(value)],
            lambda term, parts: [term.kind, *parts],
            lambda word: ["text", printable(word)],
        )

    def number_of(self, step_id: str, index: Index) -> object:
        """A cell's number among all cells of the page."""
        shape = self.view.run.trace.numbers[step_id].shape
        return self.first[step_id] + (int(np.ravel_multi_index(index, shape)) if shape else 0)


class _Still(Fragment):
    """A second run, only to read: its shades come from the script, since the page allows no style in an element."""

    def shade(self, item: Item, value: Number) -> str:
        return super().shade(item, value).replace('style="--share:', 'data-share="')
