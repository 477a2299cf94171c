"""Imports go one way, from the syntax trees: those inside functions and for types alone included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import attncli

ROOT = Path(attncli.__file__).parent
FILES = {".".join(path.with_suffix("").relative_to(ROOT.parent).parts): path for path in ROOT.rglob("*.py")}

#: What stands below everything: nothing in these knows of a calculation.
GROUND = ("message", "record", "matrix", "limits", "reasons", "outputs", "npz", "report")
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
PRINTED = {("attncli.problems.run", "render"), ("attncli.marking.marked", "render")}


def imported(module: str) -> Iterator[str]:
    """The modules of this package that a file imports."""
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            known = (
                name
                if name in FILES
                else f"{name}.__init__"
                if f"{name}.__init__" in FILES
                else name.rpartition(".")[0]
            )
            known = known if known in FILES else f"{known}.__init__"
            if known in FILES and known != module:
                yield known


def room(module: str) -> str:
    _, where, *rest = module.split(".")
    return "ground" if where == "core" and rest[0] in GROUND else where if rest else ""


ARROWS = {module: set(imported(module)) for module in FILES}


@pytest.mark.parametrize("module", sorted(module for module in FILES if room(module)))
def test_a_room_knows_only_those_before_it(module: str) -> None:
    own = room(module)
    for other in ARROWS[module]:
        there = room(other)
        if there == own or (module, there) in PRINTED or not there:
            continue
        assert FLOOR[there] <= FLOOR[own], other
        assert (own, there) not in BESIDE | {(b, a) for a, b in BESIDE}, other


def test_no_circle_of_files() -> None:
    arrows = {
        module: {other for other in others if (module, room(other)) not in PRINTED} for module, others in ARROWS.items()
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" ← ".join(error.args[1]))


def test_only_screens_know_the_library_that_draws_them() -> None:
    for module, path in FILES.items():
        if room(module) not in ("render", "cli"):
            names = [
                name
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                for name in (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [getattr(node, "module", "") or ""]
                )
            ]
            assert not [name for name in names if name.partition(".")[0] == "rich"], module
