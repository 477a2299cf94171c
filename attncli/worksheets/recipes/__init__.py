"""Recipes: what an exercise is made of, before its numbers are drawn. Found by listing this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attncli.core.message import Message, unknown
from attncli.core.record import Record

_NOTHING: Mapping[str, Any] = {}


class Drawn(Record):
    """A matrix whose numbers are drawn.

    Parameters
    ----------
    shape : as the model wants it
    least, most, step : the numbers it may hold: least, least + step, …, most
    repeats : ids, of which one occurs twice and not all are the same
    """

    shape: tuple[int, ...]
    least: float
    most: float
    step: float = 1.0
    repeats: bool = False

    @property
    def choices(self) -> tuple[float, ...]:
        """The numbers it may hold."""
        return tuple(self.least + i * self.step for i in range(round((self.most - self.least) / self.step) + 1))


class Recipe(Record):
    """An exercise without numbers.

    Parameters
    ----------
    inputs : by name; `gradient`: the gradient that arrives at the output, by its id
    settings : of the model, as a problem file writes them
    ask : steps that are handed in; empty: every step
    decimals : places that a written number is judged at
    effort : multiplications, divisions and powers of one variant; those of a set are within 6 % of it. None: not held to
    ties : rows of scores may hold the same score twice (a token that occurs twice has the same key)
    """

    name: str
    model: str
    inputs: Mapping[str, Drawn]
    gradient: Mapping[str, Drawn] = _NOTHING
    settings: Mapping[str, Any] = _NOTHING
    ask: tuple[str, ...] = ()
    decimals: int = 3
    effort: int | None = None
    ties: bool = False
    title: Mapping[str, str] = _NOTHING
    prompt: Mapping[str, str] = _NOTHING


def names() -> list[str]:
    """All recipes, by the names of their files."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.toml"))


def load(name: str) -> Recipe:
    """The recipe of this name."""
    known = names()
    if name not in known:
        raise unknown(Message("The recipe"), name, known)
    data = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
    del data["schema"]
    tables = {key: _numbers(data.get(key, {})) for key in ("inputs", "gradient")}
    return Recipe(name=name, **{**data, **tables, "ask": tuple(data.get("ask", ()))})


def _numbers(table: Mapping[str, Any]) -> dict[str, Drawn]:
    return {
        name: Drawn(
            tuple(one["shape"]),
            float(one["from"]),
            float(one["to"]),
            float(one.get("step", 1)),
            one.get("repeats", False),
        )
        for name, one in table.items()
    }
