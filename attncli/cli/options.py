"""The words of a command: its options, how they are read, its help page, and what a shell may complete."""

# Annotations are real objects here (no `from __future__ import annotations`): Typer reads them.
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from attncli.cli.output import WIDTH, Say, width
from attncli.core.message import N_, InputError, Message, closest, unknown
from attncli.locale.wrap import columns, definitions, wrap

# Commands.


class _AsTyped:
    """Takes words as they are typed, and says in our words what is wrong with them.

    Typer turns every word into its declared type with pydantic, which takes longer to import than NumPy. Here all words are text
    (or flags), and what they mean is read by the code that can say best what is wrong with them.
    """

    get_params: Callable[[Any], list[Any]]
    make_parser: Callable[[Any], Any]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parser = self.make_parser(ctx)
        try:
            given, rest, order = parser.parse_args(args=list(args))
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is None:
                error.ctx = ctx  # type: ignore[attr-defined] # so that the message can name the help page
            raise
        if not ctx.resilient_parsing:
            _refuse_twice(order)
        # --help and its like come first: they end the run, whatever else is missing.
        for param in sorted(self.get_params(ctx), key=lambda param: not param.is_eager):
            value, source = param.consume_value(ctx, given)
            ctx.set_parameter_source(param.name, source)
            if param.required and value in (None, (), []) and not ctx.resilient_parsing:
                raise InputError(
                    "{name} is missing. See {command} --help.",
                    name=param.metavar or param.name,
                    command=ctx.command_path,
                )
            if param.callback is not None:
                value = param.callback(ctx, param, value)
            if param.expose_value:
                ctx.params[param.name] = value
        if rest and not ctx.allow_extra_args and not ctx.resilient_parsing:
            raise InputError(
                '“{words}” is more than was expected. Put quotes around a matrix, like -Q "1 2". {hint}',
                words=" ".join(rest)[:60],
                hint=where_to_look(ctx),
            )
        ctx.args = list(rest)
        ctx._opt_prefixes.update(parser._opt_prefixes)  # by which completion knows an option
        return list(rest)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        say: Say = ctx.obj
        formatter.write(say.fitted(_page(self, ctx, say)))


def _refuse_twice(order: Sequence[Any]) -> None:
    """Refuse an option that is given twice, where Typer would keep the last."""
    seen: set[str] = set()
    for param in order:
        if param.param_type_name == "option" and not param.multiple and not param.is_flag:
            if param.name in seen:
                raise InputError("{option} is given twice. Keep one.", option=max(param.opts, key=len))
            seen.add(param.name)


class PlainCommand(_AsTyped, TyperCommand):
    """A command whose words are taken as they are typed."""


class PlainGroup(_AsTyped, TyperGroup):
    """A group of such commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            raise HelpInstead(ctx.get_help())
        rest = super().parse_args(ctx, args)
        ctx._protected_args, ctx.args = rest[:1], rest[1:]  # where Typer looks for the command and its words
        if not rest and not self.invoke_without_command and not ctx.resilient_parsing:
            raise InputError("{name} is missing. See {command} --help.", name="COMMAND", command=ctx.command_path)
        return rest[1:]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        if self.get_command(ctx, args[0]) is not None or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        likely = closest(args[0], self.list_commands(ctx))
        if likely is None:
            raise InputError("the command “{name}” does not exist. {hint}", name=args[0], hint=where_to_look(ctx))
        raise InputError(
            "the command “{name}” does not exist. Did you mean {likely}? {hint}",
            name=args[0],
            likely=likely,
            hint=where_to_look(ctx),
        )


class HelpInstead(Exception):
    """Nothing is asked for: the help page says what could be."""


def where_to_look(ctx: Any) -> Message:
    """The last sentence of a message about words on the command line."""
    return Message(N_("See {command} --help."), command="attncli" if ctx is None else ctx.command_path)


#: The annotation and the default of a parameter.
Declared = tuple[Any, Any]


def command_of(
    name: str, help: str, run: Callable[..., int], say: Say, names: Iterable[str], table: Mapping[str, Declared]
) -> Any:
    """The command `name`, which calls `run(say, **words)` with these options of the table."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=PlainCommand, help=help)(_with_options(run, say, names, table))
    return typer.main.get_command(app)


def group_of(help: str, say: Say, cls: type[PlainGroup] = PlainGroup) -> Any:
    """A group of commands, which are added to it or found by its class."""
    app = typer.Typer(cls=cls, rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=help)

    @app.callback()
    def start(
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text("Language of everything shown.")),
    ) -> None:
        """--lang may stand before the command's name, too; the language was found before the words were read."""

    return typer.main.get_command(app)


def _with_options(
    run: Callable[..., int], say: Say, names: Iterable[str], table: Mapping[str, Declared]
) -> Callable[..., int]:
    """A function as Typer reads one: a parameter an option."""

    def command(**words: Any) -> int:
        return run(say, **words)

    own = {name: table[name] for name in names}
    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=default, annotation=kind) for name, (kind, default) in own.items()]
    )
    command.__annotations__ = {name: kind for name, (kind, _) in own.items()}
    return command


