"""A training in a file: an .npz with every number under its name, and what it is in the member `meta` (JSON)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attncli.message import AttnError, InputError, Message
from attncli.npz import npz_bytes
from attncli.problems.source import arrays_from_npz
from attncli.tokens import MOST
from attncli.training.spec import Spec, as_plain
from attncli.training.trainer import State, Trainer

_META, _LOSSES = "meta", "losses"

Count = Annotated[int, Field(ge=1, le=4096, strict=True)]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(min_length=1, max_length=MOST)]
    split: Literal["characters", "words"]
    context: Count
    d_model: Count
    d_k: Count
    d_v: Count
    heads: Count
    kv_heads: Count
    layers: Annotated[int, Field(ge=0, le=48, strict=True)]
    d_ff: Annotated[int, Field(ge=0, le=16384, strict=True)]
    positions: Literal["none", "sinusoidal", "learned"]
    rotary: bool
    norm: Literal["pre", "post"]
    normalisation: Literal["layer", "rms", "none"]
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"]
    tied: bool
    optimizer: Literal["sgd", "adam"]
    eta: Annotated[float, Field(gt=0, le=1e6)]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)]


class _Meta(BaseModel):
    model_config = ConfigDict(extra="forbid")

    schema_: Annotated[Literal[1], Field(alias="schema")]
    model: Literal["gpt"]
    step: Annotated[int, Field(ge=0, le=10**9, strict=True)]
    text: Annotated[str, Field(max_length=MOST)]
    spec: _Spec


def as_bytes(state: State) -> bytes:
    """The file's content; the same training gives the same bytes."""
    meta = {"schema": 1, "model": "gpt", "step": state.step, "text": state.text, "spec": as_plain(state.spec)}
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True).encode("utf-8")
    arrays: dict[str, Any] = {_META: np.frombuffer(text, dtype=np.uint8), _LOSSES: np.array(state.losses)}
    arrays |= dict(state.numbers)
    arrays |= dict(state.memory)
    return npz_bytes(arrays)


def load(path: str) -> State:
    """The training in a file.

    Raises
    ------
    InputError
        It is none, or its numbers do not fit what it says it is; names the file and the place.
    """
    try:
        return _load(path)
    except AttnError as error:
        raise error.at(path) from None


def _load(path: str) -> State:
    arrays = arrays_from_npz(path)
    for name, array in arrays.items():
        if isinstance(array, Message):
            raise InputError("{name}: {what}", name=name, what=array)
    if _META not in arrays or _LOSSES not in arrays:
        raise InputError("is no training: it has no {name}. Write one with attncli train TEXT --save FILE.", name=_META)
    meta = _meta(arrays.pop(_META))
    losses = np.asarray(arrays.pop(_LOSSES), dtype=np.float64)
    if not all(token.isprintable() for token in (*meta.spec.tokens, meta.text)):
        raise InputError("There are signs in this text that cannot be printed. Leave them out.")
    spec = Spec(**{**meta.spec.model_dump(), "tokens": tuple(meta.spec.tokens)}).checked()
    expected = dict(spec.shapes())
    numbers = {name: _numbers(name, arrays.get(name), shape) for name, shape in expected.items()}
    memory = {}
    for name, array in arrays.items():
        parameter = name.removesuffix("_m_past").removesuffix("_v_past")
        if name not in expected and (parameter == name or parameter not in expected):
            raise InputError("holds an array “{name}” that belongs to no training of this kind.", name=name)
        if name not in expected:
            memory[name] = _numbers(name, array, expected[parameter])
    _check_memory(spec, meta.step, memory)
    if losses.ndim != 1 or len(losses) != meta.step:
        raise InputError("says {step} steps, but holds {count} losses.", step=meta.step, count=losses.size)
    state = State(spec, meta.text, meta.step, numbers, memory, tuple(float(loss) for loss in losses))
    Trainer(state)  # says what does not go together
    return state


def _check_memory(spec: Spec, step: int, memory: Mapping[str, Any]) -> None:
    """Adam remembers two arrays of every parameter from its first step on; gradient descent remembers nothing."""
    remembered = {f"{name}{kind}" for name, _ in spec.shapes() for kind in ("_m_past", "_v_past")}
    if spec.optimizer == "sgd":
        remembered = set()
    elif step == 0 and not memory:
        return
    for name in sorted(remembered - set(memory)):
        raise InputError("the array “{name}” is missing.", name=name)
    for name in sorted(set(memory) - remembered):
        raise InputError("holds an array “{name}” that belongs to no training of this kind.", name=name)


def _meta(array: Any) -> _Meta:
    try:
        data = json.loads(np.asarray(array, dtype=np.uint8).tobytes().decode("utf-8"))
        return _Meta.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or _META
        raise InputError("meta.{place} does not work here ({what}).", place=place, what=first["msg"][:100]) from None
    except (ValueError, RecursionError) as error:
        raise InputError("meta is not readable JSON ({what}).", what=str(error)[:100]) from None


def _numbers(name: str, array: Any, shape: tuple[int, ...]) -> Any:
    if array is None:
        raise InputError("the array “{name}” is missing.", name=name)
    values = np.array(array, dtype=np.float64)
    if values.shape != shape or not np.isfinite(values).all():
        raise InputError(
            "the array “{name}” is {found}, expected {expected} with finite numbers.",
            name=name,
            found="×".join(map(str, values.shape)) or "1",
            expected="×".join(map(str, shape)),
        )
    return values
