"""The entry point: finds the language, runs the command, and says every error in one message."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from attncli import __version__
from attncli.cli._light import command_of, with_help
from attncli.cli._say import ClosedOutput, OutputClosedError, OutputError, Say, drop_output

#: Commands in the order of the help page; each is a file of this name.
COMMANDS = (
    "forward",
    "backward",
    "why",
    "check",
    "grade",
    "worksheet",
    "examples",
    "models",
    "compare",
    "train",
    "generate",
    "lab",
    "practice",
)


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
    say = Say.from_words(words, os.environ)
    try:
        return _run(words, say)
    except KeyboardInterrupt:
        say.error(say.interrupted())
        return 128 + signal.SIGINT
    except Exception as error:  # a fault of our own is said like every other error, in one line
        if debug:
            raise
        return say.error(say.fault(error, words))


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
    from attncli.core.message import AttnError

    try:
        say.check()
        status = application(say)(args=words, prog_name="attncli", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except AttnError as error:
        return say.error(error.message)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            say.out(f"{error.ctx.get_help()}\n")  # type: ignore[attr-defined]
            return 0
        from attncli.cli._usage import usage_message

        return say.error(usage_message(error))
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _nobody_reads()
    except BrokenPipeError:
        return _nobody_reads()
    except RecursionError:
        return say.error(say.too_deep())
    except MemoryError:
        return say.error(say.too_large())
    except (OutputError, OutputClosedError) as error:
        return say.error(say.output_failed(error))
    except OSError as error:
        return say.error(say.read_failed(error))


def _nobody_reads() -> int:
    """Whoever reads has had enough, like `| head -1`: that is no error."""
    drop_output()
    return 0


def application(say: Say) -> Any:
    """The Typer application in one language."""

    class Commands(TyperGroup):
        """Commands that are imported only when they are used."""

        def list_commands(self, ctx: Any) -> list[str]:
            return list(COMMANDS)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in COMMANDS:
                return None
            import importlib

            return with_help(importlib.import_module(f"attncli.cli.{cmd_name}").command(say), say)

    app = typer.Typer(
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=say.text("Transformer attention by hand: every step, every gradient, with its arithmetic."),
    )

    @app.callback(invoke_without_command=True)
    def start(
        ctx: typer.Context,
        version: bool = typer.Option(False, "--version", help=say.text("Show the version and stop.")),
        debug: bool = typer.Option(
            False, _DEBUG, help=say.text("After a fault of attncli itself, show where in its code.")
        ),
        lang: str = typer.Option("", "--lang", metavar="en|zh", help=say.text("Language of everything shown.")),
    ) -> None:
        if version:
            say.out(f"attncli {__version__}\n")
            raise typer.Exit
        if ctx.invoked_subcommand is None:
            from attncli.cli._greeting import greeting

            say.out(greeting(say))

    return with_help(command_of(app), say)
