"""A set: the variants of a recipe for a class, as a folder that can be printed, handed out, and graded."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from attncli import __version__
from attncli.core.graph import gradient_id
from attncli.core.limits import MOST_TEXT_BYTES
from attncli.core.message import InputError, placed
from attncli.core.outputs import make_folder, write_whole
from attncli.core.record import Record
from attncli.locale import language
from attncli.marking.grader import begin, processes
from attncli.marking.mark import Marker
from attncli.problems import file
from attncli.problems.matrix_text import write_matrix
from attncli.problems.problem import Problem
from attncli.problems.question import question_of
from attncli.problems.reading import decoded, parse_csv, read_bounded, toml_key
from attncli.worksheets import generator, recipes
from attncli.worksheets.outcomes import Proof, key_of, powers_of

#: Variants that one set may have.
MOST_VARIANTS = 2000


class SetOrder(Record):
    """What a set is made from.

    Parameters
    ----------
    students : whose variants they are; empty: numbered ones, `variants` of them
    decimals, ask : where not as the recipe says
    """

    recipe: str
    seed: str
    variants: int = 0
    students: tuple[str, ...] = ()
    decimals: int | None = None
    ask: tuple[str, ...] = ()
    language: str = "en"

    def sheets(self) -> list[Job]:
        """The sheets, in order. A student's follows from the set and the name alone, whoever else is in the class."""
        width = len(str(self.variants))
        named = {f"student {name}": (_short(self.seed, name), name) for name in self.students}
        numbered = {str(number): (f"{number:0{width}}", "") for number in range(1, self.variants + 1)}
        made = named if self.students else numbered
        return [Job(self, f"{self.recipe}-{short}", seed, student) for seed, (short, student) in made.items()]


class Job(Record):
    """One sheet to make."""

    order: SetOrder
    id: str
    seed: str
    student: str

    def drawn(self) -> tuple[Problem, list[Proof]]:
        """Its problem, and what its numbers tell apart."""
        order, recipe = self.order, recipes.load(self.order.recipe)
        seed = f"{order.seed}/{self.seed}"
        return generator.draw(recipe, seed, decimals=order.decimals, ask=order.ask, problem_id=self.id, proved=True)


class MadeSheet(Record):
    """One sheet, made: its problem file, its empty answers, its page and its key, and what its numbers tell apart."""

    id: str
    student: str
    problem: str
    answers: str
    page: Any
    key: Any
    proofs: tuple[Proof, ...]


def _short(seed: str, student: str) -> str:
    return hashlib.sha256(f"{seed}/{student}".encode()).hexdigest()[:8]


#: By the ending of a file, what prints the pages of a set into it.
Printer = Callable[[str], Callable[[Sequence[Any]], str]]


def make(job: Job, page: Callable[..., Any]) -> MadeSheet:
    """One sheet; `page(question, language, key, student=…, powers=…)` puts it on a page."""
    problem, proofs = job.drawn()
    question = question_of(problem)
    words = language(job.order.language)
    sheet = page(question, words, student=job.student, powers=powers_of(question))
    key = page(question, words, key_of(Marker(problem), question))
    texts = problem_text(problem), answers_text(problem, job.student)
    return MadeSheet(job.id, job.student, *texts, sheet, key, tuple(proofs))


def make_all(order: SetOrder, page: Callable[..., Any], jobs: int = 1) -> Iterator[MadeSheet]:
    """The sheets of a set, in order, by one process or several."""
    waiting = order.sheets()
    if jobs == 1 or len(waiting) == 1:
        yield from map(partial(make, page=page), waiting)
        return
    from concurrent.futures.process import BrokenProcessPool

    with ExitStack() as stack:
        try:
            yield from processes(min(jobs, len(waiting)), stack, begin).map(partial(make, page=page), waiting)
        except BrokenProcessPool:
            raise InputError(
                "-j: something ended one of the processes, perhaps because memory ran out. Run it again with fewer processes."
            ) from None


def write(folder: Path, order: SetOrder, made: Iterable[MadeSheet], printer: Printer) -> list[MadeSheet]:
    """Write the folder of a set (FORMATS).

    Parameters
    ----------
    printer : what prints pages, by the ending of a file
    """
    sheets = list(made)
    pages, keys = [one.page for one in sheets], [one.key for one in sheets]
    files = {f"problems/{one.id}.toml": one.problem for one in sheets}
    # One that is there may be filled in already.
    answers = {f"answers/{one.id}.toml": one.answers for one in sheets}
    files |= {name: text for name, text in answers.items() if not (folder / name).exists()}
    files |= {f"sheets{ending}": printer(ending)(pages) for ending in (".html", ".tex", ".md")}
    files |= {"teacher/key.html": printer(".html")(keys), "teacher/certificate.json": _certificates(sheets)}
    files |= {"students.csv": _students(sheets), "set.toml": set_text(order, [one.id for one in sheets])}
    for name, text in files.items():
        make_folder((folder / name).parent, "-o")
        write_whole(str(folder / name), text.encode())
    return sheets


