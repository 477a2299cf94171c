"""Problem files: TOML (or JSON with the same keys) ⇄ Problem. The schema is pydantic's to check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from attncli import models
from attncli.core.graph import Graph, gradient_id
from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.matrix import Matrix, as_matrix
from attncli.core.message import AttnError, InputError, Message, placed, unknown
from attncli.problems.problem import UNNAMED, Contrast, Marking, Problem
from attncli.problems.reading import brief, complaint, decoded, flat, parse_json, parse_toml, read_bounded, toml_key
from attncli.problems.settings import read_settings
from attncli.problems.source import beside, matrix_from_file, matrix_of, value_from_file

#: Cells that a seeded random input may have.
MOST_RANDOM = 1_000_000

#: Each cell at the places it was written with: for proofreading what somebody printed.
AS_WRITTEN = "as written"
_AS_WRITTEN = -1


def _or_as_written(value: object, places: ValidatorFunctionWrapHandler) -> object:
    """A number of places; -1 for the words “as written”."""
    if value == AS_WRITTEN:
        return _AS_WRITTEN
    if isinstance(value, str):
        raise InputError(
            "decimals: “{value}” is not allowed here. Write a whole number from 0 to 15, or “as written”.",
            value=brief(value),
        )
    return places(value)


Decimals = Annotated[int, Field(ge=0, le=15, strict=True), WrapValidator(_or_as_written)]
Fraction01 = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, le=1000)]
LearnerText = dict[Literal["en", "zh"], str]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]


_PART_NAME = re.compile(r"[a-z][a-z0-9.]*")


def _flat(table: object) -> object:
    """A table whose parts may be tables of their own: [inputs.self] W_Q is the input self.W_Q.

    Parts of a model have small letters; a table under another name is no part, and what it is instead (a random input,
    a mistake) is seen where it is read.
    """
    return dict(flat(table, _is_part)) if isinstance(table, dict) else table


def _is_part(name: object, value: dict[str, object]) -> bool:
    return "random" not in value and _PART_NAME.fullmatch(str(name)) is not None


def _by_step(value: object) -> object:
    """One number of decimals for all steps, or a table by step."""
    return _flat(value) if isinstance(value, dict) else {"default": value}


def _in_english(value: object) -> object:
    """A text without a language: what is written once stands for all."""
    return {"en": value} if isinstance(value, str) else value


Flat = BeforeValidator(_flat)


class _FileTable(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Random(_FileTable):
    """A seeded random input: `random` says which distribution, frozen by NumPy's RandomState."""

    random: Literal["normal", "uniform"]
    shape: Annotated[list[Annotated[int, Field(ge=1, strict=True)]], Field(min_length=1, max_length=3)]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)]


class _MarkingTable(_FileTable):
    points: Annotated[dict[str, Positive], Flat] = {}
    follow_through: Fraction01 = 1.0
    imprecise: Fraction01 = 0.5
    rounding: Literal["hand", "printed", "float32", "float16"] = "hand"


class _ContrastTable(_FileTable):
    settings: dict[str, Any] = {}
    inputs: Annotated[dict[str, Any], Flat] = {}
    steps: tuple[str, ...] = ()


