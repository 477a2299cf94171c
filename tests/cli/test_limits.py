"""No input of less than a megabyte takes more than a gigabyte, or time without end: it is calculated, or refused with its limit."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

GIGABYTE = 1 << 30
LONGEST = 120.0  # of a machine that does other things too; alone it is a fraction of the 20 s promised


def bomb(path: Path, shape: tuple[int, ...], dtype: str) -> None:
    """An .npz of a few hundred bytes that says it holds a large array."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("A.npy", out.getvalue() + bytes(10_000))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    for rows in (300, 1000, 2000, 10_000):
        (folder / f"n{rows}.txt").write_text(";".join(["1 2"] * rows), "utf-8")
    bomb(folder / "wide.npz", (8, 1_400_000_000), "|i1")
    bomb(folder / "cells.npz", (4, 15_000_000), "|b1")
    (folder / "names.json").write_text(json.dumps({"answers": {f"scored{i}": "1" for i in range(20_000)}}), "utf-8")
    (folder / "columns.csv").write_text("student," + ",".join(f"c{i}" for i in range(90_000)) + "\nann,1\n", "utf-8")
    (folder / "deep.json").write_text("[" * 400_000, "utf-8")
    rows = ";".join([" ".join(["1"] * 2)] * 400)
    (folder / "large.toml").write_text(
        f'schema = 1\nid = "x"\nmodel = "attention"\n[inputs]\nQ = "{rows}"\nK = "{rows}"\nV = "{rows}"\n', "utf-8"
    )
    return folder


def qkv(rows: int) -> list[str]:
    return ["forward", *(word for name in "QKV" for word in (f"-{name}", f"@n{rows}.txt"))]


#: A command, and words of the message that refuses it; none where it is done.
CASES: dict[str, tuple[list[str], str]] = {
    "rows": (qkv(10_000), "100,000,000); the limit is 10,000,000"),
    "expand": ([*qkv(300), "--expand"], "attncli why STEP ROW COLUMN"),
    "a worked example": (["examples", "run", "a5-variance", "--expand"], "--expand writes out"),
    "html": ([*qkv(1000), "--format", "html"], "the limit is 100,000"),
    "markdown": ([*qkv(300), "--format", "markdown"], "the limit is 50,000"),
    "csv": ([*qkv(1000), "--format", "csv"], "the limit is 500,000"),
    "bytes unpacked": (["forward", "-Q", "@wide.npz", "-K", "1", "-V", "1"], "the limit here is 64,000,000"),
    "numbers unpacked": (["forward", "-Q", "@cells.npz", "-K", "1", "-V", "1"], "the limit here is 8,000,000"),
    "names": (["check", "a1-pronoun", "names.json"], "20,000 names"),
    "columns": (["grade", "a1-pronoun", "columns.csv"], "90,001 columns; the limit is 5,000"),
    "depth": (["forward", "deep.json"], "nested too deep"),
    "a large exercise": (["check", "large.toml", "names.json"], "the limit is 150,000"),
    "a table": (qkv(1000), ""),
    "svg": ([*qkv(300), "--format", "svg"], ""),
    "a sheet that unpacks": (["check", "a1-pronoun", "wide.npz"], ""),
}
#: A few stand for all where time is short.
QUICK = ("rows", "bytes unpacked", "names")


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_one_input_of_every_kind(case: str, files: Path) -> None:
    argv, words = CASES[case]
    done = subprocess.run(
        [sys.executable, "-m", "attncli", *argv],
        cwd=files,
        env={**os.environ, "ATTNCLI_LANG": "en", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTE, GIGABYTE)),
    )
    assert "Traceback" not in done.stderr and "fault of attncli" not in done.stderr
    if words:
        assert done.returncode == 2, done
        assert done.stdout == ""
        assert words in done.stderr
    else:
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr == ""
