"""The spreadsheet: formulas over cells, no stored results, and, recalculated by LibreOffice, attncli's own numbers."""

from __future__ import annotations

import csv
import io
import math
import os
import random
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from attncli import api
from attncli.core.matrix import as_matrix
from attncli.core.message import InputError, LimitError
from attncli.locale import language
from attncli.problems import library
from attncli.problems.problem import Problem, run
from attncli.render import xlsx
from attncli.render.view import View, view

_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
#: Set where a missing program is a failure (the CI).
REQUIRED = "ATTNCLI_SKIP_NOTHING"


def shown(problem: Problem, code: str = "en", **how: object) -> View:
    return view(run(problem, **how), language(code))  # type: ignore[arg-type]


def cells(data: bytes) -> dict[str, tuple[str | None, str | None]]:
    """The formula and the stored value of every cell that holds a number."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        (name,) = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        tree = ElementTree.fromstring(book.read(name))
    return {
        str(cell.get("r")): (cell.findtext(f"{_SPACE}f"), cell.findtext(f"{_SPACE}v"))
        for cell in tree.iter(f"{_SPACE}c")
        if cell.get("t") != "s"
    }


def test_every_number_is_a_formula_or_given_and_no_result_is_stored() -> None:
    found = shown(library.load("a1-pronoun"))
    sheet = xlsx.Workbook(found)
    there = cells(sheet.content())
    for item in (*found.inputs, *found.steps):
        for index in np.ndindex(*item.values.shape):
            formula, value = there[sheet.address(item.id, index)]
            assert (formula is None) == (item.step is None)
            assert (value or None) is None if item.step is not None else float(str(value)) == item.values[index]
    assert there[sheet.address("scores", (0, 1))][0] == "{}*{}+{}*{}".format(
        *(sheet.address(*cell) for cell in (("Q", (0, 0)), ("K", (1, 0)), ("Q", (0, 1)), ("K", (1, 1))))
    )
    assert there[sheet.address("exp", (0, 0))][0] == f"EXP({sheet.address('shifted', (0, 0))})"


@pytest.mark.parametrize(("code", "said"), [("en", "Inputs"), ("zh", "输入")])
def test_it_speaks_both_languages(code: str, said: str) -> None:
    with zipfile.ZipFile(io.BytesIO(xlsx.workbook(shown(library.load("a1-pronoun"), code)))) as book:
        assert said in book.read("xl/sharedStrings.xml").decode()


def test_a_text_is_never_a_formula() -> None:
    names = ["=1+1", "+2", "@SUM(A1)", "-3", "http://example.org"]
    problem = api.problem(
        model="self_attention",
        inputs={"X": np.eye(5, 2), "W_Q": "1 0; 0 1", "W_K": "1 0; 0 1", "W_V": "1 0; 0 1"},
        labels={"token": names},
        title={"en": "=HYPERLINK(1)"},
    )
    data = xlsx.workbook(shown(problem))
    formulas = {formula for formula, _ in cells(data).values() if formula}
    assert not any("HYPERLINK" in formula or "1+1" in formula for formula in formulas)
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        assert not any("rels" in name and "sheet" in name for name in book.namelist())
        assert "=1+1" in book.read("xl/sharedStrings.xml").decode()


def test_steps_that_others_come_from_are_there_too() -> None:
    sheet = xlsx.Workbook(shown(library.load("a1-pronoun"), steps=["O"]))
    item = sheet.items[-1]
    terms = item.step.terms(sheet.view.run.trace.numbers)
    assert sheet.formula(item.id, terms[0, 0])
    assert {"scores", "A", "O"} <= {item.id for item in sheet.items}


@pytest.mark.parametrize("arithmetic", ["hand", "exact"])
def test_what_a_spreadsheet_cannot_be_is_refused(arithmetic: str) -> None:
    with pytest.raises(InputError, match="full precision"):
        xlsx.workbook(shown(library.load("a1-pronoun"), arithmetic=arithmetic))


def test_a_formula_that_no_program_takes_is_refused() -> None:
    wide = as_matrix(np.ones((1, 1500)))
    with pytest.raises(LimitError, match="longer than spreadsheet programs take"):
        xlsx.workbook(shown(Problem("attention", {"Q": wide, "K": wide, "V": wide})))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(InputError, match=r"pip install 'attncli\[xlsx\]'"):
        xlsx.workbook(shown(library.load("a1-pronoun")))


# --- recalculated -----------------------------------------------------------------------------------------------------


def converted(books: dict[str, bytes], folder: Path, to: str) -> Path:
    """The folder with these workbooks as LibreOffice writes them in another format."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        if os.environ.get(REQUIRED):
            pytest.fail("LibreOffice is not installed, but has to be here")
        pytest.skip("there is no LibreOffice here: spreadsheets are not recalculated")
    for name, data in books.items():
        (folder / f"{name}.xlsx").write_bytes(data)
    out = folder / "out"
    words = [program, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to", to]
    files = sorted(folder.glob("*.xlsx"))
    subprocess.run(
        [*map(str, words), "--outdir", str(out), *map(str, files)], check=True, capture_output=True, timeout=300
    )
    return out


def test_what_is_shown_are_the_numbers_with_their_signs(tmp_path: Path) -> None:
    sheets = {id: xlsx.Workbook(shown(library.load(id))) for id in ("a9-causal-mask", "b6-full-backward")}
    utf_8 = "csv:Text - txt - csv (StarCalc):44,34,76"
    out = converted({id: sheet.content() for id, sheet in sheets.items()}, tmp_path, utf_8)
    for id, sheet in sheets.items():
        with (out / f"{id}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        for item in sheet.items:
            for index in np.ndindex(*item.values.shape):
                row, column = sheet.place(item.id, index)
                text, expected = rows[row][column], item.text(item.values[index])
                assert text == expected or float(text) == float(expected), (id, item.id, index)


def recalculated(books: dict[str, bytes], folder: Path) -> dict[str, dict[str, float]]:
    """Every number of these workbooks as LibreOffice calculates it on opening."""
    out = converted(books, folder, "xlsx")
    return {
        name: {at: float(value) for at, (_, value) in cells((out / f"{name}.xlsx").read_bytes()).items() if is_number(value)}
        for name in books
    }  # fmt: skip


def is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[-+]?[\d.]+(?:E[-+]?\d+)?", text, re.IGNORECASE) is not None


def changed(problem: Problem, draw: random.Random) -> Problem:
    """The same problem with one given number replaced."""
    possible = xlsx.Workbook(shown(problem)).given & set(problem.inputs)
    if not possible:
        return problem
    name = draw.choice(sorted(possible))
    values = np.array(problem.inputs[name].values)
    places = np.argwhere(np.isfinite(values))
    values[tuple(places[draw.randrange(len(places))])] = round(draw.uniform(-2, 2), 2)
    return problem.changed(inputs={**problem.inputs, name: as_matrix(values)})


def with_inputs_of(sheet: xlsx.Workbook, other: View) -> bytes:
    """The workbook with other numbers typed into its yellow cells: not a formula is written anew."""
    data = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sheet.content())) as book, zipfile.ZipFile(data, "w") as out:
        for name in book.namelist():
            text = book.read(name)
            if name.startswith("xl/worksheets/sheet"):
                text = _typed(text.decode(), sheet, other).encode()
            out.writestr(name, text)
    return data.getvalue()


