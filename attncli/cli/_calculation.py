"""From the words of a command to a problem, its run, and the output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attncli.cli._say import Say
from attncli.matrix import Matrix
from attncli.message import N_, AttnError, InputError, Message, unknown
from attncli.problems.problem import Problem
from attncli.problems.source import MOST_TEXT_BYTES, read_matrix


class Stdin:
    """Standard input, which can be read once."""

    def __init__(self) -> None:
        self.used = False

    def __call__(self) -> bytes:
        if self.used:
            raise InputError("Only one input can come from standard input (-). Give the others as text or as @FILE.")
        self.used = True
        if sys.stdin is None:
            raise InputError("Standard input is closed. Give the matrix as text or as @FILE.")
        data = sys.stdin.buffer.read(MOST_TEXT_BYTES + 1)
        if len(data) > MOST_TEXT_BYTES:
            raise InputError(
                "Standard input has more than {limit} bytes, the limit here.", limit=f"{MOST_TEXT_BYTES:,}"
            )
        return data


def problem_of(name: str | None, words: Mapping[str, Any], say: Say | None) -> Problem:
    """The problem that a command line describes: a file or an example, changed by options.

    Parameters
    ----------
    name : file, "-" or example id, or None
    words : the shared options by parameter name
    """
    stdin = Stdin()
    problem = _named(name, stdin) if name is not None else None
    layout = words.get("layout") or (problem.layout if problem is not None else "rows")
    if layout not in ("rows", "columns"):
        raise unknown(Message(N_("The layout")), layout, ["rows", "columns"])
    inputs, texts, settings, extras = _given(words, problem, stdin)
    if problem is None:
        if not inputs and not texts:
            raise InputError(
                "There is nothing to calculate yet. Give matrices, {example}, or a problem file, or the id of a worked example"
                " (attncli examples list).",
                example='-Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"',
            )
        model = words.get("model") or _model_for(set(inputs) | set(texts))
        problem = Problem(model=model)
    problem = problem.changed(
        model=words.get("model") or problem.model,
        inputs={**problem.inputs, **inputs},
        texts={**problem.texts, **texts},
        settings={**problem.settings, **settings},
        extras={**problem.extras, **extras},
        layout=layout,
    )
    if words.get("upstream") is not None or words.get("loss") is not None:
        problem = problem.changed(
            upstream=_option("--upstream", words["upstream"], stdin) if words.get("upstream") is not None else None,
            loss=words.get("loss"),
        )
    return problem


def _named(name: str, stdin: Stdin) -> Problem:
    from attncli.problems import file, library
    from attncli.problems.source import as_text

    if name == "-":
        where = Message(N_("standard input"))
        try:
            return file.parse(as_text(stdin(), where))
        except AttnError as error:
            raise error.at(where) from None
    if not Path(name).exists() and not name.endswith((".toml", ".json")) and "/" not in name:
        return library.load(name)
    return file.load(name)


def _option(option: str, text: str, stdin: Stdin) -> Matrix:
    try:
        return read_matrix(text, stdin)
    except AttnError as error:
        raise error.at(option) from None


def _given(
    words: Mapping[str, Any], problem: Problem | None, stdin: Stdin
) -> tuple[dict[str, Matrix], dict[str, str], dict[str, Any], dict[str, Matrix]]:
    """Inputs, texts, settings and targets from -Q, -K, -V, --set, --causal, --mask and --scale."""
    inputs: dict[str, Matrix] = {}
    texts: dict[str, str] = {}
    settings: dict[str, Any] = {}
    extras: dict[str, Matrix] = {}
    for name, parameter in (("Q", "queries"), ("K", "keys"), ("V", "values")):
        if words.get(parameter) is not None:
            inputs[name] = _option(f"-{name}", words[parameter], stdin)
    kinds, setting_names = _known(words, problem)
    for text in words.get("set_") or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(
                '--set: “{text}” has no name. Write --set NAME=VALUE, like --set X="1 0; 0 1".', text=text[:40]
            )
        if kinds.get(name) == "text":
            texts[name] = value
        elif name in setting_names:
            settings[name] = value
        elif name in kinds or not (words.get("loss") or (problem is not None and problem.loss)):
            inputs[name] = _option(f"--set {name}", value, stdin)
        else:
            extras[name] = _option(f"--set {name}", value, stdin)
    if words.get("causal"):
        settings["causal"] = True
    if words.get("mask") is not None:
        settings["mask"] = _option("--mask", words["mask"], stdin)
    if words.get("scale") is not None:
        settings["scale"] = words["scale"]
    return inputs, texts, settings, extras


def _known(words: Mapping[str, Any], problem: Problem | None) -> tuple[dict[str, str], set[str]]:
    """Kinds of the inputs and names of the settings of the model, or of all models where none is named yet."""
    if not words.get("set_"):
        return {}, set()
    from attncli import models

    named = words.get("model") or (problem.model if problem is not None else None)
    found = [models.get(name) for name in ([named] if named else models.names())]
    kinds = {argument.name: argument.kind for model in found for argument in model.arguments}
    return kinds, {setting.name for model in found for setting in model.settings} - set(kinds)


def _model_for(names: set[str]) -> str:
    """The model whose required inputs are given and that knows all of them."""
    if {"Q", "K", "V"} <= names:
        return "attention"
    from attncli import models

    fitting = []
    for name in models.names():
        model = models.get(name)
        known = {argument.name for argument in model.arguments}
        required = {argument.name for argument in model.arguments if argument.required}
        if required <= names <= known:
            fitting.append((len(required), name))
    if fitting:
        return max(fitting)[1]
    if names & {"Q", "K", "V"}:
        return "attention"
    raise InputError(
        "No model takes just {names}. Name one with --model, and see what it takes with: attncli models NAME",
        names=", ".join(sorted(names)),
    )


def calculate(say: Say, *, backward: bool, verify: bool = False, **words: Any) -> int:
    """Run a problem and write it in the format that was asked for; the exit status."""
    from attncli.run import run

    problem = problem_of(words.get("problem"), words, say)
    result = run(
        problem,
        backward=backward,
        arithmetic=_arithmetic(words),
        decimals=whole_number("--decimals", words.get("decimals"), 0, 15),
        rounding=words.get("rounding") or "away",
        steps=words.get("step") or (),
        check=verify,
    )
    show(say, result, words)
    return 1 if result.verification is not None and not result.verification.ok else 0


def _arithmetic(words: Mapping[str, Any]) -> str:
    if words.get("carry") and words.get("exact"):
        raise InputError("--carry rounds every step and --exact rounds none. Give one of them.")
    return "hand" if words.get("carry") else "exact" if words.get("exact") else "floating"


def whole_number(option: str, text: str | None, least: int, most: int) -> int | None:
    """The whole number that an option gives, or None where it is not given.

    Raises
    ------
    InputError
        It is not one, or out of range.
    """
    if text is None:
        return None
    digits = text.strip().removeprefix("-")
    number = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
    if number is None or not least <= number <= most:
        raise InputError(
            "{option}: “{given}” does not work here. Write a whole number from {least} to {most}.",
            option=option,
            given=text[:40],
            least=least,
            most=most,
        )
    return number


_ENDINGS = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".csv": "csv", ".npz": "npz",
    ".html": "html", ".htm": "html", ".svg": "svg", ".txt": "table",
}  # fmt: skip


def show(
    say: Say, result: Any, words: Mapping[str, Any], before: str = "", after: Callable[[], str] | None = None
) -> None:
    """Write a run to the screen or to a file."""
    from attncli import render

    target = words.get("output")
    format = words.get("format") or (_ENDINGS.get(Path(target).suffix.lower(), "table") if target else "table")
    module = render.get(format)
    view = _view(say, result, words, format, to_file=target is not None)
    if format == "table" and target is None:
        from attncli.cli._terminal import print_table

        print_table(say, view)
        return
    content: str | bytes = module.render(view)
    if target is not None:
        write_file(target, content if isinstance(content, bytes) else content.encode("utf-8"))
    elif isinstance(content, bytes):
        if sys.stdout is not None and sys.stdout.isatty():
            raise InputError("{format} is not for a screen. Give a file: -o trace.{format}", format=format)
        say.out_bytes(content)
    else:
        say.out(content)


def _view(say: Say, result: Any, words: Mapping[str, Any], format: str, *, to_file: bool) -> Any:
    from attncli.locale import language
    from attncli.render._view import view

    own = language(say.code) if to_file else say.language
    width = None
    if format in ("table", "svg"):
        from attncli.cli._terminal import width as terminal_width

        width = terminal_width(to_file=to_file)
    return view(
        result,
        own,
        expand=bool(words.get("expand")),
        layout=result.problem.layout,
        width=width,
        full=bool(words.get("full")),
    )


def write_file(name: str, data: bytes) -> None:
    """Write a file whole or not at all: beside it first, then renamed.

    Raises
    ------
    InputError
        It cannot be written there.
    """
    import os
    import tempfile

    path = Path(name)
    beside = None
    try:
        if path.is_dir():
            raise InputError(
                "-o {path}: this is a folder. Give a file name in it, like {example}.",
                path=name,
                example=str(path / "trace.md"),
            )
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or pipe has nothing to rename onto
            return
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask)
        Path(beside).replace(path)
    except OSError as error:
        raise InputError(
            "-o {path}: cannot be written ({reason}). Check that the folder exists and that you may write there.",
            path=name,
            reason=error.strerror or str(error),
        ) from None
    finally:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
