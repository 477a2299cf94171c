"""A problem as it is asked for: a file or a worked example, changed by what is given beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attncli import models
from attncli.arithmetic.hand import ROUNDINGS
from attncli.core.matrix import Matrix
from attncli.core.message import AttnError, InputError, Message, placed, unknown
from attncli.locale import in_every_language
from attncli.models.model import canonical
from attncli.problems.matrix_text import parse_matrix
from attncli.problems.problem import NOTHING, Problem, Run, run
from attncli.problems.settings import layout_of, read_settings, whole_number
from attncli.problems.source import Stdin, read_matrix, read_value


def problem_of(name: str | None, words: Mapping[str, Any] = NOTHING) -> Problem:
    """The problem that a command line describes: a file or an example, changed by options.

    Parameters
    ----------
    name : file, "-" or example id, or None
    words : the shared options by parameter name
    """
    words = {option: value for option, value in words.items() if value is not None}
    stdin = Stdin()
    problem = problem_named(name, stdin) if name is not None else None
    if "text" in words:
        problem = _of_words(words, name)
    layout = layout_of(words.get("layout")) or (problem.layout if problem is not None else "rows")
    given, places = _given(words, problem, stdin)
    if problem is None:
        if not given["inputs"] and not given["texts"] and "model" not in words:
            raise InputError(
                "There is nothing to calculate yet. Give matrices, {example}, or a problem file, or the id of a worked example"
                " (attncli examples list).",
                example='-Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4"',
            )
        problem = Problem(words["model"] if "model" in words else _model_for({*given["inputs"], *given["texts"]}))
    model = words.get("model", problem.model)
    if given["settings"]:  # read once before the rest, so that an error names the option
        read_settings(models.get(model), given["settings"], layout, places)
    changes: dict[str, Any] = {part: {**getattr(problem, part), **new} for part, new in given.items()}
    if "upstream" in words or "loss" in words:
        changes["upstream"] = _option("--upstream", words["upstream"], stdin) if "upstream" in words else None
        changes["loss"] = words.get("loss")
    return problem.changed(model=model, layout=layout, **changes)


def _of_words(words: Mapping[str, Any], name: str | None) -> Problem:
    """The problem that --text describes."""

    for other, option in (
        (name, name),
        *((words.get(key), f"-{key[0].upper()}") for key in ("queries", "keys", "values")),
    ):
        if other is not None:
            raise InputError(
                "--text brings its own embeddings and weights, so {other} cannot be given with it. Keep one of them.",
                other=option,
            )
    if "model" in words:
        raise InputError("--text brings its own model, embedded_attention. Leave out --model.")
    return from_text(words["text"])


def problem_named(name: str, stdin: Stdin | None = None) -> Problem:
    """The problem in a file, on standard input (-), or the worked example of this id."""
    from attncli.problems import file, library
    from attncli.problems.reading import decoded

    if name == "-":
        where = Message("standard input")
        data = (stdin or Stdin())()
        with placed(where):
            return file.parse(decoded(data))
    if _is_file(name):
        return file.load(name)
    if name[:1].isdigit() or name[:1] in "[-.":
        raise InputError(
            "“{word}” has no option before it, so it should be a problem file or the id of a "
            "worked example. If it belongs to a matrix, put quotes around the whole matrix, "
            'like -Q "1 2".',
            word=name[:40],
        )
    return library.load(name)


def _is_file(name: str) -> bool:
    """Whether a problem's name means a file: it exists, or looks like a path."""
    return os.path.exists(name) or name.lower().endswith((".toml", ".json")) or "/" in name  # noqa: PTH110 - pathlib's own stumbles over a name that is too long


def _option(option: str, text: str, stdin: Stdin) -> Matrix:
    with placed(option):
        return read_matrix(text, stdin)