# Options.

PROBLEM = ("problem",)
INPUTS = ("queries", "keys", "values", "text", "set_", "model", "causal", "mask", "scale")
GRADIENT = ("upstream", "loss")
SHOWN = (
    *(
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
    ),
)


def option(*names: str, help: str, metavar: str, complete: Any = None, default: str | None = None) -> Declared:
    """An option with a word after it."""
    return Annotated[str | None, typer.Option(*names, metavar=metavar, help=help, autocompletion=complete)], default


def options(*names: str, help: str, metavar: str, complete: Any = None) -> Declared:
    """An option that may be given several times."""
    said = typer.Option(*names, metavar=metavar, help=help, autocompletion=complete, show_default=False)
    return Annotated[list[str] | None, said], None


def flag(name: str, *, help: str) -> Declared:
    """An option without a word after it."""
    return Annotated[bool, typer.Option(name, help=help)], False


def argument(metavar: str, *, help: str, complete: Any = None, default: Any = ...) -> Declared:
    """A word without an option before it; needed, where nothing stands for it."""
    said = typer.Argument(metavar=metavar, help=help, autocompletion=complete, show_default=False)
    return Annotated[str | None if default is None else str, said], default


def arguments(metavar: str, *, help: str, complete: Any = None, default: Any = ...) -> Declared:
    """All words without an option before them."""
    said = typer.Argument(metavar=metavar, help=help, autocompletion=complete, show_default=False)
    return Annotated[list[str] | None if default is None else list[str], said], default


def shared(say: Say) -> dict[str, Declared]:
    """Every option that several commands share, by the name of its parameter."""
    t = say.text
    return {
        "problem": argument("[PROBLEM]", help=t("A problem file (TOML or JSON), - for standard input, or the id of a worked example."), complete=example_ids, default=None),
        "queries": option("-Q", metavar="M", help=t("Queries, one row a token: \"1 2; 3 4\", @FILE, or - for standard input.")),
        "keys": option("-K", metavar="M", help=t("Keys, one row a token.")),
        "values": option("-V", metavar="M", help=t("Values, one row a token.")),
        "text": option("--text", metavar="TEXT", help=t("Start from words, like --text \"I like tea\", with small built-in weights that are shown.")),
        "set_": options("--set", metavar="NAME=M", help=t("Any other input or setting of the model, like --set X=\"1 0; 0 1\" or --set eta=0.1.")),
        "model": option("--model", metavar="NAME", help=t("The model; without it, the one whose inputs are given."), complete=model_names),
        "causal": flag("--causal", help=t("A token sees itself and what came before.")),
        "mask": option("--mask", metavar="M", help=t("Numbers that are added to the scaled scores: 0 = visible, -inf = hidden.")),
        "scale": option("--scale", metavar="sqrt|none|NUMBER", help=t("Divide the scores by √d_k (sqrt, the default), not at all, or multiply them by a number.")),
        "upstream": option("--upstream", metavar="M", help=t("The gradient at the output, in the output's shape.")),
        "loss": option("--loss", metavar="TEXT", help=t("A loss instead: sum(O), O[1,1] + 2*O[1,2], 1/2*sum((O-T)^2), -ln A[1,2], cross_entropy(logits, T), nll(A, T), or a sum of such, each with a factor.")),
        "verify": flag("--verify", help=t("Check every gradient against finite differences.")),
        "step": options("--step", metavar="ID", help=t("Show only this step (can be given several times)."), complete=step_ids),
        "expand": flag("--expand", help=t("Show the arithmetic of every cell.")),
        "decimals": option("--decimals", metavar="N", help=t("Decimals to show, 0 to 15 (default: 3).")),
        "carry": flag("--carry", help=t("Carry rounded values on, as one does on paper.")),
        "rounding": option("--rounding", metavar="away|even", help=t("Where a 5 goes with --carry: away from zero (school) or to the even digit."), default="away"),
        "exact": flag("--exact", help=t("Exact results like √2/2 and e^-1 (needs the extra attncli[exact]).")),
        "format": option("--format", metavar="NAME", help=t("table, json, markdown, latex, csv, npz, html, svg or xlsx; by default as -o FILE ends, else table."), complete=format_names),
        "output": option("-o", "--output", metavar="FILE", help=t("Write to this file instead of the screen.")),
        "force": flag("--force", help=t("Write over a file that attncli did not write itself.")),
        "layout": option("--layout", metavar="rows|columns", help=t("Tokens as rows (the default) or as columns, for input and output.")),
        "full": flag("--full", help=t("Show large matrices whole.")),
        "lang": option("--lang", metavar="en|zh", help=t("Language of everything shown.")),
        "map_": options("--map", metavar="FROM=STEP,...", help=t('Names of the sheet that mean steps, like --map "attn_probs=A,ctx=O".')),
    }  # fmt: skip


