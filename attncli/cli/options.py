"""Commands and their words: how they are read, their help pages, and what a shell may complete."""

# Annotations are real objects here (no `from __future__ import annotations`): Typer reads them.
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from attncli.cli.output import WIDTH, Output, Say, Words, width
from attncli.core.message import N_, InputError, Message, closest
from attncli.core.record import Record
from attncli.locale.fit import columns, definitions, wrap

#: What a shell may offer for a word, from what stands before it.
Complete = Callable[[Words], Iterable[str]]

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
                raise _missing(param.metavar or param.name, ctx)
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
        formatter.write(say.fitted("\n".join(_page(self, ctx, say)) + "\n"))


def _refuse_twice(order: Sequence[Any]) -> None:
    """Refuse an option that is given twice, where Typer would keep the last."""
    seen: set[str] = set()
    for param in order:
        if param.param_type_name == "option" and not param.multiple and not param.is_flag:
            if param.name in seen:
                raise InputError("{option} is given twice. Keep one.", option=max(param.opts, key=len))
            seen.add(param.name)


def _missing(name: str, ctx: typer.Context) -> InputError:
    return InputError("{name} is missing. See {command} --help.", name=name, command=ctx.command_path)


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
            raise _missing("COMMAND", ctx)
        return rest[1:]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        if self.get_command(ctx, args[0]) is not None or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        likely, hint = closest(args[0], self.list_commands(ctx)), where_to_look(ctx)
        if likely is None:
            raise InputError("the command “{name}” does not exist. {hint}", name=args[0], hint=hint)
        raise InputError(
            "the command “{name}” does not exist. Did you mean {likely}? {hint}", name=args[0], likely=likely, hint=hint
        )


class HelpInstead(Exception):
    """Nothing is asked for: the help page says what could be."""


def where_to_look(ctx: typer.Context | None) -> Message:
    """The last sentence of a message about words on the command line."""
    return Message("See {command} --help.", command="attncli" if ctx is None else ctx.command_path)


class Word(Record):
    """Something that may be written behind a command.

    Parameters
    ----------
    spec : as the help page writes it, which says the rest: "-o, --output FILE" an option with a word after it, "--full" one
        without, "[PROBLEM]" a word by itself that may be left out, "SHEETS..." one or more of them
    help : what it means
    complete : what a shell may offer for it
    many : an option that may be given several times
    """

    spec: str
    help: str
    complete: Complete | None = None
    default: str | None = None
    many: bool = False

    @property
    def is_option(self) -> bool:
        return self.spec.startswith("-")

    @property
    def options(self) -> list[str]:
        """The names of an option."""
        return [word.rstrip(",") for word in self.spec.split() if word.startswith("-")]

    @property
    def metavar(self) -> str:
        """What is written for the word itself; nothing for a flag."""
        return " ".join(word for word in self.spec.split() if not (self.is_option and word.startswith("-")))

    @property
    def is_flag(self) -> bool:
        return not self.metavar

    @property
    def is_list(self) -> bool:
        return self.many or self.spec.endswith("...")

    @property
    def is_required(self) -> bool:
        return not self.is_option and not all(word.startswith("[") for word in self.spec.split())

    def parameter(self, name: str, say: Say) -> inspect.Parameter:
        """The parameter of a function that Typer reads this from."""
        said: dict[str, Any] = {"help": say.text(self.help), "autocompletion": _offered(self.complete)}
        kind: Any = list[str] if self.is_list else str
        default: Any = self.default
        if self.is_flag:
            kind, info, default = bool, typer.Option(*self.options, **said), False
        elif self.is_option:
            kind, info = kind | None, typer.Option(*self.options, metavar=self.metavar, **said)
        else:
            info = typer.Argument(metavar=self.metavar, **said)
            kind, default = (kind, ...) if self.is_required else (kind | None, default)
        annotation = Annotated[kind, info]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class Command(Record):
    """A command: what it is for, what it does with its words (the exit status comes back), and which words there are."""

    help: str
    run: Callable[[Output, Words], int]
    words: Mapping[str, Word]

    def made(self, name: str, say: Say) -> PlainCommand:
        """The command in one language, as Typer has it."""

        def command(**given: Any) -> int:
            words = {name: given[name] or () if word.is_list else given[name] for name, word in self.words.items()}
            return self.run(Output(say, words), words)

        parameters = [word.parameter(name, say) for name, word in self.words.items()]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        app.command(name, cls=PlainCommand, help=say.text(self.help))(command)
        return cast(PlainCommand, typer.main.get_command(app))