def _assigned(words: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """What -Q, -K, -V, --causal, --mask, --scale and --set give: the option, the name, and the value as written."""
    for name, word in (("Q", "queries"), ("K", "keys"), ("V", "values")):
        if word in words:
            yield f"-{name}", name, words[word]
    for name in ("causal", "mask", "scale"):
        if words.get(name, False) is not False:
            yield f"--{name}", name, words[name]
    for text in words.get("set_", ()):
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(
                '--set: “{text}” has no name. Write --set NAME=VALUE, like --set X="1 0; 0 1".', text=text[:40]
            )
        yield f"--set {name}", name, value


def _given(
    words: Mapping[str, Any], problem: Problem | None, stdin: Stdin
) -> tuple[dict[str, dict[str, Any]], dict[str, Message | str]]:
    """What is given on the line, by the part of a problem that it belongs to; and where each setting stands."""
    parts: dict[str, dict[str, Any]] = {"inputs": {}, "texts": {}, "settings": {}, "extras": {}}
    kinds = _kinds(words, problem) if words.get("set_") else {}
    places: dict[str, Message | str] = {}
    options: dict[str, str] = {}
    for option, name, value in _assigned(words):
        if options.get(name) == option:
            raise InputError("{option} is given twice. Keep one.", option=option)
        if name in options:
            raise InputError(
                "{first} and {second} are the same thing. Keep one of them.", first=options[name], second=option
            )
        options[name] = option
        part = "inputs" if option == f"-{name}" else "settings" if option == f"--{name}" else kinds.get(canonical(name))
        if part is None:
            raise unknown(
                Message("--set: the input or setting"), name, [known for known in kinds if kinds[known] != "extras"]
            )
        if part == "settings":
            places[name] = option
            if name in _FROM_FILES and isinstance(value, str):
                with placed(option):
                    path, value = read_value(value, stdin)
                if path:
                    places[name] = Message("{where}: {what}", where=option, what=path)
        elif part != "texts":
            value = _option(option, value, stdin)
        parts[part][name] = value
    return parts, places


#: Settings that are matrices, which may stand in a file.
_FROM_FILES = ("mask", "keep", "hide", "window")


def _kinds(words: Mapping[str, Any], problem: Problem | None) -> dict[str, str]:
    """The part that a name belongs to: those of the model, or of all models where none is named yet, and of the loss."""
    named = words.get("model", None if problem is None else problem.model)
    if named is None and all(name in words for name in ("queries", "keys", "values")):
        named = "attention"
    found = [models.get(name) for name in ([named] if named is not None else models.names())]
    arguments = [argument for model in found for argument in model.arguments]
    kinds = {argument.name: "texts" if argument.kind == "text" else "inputs" for argument in arguments}
    for name in sorted({setting.name for model in found for setting in model.settings}):
        kinds.setdefault(name, "settings")
    for name in re.findall(r"\w+", words.get("loss") or (problem.loss if problem is not None else None) or ""):
        kinds.setdefault(name, "extras")
    return kinds


def _model_for(names: set[str]) -> str:
    """The model whose required inputs are given and that knows all of them."""
    if {"Q", "K", "V"} <= names:
        return "attention"
    fitting = []
    general = {canonical(name) for name in names}
    for name in models.names():
        model = models.get(name)
        known = {argument.name for argument in model.arguments}
        required = {argument.name for argument in model.arguments if argument.required}
        if required <= general <= known:
            fitting.append((len(required), name))
    if fitting:
        return max(fitting)[1]
    if names & {"Q", "K", "V"}:
        return "attention"
    raise InputError(
        "No model takes exactly {names}. Choose one with --model; what it takes is shown by: attncli models NAME",
        names=", ".join(sorted(names)),
    )


def calculated(
    name: str | None, problem: Problem, words: Mapping[str, Any], *, backward: bool | None = None, **options: Any
) -> Run:
    """The run that the words ask for; where the problem of a file is wrong by itself, the error names the file."""
    options |= arithmetic_of(words)
    try:
        return run(problem, backward=backward, **options)
    except AttnError:
        if name is not None and not any(words.get(option) for option in _CHANGING) and (name == "-" or _is_file(name)):
            with placed(Message("standard input") if name == "-" else name):
                problem.graph(backward=backward)
        raise


def arithmetic_of(words: Mapping[str, Any]) -> dict[str, Any]:
    """What --carry, --exact, --decimals and --rounding say, for `run`."""
    rounding = words["rounding"]
    if rounding not in ROUNDINGS:
        raise unknown(Message("The rounding"), rounding, ROUNDINGS)
    if words.get("carry") and words.get("exact"):
        raise InputError("--carry rounds every step and --exact rounds none. Give one of them.")
    return {
        "arithmetic": "hand" if words.get("carry") else "exact" if words.get("exact") else "floating",
        "decimals": whole_number("--decimals", words.get("decimals"), 0, 15),
        "rounding": rounding,
    }


#: Options that change the problem that a file describes.
_CHANGING = ("queries", "keys", "values", "set_", "model", "causal", "mask", "scale", "upstream", "loss", "layout")


#: Chosen by hand, not learned: halves, no two rows alike, scores of at most 9 before they are scaled.
_E = "1 1 0 -1; 0.5 1 1 -1; -1 1 0 0.5; 0.5 1 0 0.5; -1 0.5 -0.5 -0.5; -0.5 0.5 1 0.5; -0.5 0.5 0.5 1; -1 1 0 -0.5; 0.5 0 0 1; 0.5 -0.5 -0.5 -1; 1 1 0.5 0.5; 1 0 -1 0.5"
_WEIGHTS = {"W_Q": "1 2; -1 1; 1 -1; 2 2", "W_K": "0 1; -1 1; -2 0; -1 1", "W_V": "1 -1; 0 -2; -2 -2; -1 -1"}
#: Tokens of a text: a screen has room for so many columns.
_MOST_TOKENS = 12
#: Characters of a title.
_LONGEST = 40
#: From here on scripts are written without spaces between words.
_FIRST_WITHOUT_SPACES = "\u2e80"


def from_text(text: str) -> Problem:
    """Attention over the tokens of a text: characters of a script without spaces, else words; each token seen first gets the next row of E."""
    from attncli.models.vocabulary import Vocabulary, printable

    plain = printable(" ".join(text.split()))
    split = "characters" if max(plain, default="") >= _FIRST_WITHOUT_SPACES else "words"
    if not plain:
        raise InputError('--text: the text is empty. Write a few words, like --text "I like tea".')
    vocabulary = Vocabulary.built_from(plain, split=split)
    count = len(vocabulary.cut(plain))
    if count > _MOST_TOKENS:
        raise InputError(
            "--text: {count} tokens are too many for the small built-in weights; the limit is {limit}. Write a shorter text.",
            count=count,
            limit=_MOST_TOKENS,
        )
    rows = "; ".join(_E.split("; ")[: len(vocabulary.tokens)])
    shown = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
    title = Message("“{text}” through attention, with small weights chosen by hand (nobody trained them)", text=shown)
    return Problem(
        model="embedded_attention",
        inputs={name: parse_matrix(matrix) for name, matrix in {"E": rows, **_WEIGHTS}.items()},
        texts={"text": plain},
        settings={"vocabulary": list(vocabulary.tokens), "split": split},
        title=in_every_language(title),
    )


_BRACKETS = re.compile(r"(?P<step>[^\[\]]+)\[(?P<cell>[^\[\]]*)\]")


def parts(cell: Sequence[str], options: Mapping[str, Any]) -> tuple[str | None, str, list[str]]:
    """The problem, the step and the places that are meant by [PROBLEM] STEP PLACES, or by [PROBLEM] STEP[PLACES].

    Parameters
    ----------
    cell : the words
    options : what else is given, by parameter name
    """
    words = [word.strip() for word in cell]
    first, rest = words[0], words[1:]
    bracketed = _BRACKETS.fullmatch(words[-1])
    if bracketed is not None and len(words) <= 2:
        places = [place for place in re.split(r"[\s,，]+", bracketed["cell"]) if place]
        return (first if rest else None), bracketed["step"].strip(), places
    if rest and _is_problem(first, rest[0], options):
        return first, rest[0], rest[1:]
    if not first or any(not word for word in rest):
        raise InputError(
            "Name a step and a cell, like: attncli why A 1 2 (row 1, column 2). A problem can go before them."
        )
    return None, first, rest


def _is_problem(name: str, following: str, options: Mapping[str, Any]) -> bool:
    """Whether a word means a problem and not a step: a file, standard input, or a worked example.

    A file that is called just like a step counts only where a step follows. So does what does not exist, where nothing
    else says what to calculate.
    """
    from attncli.problems import library

    if name == "-" or library.find(name) is not None:
        return True
    if _is_file(name) and (not following.isdecimal() or not os.path.exists(name) or "." in name):  # noqa: PTH110
        return True
    given = any(options.get(option) for option in ("queries", "keys", "values", "text", "set_", "model"))
    return not given and not following.isdecimal()
