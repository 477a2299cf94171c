"""A longer calculation put together from exercises: what one hands to the next, and where their gradients meet.

Bare NumPy; nothing of attncli is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from learn_layers import paths
from learner import Case, Exercise, Line, Use, gradient_of
from wrongs import Kind

Pair = tuple[str, Line]


@dataclass
class Part:
    """An exercise in the midst of others, under its own short names.

    Parameters
    ----------
    prefix : goes before the names of its lines and weights
    sources : what it works on, by its short name
    paths : by a source's short name, the lines that carry its gradient back, and the line each comes from
    forward, back : the lines
    straight : for a norm, the gradient taken straight through (arriving, divisor) and the path it stands for
    feeds : lines that work on the source itself
    """

    prefix: str
    sources: dict[str, str]
    paths: dict[str, dict[str, str]]
    forward: list[Pair]
    back: list[Pair]
    kinds: list[Kind]
    straight: tuple[str, str, str] | None = None
    feeds: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """The whole name of a line."""
        found = self.names.get(name)
        if found is None:
            whole = name if name == "root" else self.sources.get(name) or self.prefix + name
            found = self.names[name] = whole
        return found

    def line(self, line: Line) -> Line:
        """A line that asks for whole names."""
        return lambda g: line(g.renamed(self.named))

    def with_source(self, place: str, changed: Callable[[Use], Any]) -> Pair:
        """A line that works on something else in place of its source."""
        line = dict(self.forward)[place]

        def fed(g: Use) -> Any:
            return line(Use(lambda name: changed(g) if name == "X" else g(self.named(name)), g.note))

        return self.named(place), fed


def part_of(
    case: Case, result: str, prefix: str, sources: dict[str, str], ways: dict[str, dict[str, str]], **more: Any
) -> Part:
    """An exercise as a part; lines behind `result` are its way back. Where its paths meet is left to the whole."""
    exercise = case.exercise
    assert exercise is not None
    all_lines = list(exercise.lines(case))
    end = [id for id, _ in all_lines].index(result) + 1
    meeting = {f"G_{source}" for source, way in ways.items() if f"G_{source}" not in way}
    back = [pair for pair in all_lines[end:] if pair[0] not in meeting]
    kinds = [kind for kind in exercise.kinds(case) if kind.place not in meeting]
    return Part(prefix, sources, ways, all_lines[:end], back, kinds, **more)


class Page:
    """The whole calculation.

    Attributes
    ----------
    own : kinds of mistakes that concern several parts
    """

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.own: list[Kind] = []
        self.behind: list[Pair] = []

    def add(self, part: Part) -> Part:
        self.parts.append(part)
        return part

    def residual(self, id: str, x: str, through: str) -> Part:
        """x + f(x)."""
        prefix, _, name = id.rpartition(".")
        short = through.rpartition(".")[2]
        part = Part(
            f"{prefix}.",
            {"X": x},
            {"X": {"G_X": name}},
            [(name, lambda g: g("X") + g(short))],
            [(f"G_{short}", lambda g: g(f"G_{name}")), ("G_X", lambda g: g(f"G_{name}"))],
            [
                Kind(name, "residual-missing", lambda g: g(short)),
                Kind(name, "residual-doubled", lambda g: 2 * g(short)),
            ],
        )
        return self.add(part)

    def exercise(self, draw: Any, output: str) -> Exercise:
        """All of it as one exercise."""
        whole, kinds = self._lines(), self._kinds()
        return Exercise(draw, lambda case: iter(whole), lambda case: iter(kinds), output)

    def _lines(self) -> list[Pair]:
        """Every line in order; where paths meet, their sum."""
        self._name_paths()
        out = [(part.named(id), part.line(line)) for part in self.parts for id, line in part.forward]
        for part in reversed(self.parts):
            out += [(part.named(id), part.line(line)) for id, line in part.back]
            for source in part.sources.values():
                meeting = self._meeting(source)
                if len(meeting) > 1 and self._users(source)[0] is part:
                    out.append((gradient_of(source), lambda g, m=tuple(meeting): sum(g(one) for one in m)))
        return out + self.behind

    def _users(self, source: str) -> list[Part]:
        return [part for part in self.parts if any(part.sources[short] == source for short in part.paths)]

    def _meeting(self, source: str) -> dict[str, tuple[Part, str]]:
        """The lines that carry gradients back to a source: by whole name, the part and its short name."""
        found = [
            (part, line, mark)
            for part in self._users(source)
            for short, way in part.paths.items()
            if part.sources[short] == source
            for line, mark in way.items()
        ]
        alone = len(found) == 1
        return {gradient_of(source) + ("" if alone else f"_{mark}"): (part, line) for part, line, mark in found}

    def _name_paths(self) -> None:
        for part in self.parts:
            for short in part.paths:
                source = part.sources[short]
                for whole, (owner, line) in self._meeting(source).items():
                    owner.names[line] = whole
                part.names.setdefault(f"G_{short}", gradient_of(source))

    def _kinds(self) -> list[Kind]:
        out = []
        for part in self.parts:
            for kind in part.kinds:
                also = {part.named(id): part.line(line) for id, line in kind.also.items()}
                out.append(Kind(part.named(kind.place), kind.id, part.line(kind.line), kind.variant, also=also))
        for source in dict.fromkeys(source for part in self.parts for source in part.sources.values()):
            out += self._kinds_of_sum(source)
        return out + self.own

    def _kinds_of_sum(self, source: str) -> Iterator[Kind]:
        meeting, place = self._meeting(source), gradient_of(source)
        for whole, (part, line) in meeting.items():
            others = [one for one in meeting if one != whole]
            if part.straight is not None and part.straight[2] == line:
                arriving, divisor = part.named(part.straight[0]), part.named(part.straight[1])
                statistics = {part.named(one) for one in part.paths["X"]}
                rest = [one for one in others if one not in statistics]

                def through(g: Use, a: str = arriving, d: str = divisor, rest: Any = tuple(rest)) -> Any:
                    return sum((g(one) for one in rest), g(a) / g(d))

                yield Kind(place, "norm-paths-missing", through)
                if "normalised" in line:  # the same, from what was written of it
                    written = (whole, *rest)
                    yield Kind(place, "norm-paths-missing", lambda g, w=written: sum(g(one) for one in w), "as written")
            if others and part.forward[0][0] == "residual":
                yield Kind(place, "residual-path-missing", lambda g, o=tuple(others): sum(g(one) for one in o))
            if others and part.forward[0][0] == "X":
                yield Kind(place, "output-head-missing", lambda g, w=whole: g(w))
        if len(meeting) > 1:
            yield from paths(place, list(meeting))
