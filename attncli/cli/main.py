"""The entry point: finds the language, runs the command, and says every error in one message."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import cast

import typer

from attncli import __version__
from attncli.cli.options import SHARED, Command, Group, HelpInstead, PlainGroup, where_to_look
from attncli.cli.output import ClosedOutput, OutputError, Say, width
from attncli.core.message import N_, AttnError, Message, closest, of_system
from attncli.locale.fit import definitions, wrap

#: Commands in the order of the help page; each is a file of this name.
COMMANDS = (
    "forward", "backward", "why", "check", "grade", "worksheet", "examples", "models", "compare", "train", "generate", "lab", "practice",
)  # fmt: skip
#: Shows where in the code a fault of our own happened.
_DEBUG = "--debug"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 1 something is wrong, 2 bad usage or input, 130 stopped."""
    # A short run makes many objects and drops few: looking for cycles as often as a server does costs a tenth of it.
    gc.set_threshold(100_000, 50, 100)
    words = list(sys.argv[1:] if argv is None else argv)
    debug = _DEBUG in words
    words = [word for word in words if word != _DEBUG]
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    say = Say(words, os.environ)
    try:
        return _run(words, say)
    except KeyboardInterrupt:
        say.error(Message("stopped."))
        return 128 + signal.SIGINT
    except Exception as error:  # a fault of our own is said like every other error, in one line
        if debug:
            raise
        return say.error(_fault(error, words))


def entry() -> None:
    """Run the command line and end the process.

    The system takes back a process's memory at once; to let Python take it apart object by object first costs a
    tenth of a short run. Everything was written and closed by then.
    """
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _run(words: list[str], say: Say) -> int:
    try:
        say.check()
        status = application(say)(args=words, prog_name="attncli", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except AttnError as error:
        return say.error(error.message)
    except HelpInstead as page:
        say.out(f"{page}\n")
        return 0
    except typer.TyperException as error:
        return say.error(_wrong_option(error))
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _nobody_reads()
    except BrokenPipeError:
        return _nobody_reads()
    except RecursionError:
        return say.error(Message("the input is nested too deeply to be read. Write it with fewer levels."))
    except MemoryError:
        return say.error(Message("this needs more memory than there is. Use smaller matrices."))
    except OutputError as error:
        _drop_output()
        return say.error(_not_written(error))
    except OSError as error:
        return say.error(_not_read(error))


def application(say: Say) -> PlainGroup:
    """The command line in one language."""
    commands = Group(
        N_("Transformer attention by hand: every step, every gradient, with its arithmetic."),
        lambda: COMMANDS,
        _command,
    )
    app = typer.Typer(
        cls=commands.typer_class(),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"], "obj": say},
        help=say.text(commands.help),
    )
    debugged = say.text("After a fault of attncli itself, show where in its code.")

    @app.callback(invoke_without_command=True)
    def start(
        ctx: typer.Context,
        version: bool = typer.Option(False, "--version", help=say.text("Show the version and stop.")),
        debug: bool = typer.Option(False, _DEBUG, help=debugged),
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text(SHARED["lang"].help)),
    ) -> None:
        if version:
            say.out(f"attncli {__version__}\n")
            raise typer.Exit
        if ctx.invoked_subcommand is None:
            say.out(_greeting(say))

    return cast(PlainGroup, typer.main.get_command(app))


def _command(name: str) -> Command | Group:
    found: Command | Group = importlib.import_module(f"attncli.cli.{name}").COMMAND
    return found