class ProblemFile(_FileTable):
    """The keys of a problem file (FORMATS)."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    id: Id = UNNAMED
    model: str
    decimals: Annotated[dict[str, Decimals], BeforeValidator(_by_step)] = {"default": 3}
    source: Annotated[LearnerText, BeforeValidator(_in_english)] = {}
    layout: Literal["rows", "columns"] = "rows"
    title: LearnerText = {}
    prompt: LearnerText = {}
    hint: LearnerText = {}
    notice: LearnerText = {}
    inputs: Annotated[dict[str, Any], Flat]
    labels: dict[str, list[str]] = {}
    settings: dict[str, Any] = {}
    gradient: Annotated[dict[str, Any], Flat] = {}
    published: Annotated[dict[str, str], Flat] = {}
    published_how: dict[str, str | LearnerText] = {}
    shapes: Annotated[dict[str, str], Flat] = {}
    contrast: _ContrastTable | None = None
    marking: _MarkingTable = _MarkingTable()


def load(path: str | Path, *, check: bool = True) -> Problem:
    """The problem in a file.

    Parameters
    ----------
    check : whether the steps it names are looked for in its calculation; the examples that come with attncli are
        checked by their tests
    """
    name = str(path)
    with placed(name):
        return parse(
            decoded(read_bounded(name, MOST_TEXT_BYTES)),
            json=name.lower().endswith(".json"),
            check=check,
            base=Path(name).parent,
        )


def parse(text: str, *, json: bool = False, check: bool = True, base: Path | None = None) -> Problem:
    """The problem in a text; `base`: the folder of its file, for the files that it names with @."""
    data = parse_json(text) if json or text.lstrip().startswith("{") else parse_toml(text)
    return from_data(data, check=check, base=base)


def from_data(data: object, *, check: bool = False, base: Path | None = None) -> Problem:
    """The problem in nested dictionaries with the keys of a problem file; `check` as for `load`, `base` as for `parse`."""
    if not isinstance(data, dict):
        raise InputError(
            "A problem is a table of keys, like model and inputs, but this is “{value}”. Write model = … and [inputs].",
            value=brief(data),
        )
    try:
        file = ProblemFile.model_validate(data)
    except ValidationError as error:
        raise _first(error) from None
    problem = _problem(file, base)
    if check:
        _check_names(file, problem)
    return problem


#: Steps of a loss: in a file without a gradient nobody knows yet which loss there will be.
_OF_A_LOSS = ("L", "error")


def _check_names(file: ProblemFile, problem: Problem) -> None:
    """Steps and the gradient that the file names must be part of its calculation."""
    tables = {
        "decimals": [name for name in file.decimals if name != "default"],
        "published": file.published,
        "published_how": file.published_how,
        "shapes": file.shapes,
        "marking.points": file.marking.points,
    }
    if problem.upstream is None and not any(tables.values()):
        return
    try:
        graph = problem.graph()
    except AttnError:
        return  # options may still complete it; if not, the run says what is wrong
    arriving = next((name for name in file.gradient if name.rpartition(".")[2].startswith("G_")), None)
    if problem.upstream is not None and arriving != gradient_id(graph.output):
        raise InputError(
            "gradient.{name}: the output here is {output}, so its gradient is called {gradient}. Write {written} = …",
            name=arriving,
            output=graph.output,
            gradient=gradient_id(graph.output),
            written=toml_key(gradient_id(graph.output)),
        )
    whole = graph
    for table, steps in tables.items():
        for step in steps:
            if step in whole:
                continue
            if not problem.has_gradient:
                whole = _with_gradients(problem, graph)
            if step not in whole and (problem.has_gradient or step not in _OF_A_LOSS):
                raise unknown(Message("{table}: the step", table=table), step, [*whole.inputs, *whole.steps])


def _with_gradients(problem: Problem, graph: Graph) -> Graph:
    """The calculation as it will be once a gradient and, where there are updates, a learning rate are given."""
    ones = as_matrix(np.ones(graph.shape(graph.output)))
    settings = dict(problem.settings)
    if any(setting.name == "eta" for setting in models.get(problem.model).settings):
        settings.setdefault("eta", 1)
    arriving = ones.transposed() if problem.layout == "columns" else ones
    return problem.changed(upstream=arriving, settings=settings).graph()


def _problem(file: ProblemFile, base: Path | None) -> Problem:
    model = models.get(file.model)
    texts = {name: value for name, value in file.inputs.items() if model.kind_of(name) == "text"}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise InputError("inputs.{name}: “{value}” is not text. Write it in quotes.", name=name, value=brief(value))
    places = {name: f"settings.{name}" for name in file.settings}
    file.settings = {name: _setting(name, value, base) for name, value in file.settings.items()}
    try:
        read_settings(model, file.settings, file.layout, places)
    except AttnError as error:
        raise error if error.message.fields.get("where") in places.values() else error.at("settings") from None
    by_step = {name: places for name, places in file.decimals.items() if places != _AS_WRITTEN}
    upstream, loss, extras = _gradient(file.gradient, base)
    return Problem(
        **{name: getattr(file, name) for name in _AS_IN_THE_FILE},
        inputs={name: _matrix("inputs", name, value, base) for name, value in file.inputs.items() if name not in texts},
        texts=texts,
        upstream=upstream,
        loss=loss,
        extras=extras,
        decimals=by_step.pop("default", 3),
        step_decimals=by_step,
        as_written=frozenset(name for name, places in file.decimals.items() if places == _AS_WRITTEN),
        labels={name: tuple(words) for name, words in file.labels.items()},
        how={step: how if isinstance(how, str) else how.get("en", "") for step, how in file.published_how.items()},
        how_texts={
            step: {str(code): text for code, text in how.items()}
            for step, how in file.published_how.items()
            if not isinstance(how, str)
        },
        contrast=None if file.contrast is None else Contrast(**file.contrast.model_dump()),
        marking=Marking(**file.marking.model_dump()),
    )


#: Keys of a file that are fields of a problem as they stand.
_AS_IN_THE_FILE = (
    "model",
    "settings",
    "id",
    "source",
    "title",
    "prompt",
    "hint",
    "notice",
    "published",
    "shapes",
    "layout",
)


def _gradient(table: dict[str, object], base: Path | None) -> tuple[Matrix | None, str | None, dict[str, Matrix]]:
    """The upstream gradient (a key G_…), or a loss with the matrices it names."""
    loss = table.get("loss")
    if loss is not None and not isinstance(loss, str):
        raise InputError('gradient.loss: “{value}” is not text. Write it in quotes, like "sum(O)".', value=brief(loss))
    named = set(re.findall(r"[\w.]+", loss or ""))
    for name in table:
        if name != "loss" and not name.rpartition(".")[2].startswith("G_") and name not in named:
            raise unknown(Message("gradient: the key"), name, ["G_O", "loss"])
    rest = {name: _matrix("gradient", name, value, base) for name, value in table.items() if name != "loss"}
    arriving = [name for name in rest if name not in named]
    if len(arriving) > 1:
        raise InputError(
            "gradient: {names} are given. Give one: the gradient of the model's output.", names=", ".join(arriving)
        )
    upstream = rest.pop(arriving[0]) if arriving else None
    if upstream is not None and loss is not None:
        raise InputError("gradient: both {name} and loss are given. Keep one.", name=arriving[0])
    return upstream, loss, rest


def _setting(name: str, value: object, base: Path | None) -> Any:
    """A setting's value, or what the file holds that it names with @."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    with placed(f"settings.{name}"):
        return value_from_file(beside(value[1:], base))[1]


