"""What `attncli` alone says: three things to try."""

from __future__ import annotations

from attncli.cli._say import Say
from attncli.cli._terminal import width
from attncli.locale.wrap import wrap

_FORWARD = 'attncli forward -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"'
_BACKWARD = 'attncli backward a1-pronoun --upstream "1 2" --expand'


def greeting(say: Say) -> str:
    """A short welcome with three commands."""
    to_try = (
        (_FORWARD, say.text("one query, two keys: every step from Q, K, V to the output")),
        (
            "attncli examples run a1-pronoun",
            say.text("the first exercise, with the numbers its source gives and what to notice"),
        ),
        (_BACKWARD, say.text("backwards: every gradient, and how every number comes about")),
    )
    lines = [
        wrap(say.text("attncli shows attention as you would calculate it by hand, step by step."), width()),
        "",
        say.text("Three things to try:"),
        "",
    ]
    for command, what in to_try:
        # A command stays on one line, to be copied.
        lines += [f"  {command}", wrap(what, width(), " " * 6, " " * 6)]
    last = say.text("All exercises: attncli examples list. All commands: attncli --help.")
    return "\n".join([*lines, "", wrap(last, width()), ""])
