"""Imports go one way, from the syntax trees: those inside functions and for types alone included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import attncli

ROOT = Path(attncli.__file__).parent
FILES = {".".join(path.with_suffix("").relative_to(ROOT.parent).parts): path for path in ROOT.rglob("*.py")}

#: What stands below everything: nothing in these knows of a calculation.
GROUND = ("message", "record", "matrix", "limits", "outputs", "report")
#: A room knows those before it.
ROOMS = (
    ("ground", "locale"),
    ("arithmetic",),
    ("core",),
    ("ops",),
    ("models",),
    ("problems",),
    ("mistakes",),
    ("marking", "cost", "lab", "training"),
    ("worksheets", "practice"),
    ("render",),
    ("cli",),
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
#: Rooms beside one another that know nothing of each other.
BESIDE = {("marking", "cost"), ("marking", "lab"), ("marking", "training"), ("cost", "lab"), ("cost", "training")}
#: What an object says of itself when it is printed: `Run.__str__`, `Marked.__str__`.
PRINTED = {("attncli.problems.problem", "render"), ("attncli.marking.feedback", "render")}


@cache
def nodes(module: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))))


def named(module: str) -> Iterator[str]:
    """What a file imports, as it names it."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported(module: str) -> Iterator[str]:
    """The modules of this package that a file imports."""
    for name in named(module):
        above = name.rpartition(".")[0]
        for known in (name, f"{name}.__init__", above, f"{above}.__init__"):
            if known in FILES:
                if known != module:
                    yield known
                break


def room(module: str) -> str:
    _, where, *rest = module.split(".")
    return "ground" if where == "core" and rest[0] in GROUND else where if rest else ""


@cache
def arrows(module: str) -> frozenset[str]:
    return frozenset(imported(module))


@pytest.mark.parametrize("module", sorted(module for module in FILES if room(module)))
def test_a_room_knows_only_those_before_it(module: str) -> None:
    own = room(module)
    for other in arrows(module):
        there = room(other)
        if there == own or (module, there) in PRINTED or not there:
            continue
        assert FLOOR[there] <= FLOOR[own], other
        assert (own, there) not in BESIDE | {(b, a) for a, b in BESIDE}, other


def test_no_circle_of_files() -> None:
    known = {module: {other for other in arrows(module) if (module, room(other)) not in PRINTED} for module in FILES}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        pytest.fail(" ← ".join(error.args[1]))


def test_only_screens_know_the_library_that_draws_them() -> None:
    assert {room(module) for module in FILES for name in named(module) if name.partition(".")[0] == "rich"} == {
        "render",
        "cli",
    }


def test_rendering_puts_no_calculation_together_and_evaluates_none() -> None:
    for module in FILES:
        if room(module) == "render":
            called = [node.func for node in nodes(module) if isinstance(node, ast.Call)]
            names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called}
            assert not names & {"graph", "Graph", "evaluate"}, module


BUILDERS = (
    "document", "view", "run", "exercise", "sheet", "comparison", "report",
)  # fmt: skip
PRINTERS = (
    "terminal",
    "tables",
    "markdown",
    "latex",
    "html",
    "explorer",
    "svg",
    "data",
    "xlsx",
    "chart",
)


@pytest.mark.parametrize("name", BUILDERS)
def test_what_makes_blocks_of_data_knows_no_format_and_no_screen(name: str) -> None:
    module = f"attncli.render.{name}"
    assert not any(imported_name.startswith("rich") for imported_name in named(module))
    assert not arrows(module) & {f"attncli.render.{printer}" for printer in PRINTERS}


@pytest.mark.parametrize("module", sorted(module for module in FILES if room(module) == "render"))
def test_rendering_calculates_nothing(module: str) -> None:
    called = {
        node.func.attr for node in nodes(module) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & {"evaluate", "apply"}
