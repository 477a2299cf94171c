"""How far rounding on the way can move a line of a simulated learner. Bare NumPy; nothing of attncli is used here."""

from __future__ import annotations

from typing import Any

import numpy as np
from learner import Case, Learner, Line, Use, lines


def reach(case: Case, target: str, decimals: int) -> Any:
    """How far rounding every line before `target` can move it, to first order: the sum over all single numbers."""
    right = Learner(case, decimals).run()
    half = 0.5 * 10.0**-decimals
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(_reach(case, right, target, half))


def _reach(case: Case, right: dict[str, Any], target: str, half: float) -> Any:
    given = case.known if case.root is None else {**case.known, "root": case.root}
    all_lines = list(lines(case))
    all_lines = all_lines[: [id for id, _ in all_lines].index(target) + 1]
    asked = asked_by({**given, **right}, all_lines)
    leading = _leading_to(target, asked)

    def moved(place: str, value: Any) -> Any:
        values = {**given, **right, place: value}
        changed = {place}
        for id, line in all_lines:
            if id in leading and id != place and changed & asked[id]:
                values[id] = line(Use(values.__getitem__))
                changed.add(id)
        return np.abs(values[target] - right[target])

    total = np.zeros_like(right[target])
    if "root" in given:
        total = moved("root", given["root"] + half)
    for place, _ in all_lines[:-1]:
        if place not in leading:
            continue
        for cell in np.argwhere(np.isfinite(right[place])):
            value = right[place].copy()
            value[tuple(cell)] += half
            total = total + moved(place, value)
    return total


def asked_by(values: dict[str, Any], all_lines: list[tuple[str, Line]]) -> dict[str, set[str]]:
    """What every line asks for."""
    asked: dict[str, set[str]] = {}
    for id, line in all_lines:
        names = asked[id] = set()

        def noted(name: str, names: set[str] = names) -> Any:
            names.add(name)
            return values[name]

        with np.errstate(all="ignore"):
            line(Use(noted))
    return asked


def _leading_to(target: str, asked: dict[str, set[str]]) -> set[str]:
    """The lines that a line comes from, itself included."""
    found, waiting = {target}, [target]
    while waiting:
        for name in asked.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found
