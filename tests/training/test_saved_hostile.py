"""Files that are none, or were tampered with: a saved training is read as it was written, or refused in one message."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attncli.core.message import AttnError, InputError
from attncli.training.saved import as_bytes, load
from attncli.training.spec import Spec, TrainingState, begin
from attncli.training.trainer import Trainer


def small(steps: int = 2) -> TrainingState:
    trainer = Trainer(begin(Spec(tuple("ab"), "characters", 2), "abab"))
    for _ in trainer.run(steps):
        pass
    return trainer.state


DATA = as_bytes(small())
MEMBERS = {name: zipfile.ZipFile(io.BytesIO(DATA)).read(name) for name in zipfile.ZipFile(io.BytesIO(DATA)).namelist()}
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def with_members(**changes: bytes) -> bytes:
    """The file with other members, named without their ending."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in {**MEMBERS, **{f"{name}.npy": data for name, data in changes.items()}}.items():
            archive.writestr(name, data)
    return out.getvalue()


def as_npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return out.getvalue()


def read(file: Path, data: bytes) -> TrainingState | None:
    """The training, or None where it is refused; a warning would reach the reader's terminal, so it is an error."""
    file.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return load(str(file))
        except AttnError as error:
            assert str(error).startswith(f"{file}: ")
            return None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "training.npz"


@MANY
@given(place=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7))
def test_one_bit_changed(file: Path, place: int, bit: int) -> None:
    """Every member has a checksum: what is read is what was written."""
    changed = bytearray(DATA)
    changed[place] ^= 1 << bit
    state = read(file, bytes(changed))
    assert state is None or as_bytes(state) == DATA


@MANY
@given(end=st.integers(0, len(DATA) - 1))
def test_a_file_that_stops(file: Path, end: int) -> None:
    assert read(file, DATA[:end]) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted(
    {
        *json.loads(np.lib.format.read_array(io.BytesIO(MEMBERS["meta.npy"])).tobytes())["spec"],
        "step",
        "text",
        "model",
        "schema",
        "spec",
    }
)


@MANY
@given(key=st.sampled_from(KEYS), value=JSON)
def test_any_value_in_meta(file: Path, key: str, value: Any) -> None:
    meta = json.loads(np.lib.format.read_array(io.BytesIO(MEMBERS["meta.npy"])).tobytes())
    (meta if key in meta else meta["spec"])[key] = value
    text = np.frombuffer(json.dumps(meta).encode("utf-8"), dtype=np.uint8)
    state = read(file, with_members(meta=as_npy(text)))
    if state is not None:
        assert all(np.isfinite(values).all() for values in state.numbers.values())
        assert state.spec.size() == small().spec.size()


@MANY
@given(
    name=st.sampled_from(sorted(MEMBERS)),
    kind=st.sampled_from(["<f8", "<f4", "<i8", "|u1", "|b1", "<c16", "<U3", "|S4", "<M8[D]"]),
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
)
def test_any_array_in_the_place_of_another(file: Path, name: str, kind: str, shape: tuple[int, ...]) -> None:
    state = read(file, with_members(**{name.removesuffix(".npy"): as_npy(np.ones(shape).astype(kind))}))
    assert state is None or {id: values.shape for id, values in state.numbers.items()} == dict(state.spec.shapes())


def refused(data: bytes, file: Path, words: str) -> None:
    file.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load(str(file))
    assert words in str(caught.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(file: Path) -> None:
    file.write_bytes(DATA)
    for name in ("E.npy", "E"):
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(name, MEMBERS["E.npy"])
        refused(file.read_bytes(), file, "holds two arrays “E”. Keep one.")
        file.write_bytes(DATA)


def test_a_bomb_is_refused_before_it_is_unpacked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sizes that the archive itself names; what a member says of its size is all that is read of it."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
        with archive.open("more.npy", "w") as member:
            for _ in range(130):
                member.write(bytes(1_000_000))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("unpacked"))
    refused(file.read_bytes(), file, "unpacks to more than 128,000,000 bytes")


def test_files_of_other_kinds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "link.npz").symlink_to("nowhere.npz")
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "empty.npz").touch()
    for name, words in {
        "pipe.npz": "this is a pipe or a device",
        "link.npz": "is a link to a file that is not there",
        "loop.npz": "cannot be opened",
        "folder.npz": "this is a folder",
        "empty.npz": "is not a readable .npz file: it is damaged, or something else. Write it with attncli train TEXT --save FILE.",
        "other.npz": "there is no such file",
    }.items():
        with pytest.raises(InputError) as caught:
            load(str(tmp_path / name))
        assert words in str(caught.value), name
    with pytest.raises(InputError, match="/dev/zero: this is a pipe or a device"):
        load("/dev/zero")
