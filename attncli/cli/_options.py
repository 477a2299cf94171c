"""Options that several commands share: declared once, with help in the language of the run."""

# Annotations are real objects here (no `from __future__ import annotations`): Typer reads them.
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._say import Say

PROBLEM = ("problem",)
INPUTS = ("queries", "keys", "values", "text", "set_", "model", "causal", "mask", "scale")
GRADIENT = ("upstream", "loss")
SHOWN = (
    "step",
    "expand",
    "decimals",
    "carry",
    "rounding",
    "exact",
    "format",
    "output",
    "force",
    "layout",
    "full",
    "lang",
)


def options(say: Say) -> dict[str, tuple[Any, Any]]:
    """Every shared option: parameter name → (annotation, default)."""
    t = say.text
    many = list[str] | None
    one = str | None
    return {
        "problem": (Annotated[one, typer.Argument(metavar="[PROBLEM]", help=t("A problem file (TOML or JSON), - for standard input, or the id of a worked example."), autocompletion=_complete.examples, show_default=False)], None),
        "queries": (Annotated[one, typer.Option("-Q", metavar="M", help=t("Queries, one row a token: \"1 2; 3 4\", @FILE, or - for standard input."))], None),
        "keys": (Annotated[one, typer.Option("-K", metavar="M", help=t("Keys, one row a token."))], None),
        "values": (Annotated[one, typer.Option("-V", metavar="M", help=t("Values, one row a token."))], None),
        "text": (Annotated[one, typer.Option("--text", metavar="TEXT", help=t("Start from words, like --text \"I like tea\", with small built-in weights that are shown."))], None),
        "set_": (Annotated[many, typer.Option("--set", metavar="NAME=M", help=t("Any other input or setting of the model, like --set X=\"1 0; 0 1\" or --set eta=0.1."), show_default=False)], None),
        "model": (Annotated[one, typer.Option("--model", metavar="NAME", help=t("The model; without it, the one whose inputs are given."), autocompletion=_complete.models)], None),
        "causal": (Annotated[bool, typer.Option("--causal", help=t("A token sees itself and what came before."))], False),
        "mask": (Annotated[one, typer.Option("--mask", metavar="M", help=t("Numbers added to the scaled scores: 0 = visible, -inf = hidden."))], None),
        "scale": (Annotated[one, typer.Option("--scale", metavar="sqrt|none|NUMBER", help=t("Divide the scores by √d_k (sqrt, the default), not at all, or multiply them by a number."))], None),
        "upstream": (Annotated[one, typer.Option("--upstream", metavar="M", help=t("The gradient at the output, in the output's shape."))], None),
        "loss": (Annotated[one, typer.Option("--loss", metavar="TEXT", help=t("A loss instead: sum(O), O[1,1] + 2*O[1,2], 1/2*sum((O-T)^2), -ln A[1,2], cross_entropy(logits, T), nll(A, T), or a sum of such, each with a factor."))], None),
        "verify": (Annotated[bool, typer.Option("--verify", help=t("Check every gradient against finite differences."))], False),
        "step": (Annotated[many, typer.Option("--step", metavar="ID", help=t("Show only this step (can be given several times)."), autocompletion=_complete.steps, show_default=False)], None),
        "expand": (Annotated[bool, typer.Option("--expand", help=t("Show the arithmetic of every cell."))], False),
        "decimals": (Annotated[int | None, typer.Option("--decimals", metavar="N", help=t("Decimals "
"to "
"show, "
"0 to "
"15 "
"(default: "
"3)."))], None),
        "carry": (Annotated[bool, typer.Option("--carry", help=t("Carry rounded values on, as one does on paper."))], False),
        "rounding": (Annotated[str, typer.Option("--rounding", metavar="away|even", help=t("Where a 5 goes with --carry: away from zero (school) or to the even digit."))], "away"),
        "exact": (Annotated[bool, typer.Option("--exact", help=t("Exact results like √2/2 and e^-1 (needs the extra attncli[exact])."))], False),
        "format": (Annotated[one, typer.Option("--format", metavar="NAME", help=t("table, json, markdown, latex, csv, npz, html, svg or xlsx; by default as -o FILE ends, else table."), autocompletion=_complete.formats)], None),
        "output": (Annotated[one, typer.Option("-o", "--output", metavar="FILE", help=t("Write to this file instead of the screen."))], None),
        "force": (Annotated[bool, typer.Option("--force", help=t("Write over a file that attncli did not write itself."))], False),
        "layout": (Annotated[one, typer.Option("--layout", metavar="rows|columns", help=t("Tokens as rows (the default) or as columns, for input and output."))], None),
        "full": (Annotated[bool, typer.Option("--full", help=t("Show large matrices whole."))], False),
        "lang": (Annotated[one, typer.Option("--lang", metavar="en|zh", help=t("Language of everything shown."))], None),
    }  # fmt: skip


def report_options(say: Say) -> dict[str, tuple[Any, Any]]:
    """The shared options, for commands whose result is a report: those come in fewer formats."""
    help = say.text("table, json, markdown or csv; by default as -o FILE ends, else table.")
    return {
        **options(say),
        "format": (Annotated[str | None, typer.Option("--format", metavar="NAME", help=help)], None),
    }


def with_options(
    function: Callable[..., Any], names: tuple[str, ...], table: dict[str, tuple[Any, Any]]
) -> Callable[..., Any]:
    """`function(**options)` as a command that has these options of the table."""
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=table[name][1], annotation=table[name][0])
        for name in names
    ]

    def command(**given: Any) -> Any:
        return function(**given)

    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {name: table[name][0] for name in names}
    return command