def _typed(text: str, sheet: xlsx.Workbook, other: View) -> str:
    for id in sheet.given:
        values = other.run.trace.numbers[id]
        for index in np.ndindex(*values.shape):
            if math.isfinite(values[index]):
                at = sheet.address(id, index)
                text, count = re.subn(rf'(<c r="{at}"[^>]*><v>)[^<]*', rf"\g<1>{float(values[index])!r}", text)
                assert count == 1
    return text


def one_of_each_kind() -> dict[str, Problem]:
    """A worked example of every model and layout, the one with the most steps that a sheet can be read with."""
    best: dict[tuple[str, str, bool], tuple[int, str, Problem]] = {}
    for id in library.ids():
        problem = library.load(id)
        graph = problem.graph()
        if sum(math.prod(graph.shape(node)) for node in (*graph.inputs, *graph.steps)) <= 900:
            kind = problem.model, problem.layout, "causal" in problem.settings
            best[kind] = max(best.get(kind, (0, "", problem)), (len(graph.steps), id, problem), key=lambda one: one[:2])
    return {id: problem for _, id, problem in best.values()}


#: Opened by the ordinary tests.
QUICK = ("a9-causal-mask", "b6-full-backward", "e3-layer-norm", "f1-bare-gpt")


@pytest.mark.parametrize("ids", [QUICK, pytest.param((), marks=pytest.mark.slow)], ids=["quick", "every kind"])
def test_libreoffice_comes_to_the_same_numbers_as_is_and_changed(ids: tuple[str, ...], tmp_path: Path) -> None:
    books, expected = {}, {}
    draw = random.Random(2)
    for id, problem in ({id: library.load(id) for id in ids} or one_of_each_kind()).items():
        found = shown(problem)
        sheet = xlsx.Workbook(found)
        other = shown(changed(problem, draw))
        books[id], expected[id] = sheet.content(), (sheet, found)
        books[f"{id}-changed"], expected[f"{id}-changed"] = with_inputs_of(sheet, other), (sheet, other)
    for name, there in recalculated(books, tmp_path).items():
        sheet, theirs = expected[name]
        for item in sheet.items:
            values = theirs.run.trace.numbers[item.id]
            for index in np.ndindex(*values.shape):
                at, value = sheet.address(item.id, index), float(values[index])
                if math.isnan(value):
                    assert at not in there
                elif math.isinf(value):
                    assert there[at] * math.copysign(1, value) > 5e8, (name, at)
                else:
                    assert there[at] == pytest.approx(value, rel=1e-9, abs=1e-12), (name, at)
