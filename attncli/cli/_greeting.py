"""What `attncli` alone says: three things to try."""

from __future__ import annotations

from attncli.cli._say import Say

_FORWARD = 'attncli forward -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"'


def greeting(say: Say) -> str:
    """A short welcome with three commands."""
    lines = [
        say.text("attncli shows attention as you would calculate it by hand, step by step."),
        "",
        say.text("Three things to try:"),
        "",
        f"  {_FORWARD}",
        "      " + say.text("one query, two keys: every step from Q, K, V to the output"),
        "  attncli examples run a1-pronoun",
        "      " + say.text("the first exercise, with its printed numbers and what to notice"),
        '  attncli backward -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4" --upstream "1 2" --expand',
        "      " + say.text("the way back: every gradient, and the arithmetic of every cell"),
        "",
        say.text("All exercises: attncli examples list. All commands: attncli --help."),
    ]
    return "\n".join(lines) + "\n"