def check_folder(folder: Path, order: SetOrder, *, force: bool) -> None:
    """Refuse a folder that holds something else."""

    if folder.exists() and not folder.is_dir():
        raise InputError(
            "-o {path}: this is a file, but variants are written into a folder. Give another name.", path=str(folder)
        )
    if force or not folder.is_dir() or not any(folder.iterdir()):
        return
    table, text = folder / "set.toml", set_text(order, [job.id for job in order.sheets()])
    if not table.is_file() or table.read_text(encoding="utf-8", errors="replace") != text:
        raise InputError(
            "-o {path}: this folder was not written by attncli worksheet. Give a new one, or --force to write into it.",
            path=str(folder),
        )


def set_text(order: SetOrder, ids: Sequence[str]) -> str:
    """set.toml: what the set was made from."""
    table = {
        "schema": 1,
        "recipe": order.recipe,
        "seed": order.seed,
        "generator": generator.VERSION,
        "version": __version__,
        "decimals": recipes.load(order.recipe).decimals if order.decimals is None else order.decimals,
        **({"ask": list(order.ask)} if order.ask else {}),
        "ids": list(ids),
    }
    return "# attncli-worksheet\n" + _lines(table)


def _lines(table: Mapping[str, object]) -> str:
    """A table of TOML: of texts, numbers and lists, which JSON writes the same way."""
    return "".join(f"{toml_key(name)} = {_quoted(value)}\n" for name, value in table.items())


def _students(sheets: Sequence[MadeSheet]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["student", "sheet"])
    writer.writerows([one.student, one.id] for one in sheets)
    return out.getvalue()


def _certificates(sheets: Sequence[MadeSheet]) -> str:
    data = {
        "schema": 1,
        "sheets": {
            one.id: [
                {"step": proof.step, "id": proof.id, "verdict": proof.verdict, "first_wrong": proof.first_wrong}
                | ({"with": [{"step": step, "id": mistake} for step, mistake in proof.shared]} if proof.shared else {})
                for proof in one.proofs
            ]
            for one in sheets
        },
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def problem_text(problem: Problem) -> str:
    """A complete problem file of what was drawn."""
    upstream = problem.upstream
    tables: dict[str, Mapping[str, object]] = {
        "title": problem.title,
        "prompt": problem.prompt,
        "inputs": {name: write_matrix(matrix.values) for name, matrix in problem.inputs.items()},
        "settings": problem.settings,
        "gradient": {} if upstream is None else {gradient_id(problem.graph().output): write_matrix(upstream.values)},
        "marking.points": problem.marking.points,
    }
    head = {"schema": 1, "id": problem.id, "model": problem.model, "decimals": problem.decimals}
    return _lines(head) + "".join(f"\n[{name}]\n{_lines(table)}" for name, table in tables.items() if table)


def answers_text(problem: Problem, student: str = "") -> str:
    """An empty sheet, TOML, that says whose it is and which problem it answers."""
    head = {"student": student, **({"problem": problem.id} if problem.id else {})}
    return f"{_lines(head)}\n[answers]\n{question_of(problem).sheet()}"


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def students_of(path: str) -> tuple[str, ...]:
    """The names in a CSV with a column student."""
    rows = _rows(path)
    header = [cell.strip().casefold() for cell in rows[0]] if rows else []
    if "student" not in header:
        raise InputError(
            "{path}: the first line names no column student. Write student there, and a name on each line below.",
            path=path,
        )
    at = header.index("student")
    names = [row[at].strip() for row in rows[1:] if len(row) > at and row[at].strip()]
    if not names:
        raise InputError("{path}: there is no name in the column student. Write one on each line.", path=path)
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(
            "{path}: “{name}” is there twice, but a name has one sheet. Write the two differently.",
            path=path,
            name=twice[:60],
        )
    return tuple(names)


def _rows(path: str) -> list[list[str]]:
    with placed(path):
        return parse_csv(decoded(read_bounded(path, MOST_TEXT_BYTES)), strict=True)


def read(path: str) -> tuple[Mapping[str, Problem], Mapping[str, str]]:
    """The problems of a set by their ids, and the id of each student's; nothing where this is no folder of a set."""
    if not os.path.isfile(os.path.join(path, "set.toml")):  # noqa: PTH113, PTH118 - of a name too long it only says no
        return {}, {}
    folder = Path(path)
    try:
        ids = tomllib.loads((folder / "set.toml").read_text(encoding="utf-8"))["ids"]
        problems = {str(name): file.load(folder / "problems" / f"{name}.toml") for name in ids}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            "{path}: set.toml cannot be read ({reason}). Make the folder again with attncli worksheet.",
            path=path, reason=str(error)[:120],
        ) from None  # fmt: skip
    if not problems:
        raise InputError("{path}: set.toml names no sheet. Make the folder again with attncli worksheet.", path=path)
    owners: dict[str, str] = {}
    table = folder / "students.csv"
    for row in _rows(str(table))[1:] if table.is_file() else ():
        student, sheet = (cell.strip() for cell in (*row, "", "")[:2])
        if student and sheet not in problems:
            raise InputError(
                "{path}: students.csv gives {student} the sheet “{sheet}”, which is not in the set.",
                path=path, student=student[:60], sheet=sheet[:80],
            )  # fmt: skip
        if student:
            owners[student] = sheet
    return problems, owners