def shared_by_reports(say: Say) -> dict[str, Declared]:
    """The shared options, for commands whose result is a report: those come in fewer formats."""
    help = say.text("table, json, markdown or csv; by default as -o FILE ends, else table.")
    return {**shared(say), "format": option("--format", metavar="NAME", help=help)}


def arithmetic_of(words: Mapping[str, Any]) -> dict[str, Any]:
    """What --carry, --exact, --decimals and --rounding say, for `run`."""
    from attncli.problems.settings import whole_number

    rounding = words["rounding"] if words.get("rounding") is not None else "away"
    if rounding not in ("away", "even"):
        raise unknown(Message(N_("The rounding")), rounding, ["away", "even"])
    if words.get("carry") and words.get("exact"):
        raise InputError("--carry rounds every step and --exact rounds none. Give one of them.")
    return {
        "arithmetic": "hand" if words.get("carry") else "exact" if words.get("exact") else "floating",
        "decimals": whole_number("--decimals", words.get("decimals"), 0, 15),
        "rounding": rounding,
    }


# Help pages.

#: What Typer itself says about its own options, for the catalogues.
_TYPERS_OWN = (
    N_("Show this message and exit."),
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
)


def _page(command: Any, ctx: Any, say: Say) -> str:
    """The help page of a command or of a group: one layout in every language, as wide as the screen."""
    return "\n".join(_lines(command, ctx, say)) + "\n"


def _lines(command: Any, ctx: Any, say: Say) -> Iterator[str]:
    screen = min(width(), WIDTH)
    group = hasattr(command, "list_commands") and command.list_commands(ctx)
    parameters = [param for param in command.get_params(ctx) if not param.hidden]
    words = [param for param in parameters if param.param_type_name == "argument"]
    named = [param for param in parameters if param.param_type_name == "option"]
    yield _usage(ctx.command_path, [param.metavar for param in words], bool(group), say, screen)
    yield ""
    yield wrap(command.help or "", screen, "  ", "  ")
    yield from _section(say.text("Arguments:"), [(param.metavar, _said(param, say)) for param in words], screen)
    yield from _section(say.text("Options:"), [(_names(param), _said(param, say)) for param in named], screen)
    if group:
        rows = [(name, command.get_command(ctx, name).help or "") for name in group]
        yield from _section(say.text("Commands:"), rows, screen)


def _usage(path: str, arguments: Sequence[str], group: bool, say: Say, screen: int) -> str:
    words = [path, say.text("[OPTIONS]"), *arguments]
    if group:
        words.append(say.text("COMMAND …"))
    start = say.text("Usage: ")
    return wrap(" ".join(words), screen, start, " " * columns(start))


def _section(title: str, rows: Sequence[tuple[str, str]], screen: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from definitions(rows, screen, "  ")


def _names(option: Any) -> str:
    """-o, --output FILE"""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag or not option.metavar else f"{names} {option.metavar}"


def _said(parameter: Any, say: Say) -> str:
    text = str(parameter.help or "")
    if text in _TYPERS_OWN:
        text = say.text(text)
    if isinstance(parameter.default, str) and parameter.default:
        text += " " + say.text("[default: {value}]", value=parameter.default)
    if parameter.required:
        text += " " + say.text("[required]")
    return text


# What a shell may complete: silent where it cannot know.


def starting(words: Iterable[str], incomplete: str) -> list[str]:
    """The words that begin like this."""
    return [word for word in words if word.startswith(incomplete)]


def example_ids(incomplete: str) -> list[str]:
    """Ids of the worked examples."""
    from attncli.problems import library

    return starting(library.ids(), incomplete)


def model_names(incomplete: str) -> list[str]:
    """Names of the models."""
    from attncli import models

    return starting(models.names(), incomplete)


def format_names(incomplete: str) -> list[str]:
    """Names of the output formats."""
    from attncli import render

    return starting(render.formats(), incomplete)


def step_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Step ids of the problem that is named on the line, else those that attention and its relatives have."""
    from attncli.core.message import AttnError
    from attncli.problems.request import Stdin, problem_named

    problem = ctx.params.get("problem") or ctx.params.get("exercise")
    try:
        graph = problem_named(problem, Stdin()).graph() if problem else None
    except AttnError:
        graph = None
    return starting(graph.steps if graph is not None else _USUAL, incomplete)


_USUAL = (
    "X", "Q", "K", "V", "scores", "scaled", "masked", "row_max", "shifted", "exp", "row_sum", "A", "O", "G_V", "G_A",
    "weighted", "row_dot", "deviation", "G_masked", "G_scaled", "G_scores", "G_Q", "G_K", "G_W_Q", "G_W_K", "G_W_V",
    "G_X_Q", "G_X_K", "G_X_V", "G_X", "G_E", "E_new",
)  # fmt: skip