def _greeting(say: Say) -> str:
    """What `attncli` alone says: three things to try."""
    t, room = say.text, width()
    to_try = {
        'attncli forward -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"': t("one query, two keys: every step from Q, K, V to the output"),
        "attncli examples run a1-pronoun": t("the first exercise, with the numbers its source gives and what to notice"),
        'attncli backward a1-pronoun --upstream "1 2" --expand': t("backwards: every gradient, and where every number comes from"),
    }  # fmt: skip
    more = [
        ("attncli practice", t("exercises line by line; what went wrong comes back")),
        ("attncli worksheet --list", t("sheets to print for a class, with the answer key")),
    ]
    lines = [wrap(t("attncli shows attention as you would calculate it by hand, step by step."), room), ""]
    lines += [t("Three things to try:"), ""]
    for command, what in to_try.items():
        # A command stays on one line, to be copied.
        lines += [f"  {command}", wrap(what, room, " " * 6, " " * 6)]
    lines += ["", t("To learn by doing, and to teach:"), "", *definitions(more, room, "  "), ""]
    lines += [wrap(t("All exercises: attncli examples list. All commands: attncli --help."), room), ""]
    return "\n".join(lines)


# What went wrong.


def _wrong_option(error: typer.TyperException) -> Message:
    """What to say of an option that does not exist, or that has or lacks a word after it."""
    ctx, name = getattr(error, "ctx", None), getattr(error, "option_name", None)
    hint = where_to_look(ctx)
    if ctx is None or name is None:
        return Message("{what} {hint}", what=error.format_message(), hint=hint)
    known = next((param for param in ctx.command.get_params(ctx) if name in param.opts), None)
    if known is not None and known.is_flag:
        return Message("the option {name} takes no value. {hint}", name=name, hint=hint)
    if known is not None:
        return Message("the option {name} needs a value after it. {hint}", name=name, hint=hint)
    if name[1:2].isdigit() or name[1:2] == ".":
        return Message(
            '“{name}” was given where an option is expected. Put quotes around a matrix, like -Q "-1 2". {hint}',
            name=name, hint=hint,
        )  # fmt: skip
    elsewhere = ", ".join(f"attncli {path}" for path in _commands_with(name))
    if elsewhere:
        return Message(
            "the option {name} does not belong here, but to {commands}. {hint}",
            name=name, commands=elsewhere, hint=hint,
        )  # fmt: skip
    likely = closest(name, [option for param in ctx.command.params for option in param.opts])
    if likely:
        return Message(
            "the option {name} does not exist. Did you mean {likely}? {hint}", name=name, likely=likely, hint=hint
        )
    return Message("the option {name} does not exist. {hint}", name=name, hint=hint)


def _commands_with(option: str) -> Iterator[str]:
    """The commands that have this option; the experiments of the lab are not looked at, for they load NumPy."""
    for name in COMMANDS:
        found = _command(name)
        parts = [""] if isinstance(found, Command) else found.names() if name != "lab" else []
        for part in parts:
            command = found.part(part) if isinstance(found, Group) else found
            if isinstance(command, Command) and any(option in word.options for word in command.words.values()):
                yield f"{name} {part}".strip()


def _fault(error: BaseException, words: Sequence[str]) -> Message:
    """What to say where attncli itself has failed: everything that a report needs, in one line."""
    from attncli.core.message import where_it_failed

    return Message(
        "this is a fault of attncli itself, not of what was given: {what}. Please report it with this line. Version {version}, Python {python}, command: attncli {command}",
        what=where_it_failed(error),
        version=__version__,
        python=".".join(map(str, sys.version_info[:3])),
        command=shlex.join(word[:100] for word in words)[:600],
    )


def _not_read(error: OSError) -> Message:
    """What to say where reading failed at a place that has no word of its own for it."""
    if error.filename:
        return Message("{path}: cannot be read ({reason}).", path=os.fsdecode(error.filename), reason=of_system(error))
    return Message("the input cannot be read ({reason}).", reason=of_system(error))


def _not_written(error: OSError) -> Message:
    if error.errno is None:
        return Message("the output was closed before everything was written.")
    return Message("cannot write the output ({reason}). Check the place and the permissions.", reason=of_system(error))


def _nobody_reads() -> int:
    """Whoever reads has had enough, like `| head -1`: that is no error."""
    _drop_output()
    return 0


def _drop_output() -> None:
    """What is still to be written goes nowhere: Python would try again at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
