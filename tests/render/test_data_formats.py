"""CSV and NPZ give back the numbers of the run, to the last bit."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from harness import run
from rendering import written

from attncli.core.outputs import spreadsheet_text
from attncli.render.data import npz_file
from attncli.render.view import View


def rows_of(view: View) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written("csv", view), newline="")))


def test_csv_reads_back_to_the_last_bit(shown: View) -> None:
    read: dict[str, dict[tuple[int, ...], float]] = {}
    for row in rows_of(shown):
        index = tuple(int(row[key]) - 1 for key in ("head", "row", "column") if row[key])
        read.setdefault(row["step"], {})[index] = float(row["value"])
    items = {item.id: item for item in (*shown.inputs, *shown.steps)}
    assert list(read) == list(items)
    for id, cells in read.items():
        array = items[id].array.astype(np.float64)
        array = array[None, :] if array.ndim == 1 else array
        assert len(cells) == array.size
        for index, value in cells.items():
            assert np.float64(value).tobytes() == array[index].tobytes() or np.isnan([value, array[index]]).all()


def test_csv_has_the_columns_of_the_contract_and_lf(shown: View) -> None:
    text = written("csv", shown)
    assert text.startswith("step,phase,head,row,column,row_name,column_name,value\n")
    assert "\r" not in text
    assert {row["phase"] for row in rows_of(shown)} >= {"input", "forward", "backward"}


def test_csv_writes_infinity_and_no_value(seen: Callable[..., View]) -> None:
    assert "-inf" in {row["value"] for row in rows_of(seen("heads"))}
    assert "nan" in {row["value"] for row in rows_of(seen("lost"))}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-x", "@SUM(A1)", "\t=1", " =1", "＝1"])
def test_csv_names_are_no_formulas(name: str) -> None:
    assert spreadsheet_text(name) == f"'{name}"


@pytest.mark.parametrize("name", ["", "它", "a=b", "'x", "q1"])
def test_csv_leaves_other_names_alone(name: str) -> None:
    assert spreadsheet_text(name) == name


def test_csv_of_hostile_names(seen: Callable[..., View], hostile_names: tuple[str, ...]) -> None:
    found = {row["row_name"] for row in rows_of(seen("hostile")) if row["step"] == "X"}
    assert "'=1+1" in found and "=1+1" not in found
    assert "<script>alert(1)</script>" in found  # plain text in CSV
    assert not any("\x1b" in name or "\x07" in name for name in found)


def test_csv_turned_layout_turns_row_and_column(seen: Callable[..., View]) -> None:
    upright = {(r["step"], r["head"], r["row"], r["column"]): r["value"] for r in rows_of(seen("heads"))}
    turned = {
        (r["step"], r["head"], r["column"], r["row"]): r["value"] for r in rows_of(seen("heads", layout="columns"))
    }
    assert turned == upright


def test_npz_reads_back_without_pickles(shown: View) -> None:
    with np.load(io.BytesIO(written("npz", shown)), allow_pickle=False) as read:
        items = (*shown.inputs, *shown.steps)
        assert list(read) == [item.id for item in items]
        for item in items:
            assert read[item.id].dtype == np.float64
            assert read[item.id].flags.c_contiguous
            np.testing.assert_array_equal(read[item.id], item.array.astype(np.float64), strict=True)


def test_npz_is_the_same_at_any_time(seen: Callable[..., View], monkeypatch: pytest.MonkeyPatch) -> None:
    first = npz_file(seen("heads"))
    import time

    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    assert npz_file(seen("heads")) == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_exact_numbers_are_floats_in_data(seen: Callable[..., View]) -> None:
    with np.load(io.BytesIO(written("npz", seen("exact"))), allow_pickle=False) as read:
        np.testing.assert_allclose(read["scaled"], np.array([[1, 2], [0, 1]]) / np.sqrt(2), rtol=1e-15)


@pytest.mark.filterwarnings("error")
def test_exact_numbers_are_said_in_json_and_nothing_beside_them() -> None:
    steps = run("examples", "run", "a10-mask-before-maximum", "--exact", "--format", "json").data["steps"]
    assert steps[0]["exact"] == [["2", "3", "802"], ["2", "3", "802"], ["2", "3", "802"]]


@pytest.mark.parametrize("format", ["table", "json", "csv", "npz", "html", "latex", "markdown"])
def test_an_exact_gradient_over_0_is_shown_in_every_format(format: str) -> None:
    words = ("--model", "rms_norm", "--set", "X=0 0; 1 2", "--set", "eps=0", "--upstream", "1 -1; 1 1")
    ran = run("backward", *words, "--exact", "--format", format)
    assert (ran.status, ran.stderr) == (0, b"")
    assert b"zoo" not in ran.stdout