class Group(Record):
    """Commands under one name, each looked up only when it is asked for: some load NumPy.

    Parameters
    ----------
    names : those there are; `part`: the one of a name
    """

    help: str
    names: Callable[[], Sequence[str]]
    part: "Callable[[str], Command | Group]"

    def typer_class(self) -> type[PlainGroup]:
        """The class by which Typer finds the commands."""
        group = self

        class Parts(PlainGroup):
            def list_commands(self, ctx: Any) -> list[str]:
                return list(group.names())

            def get_command(self, ctx: Any, cmd_name: str) -> PlainCommand | PlainGroup | None:
                return group.part(cmd_name).made(cmd_name, ctx.obj) if cmd_name in group.names() else None

        return Parts

    def made(self, name: str, say: Say) -> PlainGroup:
        """The group in one language, as Typer has it."""
        app = typer.Typer(
            cls=self.typer_class(), rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=say.text(self.help),
        )  # fmt: skip

        @app.callback()
        def start(lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text(SHARED["lang"].help))) -> None:
            """--lang may stand before the command's name, too; the language was found before the words were read."""

        return cast(PlainGroup, typer.main.get_command(app))


def as_typed(words: Mapping[str, Word], given: Words) -> list[str]:
    """What somebody types who gives these values to these words."""
    typed: list[str] = []
    for name, word in words.items():
        value = given.get(name)
        for one in (value or ()) if word.is_list else [value]:
            if one not in (None, False, word.default):
                typed += [*word.options[:1], *([] if word.is_flag else [one])]
    return typed


# Words that several commands share.


def _offered(complete: Complete | None) -> Callable[..., list[str]] | None:
    """What a shell is offered: of all words those that begin like the one that is being typed."""
    if complete is None:
        return None

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        return [word for word in complete(ctx.params) if word.startswith(incomplete)]

    return offered


def example_ids(words: Words) -> Iterable[str]:
    """Ids of the worked examples."""
    from attncli.problems import library

    return library.ids()


def model_names(words: Words) -> Iterable[str]:
    """Names of the models."""
    from attncli import models

    return models.names()


def _format_names(words: Words) -> Iterable[str]:
    from attncli import render

    return render.formats()


def step_ids(words: Words) -> Iterable[str]:
    """Step ids of the problem that is named on the line, else those that attention and its relatives have."""
    from attncli.core.message import AttnError
    from attncli.problems.request import problem_named

    problem = words.get("problem") or words.get("exercise")
    try:
        return problem_named(problem).graph().steps if problem else _USUAL
    except AttnError:
        return _USUAL


_USUAL = (
    "X", "Q", "K", "V", "scores", "scaled", "masked", "row_max", "shifted", "exp", "row_sum", "A", "O", "G_V", "G_A",
    "weighted", "row_dot", "deviation", "G_masked", "G_scaled", "G_scores", "G_Q", "G_K", "G_W_Q", "G_W_K", "G_W_V",
    "G_X_Q", "G_X_K", "G_X_V", "G_X", "G_E", "E_new",
)  # fmt: skip

