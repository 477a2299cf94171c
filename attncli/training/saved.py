"""A training in a file: an .npz with every number under its name, and what it is in the member `meta` (JSON)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.matrix import FloatArray
from attncli.core.message import N_, InputError, Message, placed
from attncli.core.outputs import npz_bytes
from attncli.models.updates import REMEMBERED
from attncli.models.vocabulary import MOST, printable
from attncli.problems.reading import complaint, decoded, plain_json
from attncli.problems.source import arrays_from_npz
from attncli.training.spec import CHOICES, COUNTS, MOST_ETA, Spec, TrainingState, as_plain
from attncli.training.trainer import Trainer

_META, _LOSSES = "meta", "losses"

#: Bytes that a training may unpack to: its numbers three times, and a loss for each of many millions of steps.
_MOST_BYTES = 128_000_000

_ONE_OF: Any = Literal
#: What is trained, within the limits that `attncli train` keeps.
_FIELDS: dict[str, Any] = {
    "tokens": Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(min_length=1, max_length=MOST)
    ],
    "rotary": Annotated[bool, Field(strict=True)],
    "tied": Annotated[bool, Field(strict=True)],
    "eta": Annotated[float, Field(gt=0, le=MOST_ETA, strict=True, allow_inf_nan=False)],
    **{name: Annotated[int, Field(ge=least, le=most, strict=True)] for name, (least, most) in COUNTS.items()},
    **{name: _ONE_OF[words] for name, words in CHOICES.items()},
}
_SPEC = create_model("_SPEC", __config__=ConfigDict(extra="forbid"), **_FIELDS)


class _Meta(BaseModel):
    model_config = ConfigDict(extra="forbid")

    schema_: Annotated[Literal[1], Field(alias="schema")]
    model: Literal["gpt"]
    step: Annotated[int, Field(ge=0, le=10**9, strict=True)]
    text: Annotated[str, Field(max_length=MOST)]
    spec: Annotated[dict[str, Any], BeforeValidator(lambda spec: _SPEC.model_validate(spec).model_dump())]


def as_bytes(state: TrainingState) -> bytes:
    """The file's content; the same training gives the same bytes."""
    meta = {"schema": 1, "model": "gpt", "step": state.step, "text": state.text, "spec": as_plain(state.spec)}
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True).encode("utf-8")
    own = {_META: np.frombuffer(text, dtype=np.uint8), _LOSSES: np.array(state.losses)}
    return npz_bytes({**own, **state.numbers, **state.memory})


def load(path: str) -> TrainingState:
    """The training in a file.

    Raises
    ------
    InputError
        It is none, or its numbers do not fit what it says it is; names the file and the place.
    """
    with placed(path or "“”"):
        return _load(path)


def _load(path: str) -> TrainingState:
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in arrays_from_npz(path, _MOST_BYTES, writer="attncli train TEXT --save FILE").items():
        if isinstance(array, Message):
            raise InputError("{name}: {what}", name=name, what=array)
        arrays[name] = array
    if _META not in arrays or _LOSSES not in arrays:
        missing = _LOSSES if _META in arrays else _META
        raise InputError(
            "is not a saved training: {name} is missing. Save one with attncli train TEXT --save FILE.", name=missing
        )
    meta = _meta(np.asarray(arrays.pop(_META)))
    losses = _losses(arrays.pop(_LOSSES), meta.step)
    spec = _spec(meta)
    shapes = dict(spec.shapes())
    # Adam remembers two arrays of every parameter from its first step on; gradient descent remembers nothing.
    remembered = {f"{name}{kind}": shape for name, shape in shapes.items() for kind in REMEMBERED}
    if spec.optimizer == "sgd" or (meta.step == 0 and not remembered.keys() & arrays.keys()):
        remembered = {}
    for name in sorted(arrays.keys() - shapes.keys() - remembered.keys()):
        raise InputError("holds an array “{name}” that belongs to no training of this kind.", name=name)
    numbers, memory = (
        {name: _numbers(name, arrays.get(name), shape) for name, shape in expected.items()}
        for expected in (shapes, remembered)
    )
    state = TrainingState(spec, meta.text, meta.step, numbers, memory, losses)
    Trainer(state)  # says what does not go together
    return state


def _spec(meta: _Meta) -> Spec:
    """What is trained, its tokens such as a text is cut into."""
    spec = Spec(**{**meta.spec, "tokens": tuple(meta.spec["tokens"])})
    texts = {"meta.text": meta.text, **{f"meta.spec.tokens.{i}": token for i, token in enumerate(spec.tokens)}}
    for place, text in texts.items():
        with placed(place):
            printable(text)
    for i, token in enumerate(spec.tokens):
        if len(token) > 1 if spec.split == "characters" else token != "".join(token.split()):
            raise InputError(
                "meta.spec.tokens.{place}: “{token}” cannot be a token where split is {split}.",
                place=i,
                token=token[:40],
                split=spec.split,
            )
    return spec.checked()


def _losses(array: NDArray[Any], step: int) -> tuple[float, ...]:
    """The loss before every step: a number above 0, or 0, each."""
    losses = np.asarray(array, dtype=np.float64)
    if losses.ndim != 1 or len(losses) != step:
        raise InputError("says {step} steps, but holds {count} losses.", step=step, count=_size(losses))
    if not np.isfinite(losses).all() or (losses < 0).any():
        raise InputError("the array “{name}” holds a number that no loss can be: below 0, or not finite.", name=_LOSSES)
    return tuple(losses.tolist())


def _meta(array: NDArray[Any]) -> _Meta:
    """What the bytes of this array say."""
    with placed(_META):
        if array.dtype != np.uint8 or array.ndim != 1 or array.size > MOST_TEXT_BYTES:
            raise InputError(
                "holds {shape} numbers of type {type}, expected the bytes of a JSON text (uint8), at most {limit}.",
                shape=_size(array),
                type=str(array.dtype),
                limit=f"{MOST_TEXT_BYTES:,}",
            )
        try:
            return _Meta.model_validate(plain_json(decoded(array.tobytes())))
        except ValidationError as error:
            raise complaint(error, "JSON", _known, _EXPECTED) from None


def _size(array: NDArray[Any]) -> str:
    return "×".join(map(str, array.shape)) or "1"


def _known(path: list[str]) -> list[str]:
    """The keys that may stand where an unknown one was found."""
    if path[:1] == ["spec"]:
        return [f"spec.{name}" for name in Spec._fields]
    return [field.alias or name for name, field in _Meta.model_fields.items()]


#: What was expected, where it is not a problem file that is read.
_EXPECTED = {
    "too_short": N_("a list with at least one token"),
    "too_long": N_("a shorter list"),
    "string_too_short": N_("at least one sign"),
    "string_too_long": N_("a shorter text"),
}


def _numbers(name: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> FloatArray:
    if array is None:
        raise InputError("the array “{name}” is missing.", name=name)
    values = np.array(array, dtype=np.float64)
    if values.shape != shape:
        raise InputError(
            "the array “{name}” is {found}, but {meta} says that it is {expected}.",
            name=name,
            meta=_META,
            found=_size(values),
            expected="×".join(map(str, shape)),
        )
    if not np.isfinite(values).all():
        raise InputError("the array “{name}” holds a number that is not finite.", name=name)
    return values