def _matrix(table: str, name: str, value: object, base: Path | None) -> Matrix:
    with placed(f"{table}.{name}"):
        if isinstance(value, dict):
            return _random(value)
        if isinstance(value, str) and value.startswith("@"):
            return matrix_from_file(beside(value[1:], base))
        return matrix_of(value)


def _random(value: dict[str, object]) -> Matrix:
    try:
        spec = Random.model_validate(value)
    except ValidationError as error:
        raise _first(error, Random) from None
    size = int(np.prod(spec.shape, dtype=object))
    if size > MOST_RANDOM:
        raise InputError("{size} random numbers are asked for; the limit is {limit}.", size=size, limit=MOST_RANDOM)
    generator = np.random.RandomState(spec.seed)
    draw = generator.standard_normal if spec.random == "normal" else generator.random_sample
    return Matrix(np.asarray(draw(size), dtype=np.float64).reshape(spec.shape))


def _first(error: ValidationError, table: type[BaseModel] | None = None) -> InputError:
    """pydantic's first complaint about a problem file."""
    return complaint(error, "problem", lambda path: _known_keys(path, table or ProblemFile))


def _known_keys(path: list[str], table: type[BaseModel]) -> list[str]:
    """The keys that may stand where an unknown one was found."""
    prefix = ""
    inner: dict[str, type[BaseModel]] = {"marking": _MarkingTable, "contrast": _ContrastTable}
    if len(path) > 1:
        table, prefix = inner[path[0]], f"{path[0]}."
    return [f"{prefix}{field.alias or name}" for name, field in table.model_fields.items()]