SHARED: Mapping[str, Word] = {
    "problem": Word("[PROBLEM]", N_("A problem file (TOML or JSON), - for standard input, or the id of a worked example."), example_ids),
    "queries": Word("-Q M", N_("Queries, one row a token: \"1 2; 3 4\", @FILE, or - for standard input.")),
    "keys": Word("-K M", N_("Keys, one row a token.")),
    "values": Word("-V M", N_("Values, one row a token.")),
    "text": Word("--text TEXT", N_("Start from words, like --text \"I like tea\", with small built-in weights that are shown.")),
    "set_": Word("--set NAME=M", N_("Any other input or setting of the model, like --set X=\"1 0; 0 1\" or --set eta=0.1."), many=True),
    "model": Word("--model NAME", N_("The model; without it, the one whose inputs are given."), model_names),
    "causal": Word("--causal", N_("A token sees itself and what came before.")),
    "mask": Word("--mask M", N_("Numbers that are added to the scaled scores: 0 = visible, -inf = hidden.")),
    "scale": Word("--scale sqrt|none|NUMBER", N_("Divide the scores by √d_k (sqrt, the default), not at all, or multiply them by a number.")),
    "upstream": Word("--upstream M", N_("The gradient at the output, in the output's shape.")),
    "loss": Word("--loss TEXT", N_("A loss instead: sum(O), O[1,1] + 2*O[1,2], 1/2*sum((O-T)^2), -ln A[1,2], cross_entropy(logits, T), nll(A, T), or a sum of such, each with a factor.")),
    "verify": Word("--verify", N_("Check every gradient against finite differences.")),
    "step": Word("--step ID", N_("Show only this step (can be given several times)."), step_ids, many=True),
    "expand": Word("--expand", N_("Show the arithmetic of every cell.")),
    "decimals": Word("--decimals N", N_("Decimals to show, 0 to 15 (default: 3).")),
    "carry": Word("--carry", N_("Carry rounded values on, as one does on paper.")),
    "rounding": Word("--rounding away|even", N_("Where a 5 goes with --carry: away from zero (school) or to the even digit."), default="away"),
    "exact": Word("--exact", N_("Exact results like √2/2 and e^-1 (needs the extra attncli[exact]).")),
    "format": Word("--format NAME", N_("table, json, markdown, latex, csv, npz, html, svg or xlsx; by default as -o FILE ends, else table."), _format_names),
    "output": Word("-o, --output FILE", N_("Write to this file instead of the screen.")),
    "force": Word("--force", N_("Write over a file that attncli did not write itself.")),
    "layout": Word("--layout rows|columns", N_("Tokens as rows (the default) or as columns, for input and output.")),
    "full": Word("--full", N_("Show large matrices whole.")),
    "lang": Word("--lang en|zh", N_("Language of everything shown.")),
    "map_": Word("--map FROM=STEP,...", N_('Names of the sheet that mean steps, like --map "attn_probs=A,ctx=O".'), many=True),
}  # fmt: skip
INPUTS = ("queries", "keys", "values", "text", "set_", "model", "causal", "mask", "scale")
GRADIENT = ("upstream", "loss")
ARITHMETIC = ("decimals", "carry", "rounding", "exact")
SHOWN = ("step", "expand", *ARITHMETIC, "format", "output", "force", "layout", "full", "lang")
#: A result that is a report comes in fewer formats.
REPORT_FORMAT = {
    "format": Word("--format NAME", N_("table, json, markdown or csv; by default as -o FILE ends, else table."))
}


def shared(*names: str) -> dict[str, Word]:
    """The shared words of these names."""
    return {name: SHARED[name] for name in names}


# Help pages.

#: What Typer itself says about its own options, for the catalogues.
_TYPERS_OWN = (
    N_("Show this message and exit."),
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
)


def _page(command: Any, ctx: typer.Context, say: Say) -> Iterator[str]:
    """The help page of a command or of a group: one layout in every language, as wide as the screen."""
    screen = min(width(), WIDTH)
    names = command.list_commands(ctx) if hasattr(command, "list_commands") else []
    parameters = [param for param in command.get_params(ctx) if not param.hidden]
    arguments = [param for param in parameters if param.param_type_name == "argument"]
    options = [param for param in parameters if param.param_type_name == "option"]
    usage = [ctx.command_path, say.text("[OPTIONS]"), *(param.metavar for param in arguments)]
    start = say.text("Usage: ")
    yield wrap(" ".join([*usage, say.text("COMMAND …")] if names else usage), screen, start, " " * columns(start))
    yield ""
    yield wrap(command.help or "", screen, "  ", "  ")
    for title, rows in (
        (say.text("Arguments:"), [(param.metavar, _said(param, say)) for param in arguments]),
        (say.text("Options:"), [(_spec(param), _said(param, say)) for param in options]),
        (say.text("Commands:"), [(name, command.get_command(ctx, name).help or "") for name in names]),
    ):
        if rows:
            yield from ("", title, *definitions(rows, screen, "  "))


def _spec(option: Any) -> str:
    """-o, --output FILE"""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag or not option.metavar else f"{names} {option.metavar}"


def _said(parameter: Any, say: Say) -> str:
    text = str(parameter.help or "")
    if text in _TYPERS_OWN:
        text = say.text(text)
    if isinstance(parameter.default, str) and parameter.default:
        text += " " + say.text("[default: {value}]", value=parameter.default)
    return text + " " + say.text("[required]") if parameter.required else text
