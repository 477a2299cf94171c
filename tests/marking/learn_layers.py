"""A learner with a calculator at the layers around attention: norms, positions, rotary, feed-forward, residual.

Bare NumPy, right and with the mistakes of the catalogue. Nothing of attncli is used here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from learner import Case, Exercise, Line, Use, entries, t
from wrongs import Kind

Lines = Iterator[tuple[str, Line]]


def made(model: str, rng: random.Random, shapes: dict[str, tuple[int, ...]], upstream: Any, size: float = 1.8) -> Case:
    """An exercise with random numbers of these shapes, and a gradient that arrives."""
    drawn = {name: array(rng, shape, size) for name, shape in shapes.items()}
    case = Case(model, {name: pair[0] for name, pair in drawn.items()}, {name: pair[1] for name, pair in drawn.items()})
    if upstream is not None:
        case.upstream, case.upstream_text = array(rng, upstream, 2.0)
    return case


def array(rng: random.Random, shape: tuple[int, ...], size: float) -> tuple[Any, str]:
    """Numbers with one or two decimals, and their text; heads separated by a bar."""
    if len(shape) < 3:
        return entries(rng, *(1, *shape)[-2:], size)
    pages = [entries(rng, *shape[1:], size) for _ in range(shape[0])]
    return np.array([numbers for numbers, _ in pages]), " | ".join(text for _, text in pages)


def is_uneven(numbers: Any) -> bool:
    """Whether no row is nearly constant."""
    return bool((np.ptp(numbers, -1) > 0.3).all())


# Norms ------------------------------------------------------------------------------------------------------------


def _norm(model: str) -> Exercise:
    def draw(rng: random.Random) -> Case:
        while True:
            n, d = rng.randint(2, 4), rng.randint(2, 4)
            shapes: dict[str, tuple[int, ...]] = {"X": (n, d)}
            if rng.random() < 0.8:
                shapes["gamma"] = (d,)
            if rng.random() < 0.7 and model == "layer_norm":
                shapes["beta"] = (d,)
            case = made(model, rng, shapes, (n, d))
            case.settings["eps"] = rng.choice((0.001, 0.01, 0.1, 0.5))
            case.exercise = exercise
            case.vectors = ("mean", "variance", "std", "mean_square", "rms", "G_gamma", "G_beta", *_COLUMNS)
            if is_uneven(case.inputs["X"]) and is_uneven(case.upstream):
                return case

    exercise = Exercise(draw, _norm_lines, lambda case: _norm_kinds(case), "Y")
    return exercise


#: Lines of the way back that hold one number a row.
_COLUMNS = tuple(
    f"G_{name}{part}"
    for name in ("std", "rms", "variance", "mean_square", "mean")
    for part in ("", "_total", "_share", "_half")
)


def _parts(case: Case) -> tuple[str, str, str]:
    """Names of what is divided, of its mean square, and of the divisor."""
    return ("centred", "variance", "std") if case.model == "layer_norm" else ("X", "mean_square", "rms")


def _norm_lines(case: Case) -> Lines:
    source, square, root = _parts(case)
    eps, width = case.settings["eps"], case.inputs["X"].shape[-1]
    if source == "centred":
        yield "mean", lambda g: g("X").mean(-1, keepdims=True)
        yield "centred", lambda g: g("X") - g("mean")
    yield square, lambda g: (g(source) ** 2).mean(-1, keepdims=True)
    yield root, lambda g: np.sqrt(g(square) + eps)
    yield "normalised", lambda g: g(source) / g(root)
    yield "Y", lambda g: _scaled(case, g, g("normalised"))
    if "beta" in case.inputs:
        yield "G_beta", lambda g: g("G_Y").sum(0, keepdims=True)
    if "gamma" in case.inputs:
        yield "G_gamma_product", lambda g: g("G_Y") * g("normalised")
        yield "G_gamma", lambda g: g("G_gamma_product").sum(0, keepdims=True)
    yield "G_normalised", lambda g: g("G_Y") * (g("gamma") if "gamma" in case.inputs else 1.0)
    yield f"G_{root}_product", lambda g: g("G_normalised") * g("normalised")
    yield f"G_{root}_total", lambda g: g(f"G_{root}_product").sum(-1, keepdims=True)
    yield f"G_{root}_share", lambda g: g(f"G_{root}_total") / g(root)
    yield f"G_{root}", lambda g: -g(f"G_{root}_share")
    yield f"G_{source}_normalised", lambda g: g("G_normalised") / g(root)
    yield f"G_{square}_half", lambda g: g(f"G_{root}") / 2
    yield f"G_{square}", lambda g: g(f"G_{square}_half") / g(root)
    yield f"G_{source}_{square}", lambda g: 2 * g(source) * g(f"G_{square}") / width
    yield f"G_{source}", lambda g: g(f"G_{source}_normalised") + g(f"G_{source}_{square}")
    if source == "centred":
        yield "G_mean_total", lambda g: g("G_centred").sum(-1, keepdims=True)
        yield "G_mean", lambda g: -g("G_mean_total")
        yield "G_X_centred", lambda g: g("G_centred")
        yield "G_X_mean", lambda g: np.repeat(g("G_mean") / width, width, -1)
        yield "G_X", lambda g: g("G_X_centred") + g("G_X_mean")


def _scaled(case: Case, g: Use, values: Any) -> Any:
    values = g("gamma") * values if "gamma" in case.inputs else values
    return values + g("beta") if "beta" in case.inputs else values


def _norm_kinds(case: Case) -> Iterator[Kind]:
    source, square, root = _parts(case)
    eps, width = case.settings["eps"], case.inputs["X"].shape[-1]

    def down(g: Use) -> Any:
        return (g(source) ** 2).mean(0, keepdims=True)

    def whole(g: Use) -> Any:
        x = g("X")
        if source == "centred":
            x = g.aside("centred", x - g.aside("mean", x.mean(0)))
        square = g.aside("square", (x**2).mean(0))
        return x / g.aside("root", np.sqrt(square + eps))

    def of_all(g: Use) -> Any:
        x = g("X")
        if source == "centred":
            x = g.aside("centred", x - g.aside("mean", x.mean()))
        return x / g.aside("root", np.sqrt(g.aside("square", (x**2).mean()) + eps))

    if source == "centred":
        of_columns = {"variance": down}
        yield Kind("mean", "normalised-over-tokens", lambda g: g("X").mean(0, keepdims=True), also=of_columns)
        yield Kind("centred", "normalised-over-tokens", lambda g: g("X") - g("X").mean(0), also=of_columns)
        yield Kind("centred", "not-centred", lambda g: g("X"))
        yield Kind("variance", "not-centred", lambda g: (g("X") ** 2).mean(-1, keepdims=True))
        sample: Line = lambda g: (g("centred") ** 2).sum(-1, keepdims=True) / (width - 1)  # noqa: E731
        yield Kind("variance", "sample-variance", sample)
        alike_back: Line = lambda g: 2 * g(source) * g("G_variance") / (width - 1)  # noqa: E731
        back = {"G_centred_variance": alike_back}
        yield Kind("variance", "sample-variance", sample, "back too", also=back)
        yield Kind("normalised", "not-centred", lambda g: g("X") / g("std"), "right divisor")
        yield Kind(
            "normalised",
            "not-centred",
            lambda g: g("X") / g.aside("root", np.sqrt(g.aside("square", (g("X") ** 2).mean(-1, keepdims=True)) + eps)),
        )
    yield Kind(square, "normalised-over-tokens", down)
    over_all: Line = lambda g: np.full((len(case.inputs["X"]), 1), (g(source) ** 2).mean())  # noqa: E731
    yield Kind(square, "normalised-over-all", over_all)
    yield Kind("normalised", "normalised-over-tokens", whole)
    yield Kind("normalised", "normalised-over-all", of_all)
    yield Kind(root, "eps-outside-root", lambda g: np.sqrt(g(square)) + eps)
    yield Kind(root, "not-square-rooted", lambda g: g(square) + eps)
    yield Kind(root, "rooted-twice", lambda g: np.sqrt(g.aside("bare", np.sqrt(g(square))) + eps))
    yield Kind(root, "variance-squared", lambda g: (g(square) + eps) ** 2)
    outside: Line = lambda g: g(source) / g.aside("root", g.aside("bare", np.sqrt(g(square))) + eps)  # noqa: E731
    yield Kind("normalised", "eps-outside-root", outside)
    yield Kind("normalised", "not-square-rooted", lambda g: g(source) / g.aside("divisor", g(square) + eps))
    twice: Line = lambda g: g(source) / g.aside("root", np.sqrt(g.aside("bare", np.sqrt(g(square))) + eps))  # noqa: E731
    yield Kind("normalised", "rooted-twice", twice)
    yield Kind("normalised", "variance-squared", lambda g: g(source) / g.aside("divisor", (g(square) + eps) ** 2))
    yield from _norm_back(case)


def _norm_back(case: Case) -> Iterator[Kind]:
    source, square, root = _parts(case)
    rows = len(case.inputs["X"])
    if "beta" in case.inputs:
        yield Kind("G_beta", "mean-for-sum", lambda g: g("G_Y").mean(0, keepdims=True))
        yield Kind("G_beta", "value-for-gradient", lambda g: g("Y").sum(0, keepdims=True))
    if "gamma" in case.inputs:
        yield Kind("G_gamma_product", "value-for-gradient", lambda g: g("Y") * g("normalised"))
        yield Kind("G_gamma", "mean-for-sum", lambda g: g("G_gamma_product").sum(0, keepdims=True) / rows)
    yield Kind("G_normalised", "value-for-gradient", lambda g: g("Y") * (g("gamma") if "gamma" in case.inputs else 1))
    yield Kind(f"G_{root}_product", "value-for-gradient", lambda g: g("normalised") * g("normalised"))
    yield Kind(f"G_{source}_normalised", "value-for-gradient", lambda g: g("normalised") / g(root))
    yield Kind(f"G_{square}_half", "value-for-gradient", lambda g: g(root) / 2)
    yield Kind(f"G_{square}_half", "gradient-scale-lost", lambda g: g(f"G_{root}"))
    yield Kind("G_X", "norm-paths-missing", lambda g: g("G_normalised") / g(root))
    yield Kind(f"G_{source}", "norm-paths-missing", lambda g: g(f"G_{source}_normalised"), "as written")
    yield from paths(f"G_{source}", [f"G_{source}_normalised", f"G_{source}_{square}"])
    if source == "centred":
        yield from paths("G_X", ["G_X_centred", "G_X_mean"])


def paths(place: str, parts: list[str]) -> Iterator[Kind]:
    """A path or two left out of a sum, or one counted twice."""
    for name in parts:
        others = [part for part in parts if part != name]
        yield Kind(place, "path-missing", lambda g, o=others: sum(g(one) for one in o), f"without {name}")
        yield Kind(place, "path-twice", lambda g, n=name: sum(g(one) for one in parts) + g(n), name)
        if len(parts) > 2:
            yield Kind(place, "path-missing", lambda g, n=name: g(n), f"{name} alone")


# Positions --------------------------------------------------------------------------------------------------------


def _angles(case: Case, width: int, rows: int, factor: float = 2.0, first: float = 0.0, base: float = 0.0) -> Any:
    pairs = (width + 1) // 2
    base = base or case.settings.get("base", 10000.0)
    at = np.arange(rows)[:, None] + case.settings.get("start", 0.0) + first
    return at / base ** (factor * np.arange(pairs)[None, :] / width)


def _waves(case: Case, rng: random.Random) -> None:
    if rng.random() < 0.7:
        case.settings["base"] = rng.choice((4.0, 10.0, 100.0, 10000.0))
    if rng.random() < 0.2:
        case.settings["start"] = rng.choice((1.0, 2.0, 5.0))


def _angle_kinds(case: Case, width: int, rows: int) -> Iterator[Kind]:
    yield Kind("angle", "positions-from-one", lambda g: _angles(case, width, rows, first=1.0))
    if width > 2:
        yield Kind("angle", "exponent-doubled", lambda g: _angles(case, width, rows, 4.0))
        for base in {100.0, 1000.0, 10000.0, 500000.0} - {case.settings.get("base", 10000.0)}:
            line: Line = lambda g, b=base: _angles(case, width, rows, base=b)  # noqa: E731
            yield Kind("angle", "base-changed", line, f"{base:g}")
        yield Kind("angle", "position-exponents", lambda g: _angles(case, width, rows, 1.0), "i/d")
        factor = width / ((width + 1) // 2 - 1)
        yield Kind("angle", "position-exponents", lambda g: _angles(case, width, rows, factor), "i/(d/2 - 1)")


def _draw_positions(rng: random.Random) -> Case:
    case = Case("positions", {}, {}, settings={"n": rng.randint(2, 4), "d_model": rng.randint(2, 6)})
    _waves(case, rng)
    case.exercise = POSITIONS
    return case


def _encoded(a: Any, width: int) -> Any:
    out = np.empty((len(a), width))
    out[:, 0::2], out[:, 1::2] = np.sin(a), np.cos(a)[:, : width // 2]
    return out


def positions_lines(case: Case) -> Lines:
    rows, width = case.settings["n"], case.settings["d_model"]
    yield "angle", lambda g: _angles(case, width, rows)
    yield "PE", lambda g: _encoded(g("angle"), width)


def positions_kinds(case: Case) -> Iterator[Kind]:
    rows, width = case.settings["n"], case.settings["d_model"]
    yield from _angle_kinds(case, width, rows)
    base, column = case.settings.get("base", 10000.0), np.arange(width)[None, :]
    at = np.arange(rows)[:, None] + case.settings.get("start", 0.0)

    def by_column(exponent: Any) -> Line:
        def done(g: Use) -> Any:
            a = g.aside("angle", at / base ** (exponent / width))
            return np.where(column % 2 == 0, np.sin(a), np.cos(a))

        return done

    yield Kind("PE", "cos-exponent-odd", by_column(column))
    yield Kind("PE", "exponent-doubled", by_column(2 * column))
    pair = column - column % 2
    yield Kind("PE", "position-exponents", by_column(np.where(column % 2 == 0, pair, 2 * column)), "of the cosine")
    yield Kind("PE", "position-exponents", by_column(np.where(column % 2 == 0, 2 * column, pair)), "of the sine")
    if width > 2:
        yield Kind(
            "PE",
            "sin-cos-concatenated",
            lambda g: np.concatenate([np.sin(g("angle")), np.cos(g("angle"))], 1)[:, :width],
        )


POSITIONS = Exercise(_draw_positions, positions_lines, positions_kinds, "PE")


# Rotary -----------------------------------------------------------------------------------------------------------


def _draw_rotary(rng: random.Random) -> Case:
    while True:
        heads, n, d = rng.choice((0, 0, 2)), rng.randint(2, 4), rng.choice((2, 4, 4, 6))
        shape: tuple[int, ...] = (heads, n, d) if heads else (n, d)
        keys = rng.random() < 0.5
        case = made("rotary", rng, {"X": shape, **({"K": shape} if keys else {})}, (*shape[:-1], n) if keys else shape)
        case.settings["pairing"] = rng.choice(("adjacent", "half"))
        _waves(case, rng)
        case.exercise = ROTARY_SCORES if keys else ROTARY
        if is_uneven(case.upstream):
            return case


def turned(x: Any, cos: Any, sin: Any, pairing: str, way: int = 1) -> Any:
    """Every pair (x, y) → (x cos θ − y sin θ, x sin θ + y cos θ), `way` −1 the other way round."""
    out, pairs = np.empty_like(x), cos.shape[-1]
    for i in range(pairs):
        a, b = (2 * i, 2 * i + 1) if pairing == "adjacent" else (i, i + pairs)
        out[..., a] = x[..., a] * cos[:, i] - way * x[..., b] * sin[:, i]
        out[..., b] = way * x[..., a] * sin[:, i] + x[..., b] * cos[:, i]
    return out


def _rotary_lines(case: Case) -> Lines:
    *_, rows, width = case.inputs["X"].shape
    pairing = case.settings["pairing"]

    def done(name: str, way: int = 1) -> Line:
        return lambda g: turned(g(name), g("cos"), g("sin"), pairing, way)

    yield "angle", lambda g: _angles(case, width, rows)
    yield "cos", lambda g: np.cos(g("angle"))
    yield "sin", lambda g: np.sin(g("angle"))
    yield "rotated", done("X")
    if "K" in case.inputs:
        yield "K_rotated", done("K")
        yield "scores", lambda g: g("rotated") @ t(g("K_rotated"))
        yield "G_rotated", lambda g: g("G_scores") @ g("K_rotated")
        yield "G_K_rotated", lambda g: t(g("G_scores")) @ g("rotated")
    yield "G_X", done("G_rotated", -1)
    if "K" in case.inputs:
        yield "G_K", done("G_K_rotated", -1)


def _rotary_kinds(case: Case) -> Iterator[Kind]:
    *_, rows, width = case.inputs["X"].shape
    yield from _angle_kinds(case, width, rows)
    own = case.settings["pairing"]
    other, name = ("half", "half-split-pairs") if own == "adjacent" else ("adjacent", "adjacent-pairs")
    ways = [("rotation-reversed", own, -1)] + ([(name, other, 1)] if width > 2 else [])
    places = [("rotated", "X"), ("G_X", "G_rotated")]
    if "K" in case.inputs:
        places += [("K_rotated", "K"), ("G_K", "G_K_rotated")]
        yield Kind("scores", "key-not-transposed", lambda g: g("rotated") @ g("K_rotated"))
        yield Kind("scores", "operands-swapped", lambda g: g("K_rotated") @ t(g("rotated")))
        yield Kind("G_rotated", "gradient-not-transposed", lambda g: t(g("G_scores")) @ g("K_rotated"))
        yield Kind("G_K_rotated", "gradient-not-transposed", lambda g: g("G_scores") @ g("rotated"))
        yield Kind("G_rotated", "operands-swapped", lambda g: g("K_rotated") @ g("G_scores"))
        yield Kind("G_K_rotated", "operands-swapped", lambda g: t(g("rotated")) @ g("G_scores"))
        yield Kind("G_rotated", "value-for-gradient", lambda g: g("scores") @ g("K_rotated"))
    for id, pairing, way in ways:

        def done(source: str, pairing: str = pairing, way: int = way, back: int = 1) -> Line:
            return lambda g: turned(g(source), g("cos"), g("sin"), pairing, way * back)

        for place, source in places:
            yield Kind(place, id, done(source, back=-1 if place.startswith("G_") else 1))
        if "K" in case.inputs:
            yield Kind("rotated", id, done("X"), "keys too", also={"K_rotated": done("K")})
    for place, source in places:
        if place.startswith("G_"):
            value = source.removeprefix("G_")
            yield Kind(place, "value-for-gradient", lambda g, v=value: turned(g(v), g("cos"), g("sin"), own, -1))


def turned_lines(case: Case, pairs: dict[str, str]) -> Lines:
    """Angles of positions, and what is turned by them: the new line by the one it comes from."""
    pairing, width, rows = case.settings.get("pairing", "adjacent"), case.turned, len(case.inputs["X"])
    yield "angle", lambda g: _angles(case, width, rows)
    yield "cos", lambda g: np.cos(g("angle"))
    yield "sin", lambda g: np.sin(g("angle"))
    for place, source in pairs.items():
        yield place, lambda g, s=source: turned(g(s), g("cos"), g("sin"), pairing)


def turned_back(case: Case, pairs: dict[str, str]) -> Lines:
    """The gradients turned back."""
    pairing = case.settings.get("pairing", "adjacent")
    for place, source in pairs.items():
        yield f"G_{source}", lambda g, p=place: turned(g(f"G_{p}"), g("cos"), g("sin"), pairing, -1)


def turned_kinds(case: Case, pairs: dict[str, str]) -> Iterator[Kind]:
    """What goes wrong in it, where queries and keys are turned inside an attention; the values turned too."""
    own, width, rows = case.settings.get("pairing", "adjacent"), case.turned, len(case.inputs["X"])
    yield from _angle_kinds(case, width, rows)
    other, name = ("half", "half-split-pairs") if own == "adjacent" else ("adjacent", "adjacent-pairs")
    for id, pairing, way in [("rotation-reversed", own, -1)] + ([(name, other, 1)] if width > 2 else []):

        def done(source: str, pairing: str = pairing, way: int = way) -> Line:
            return lambda g: turned(g(source), g("cos"), g("sin"), pairing, way)

        both = {place: done(source) for place, source in pairs.items()}
        first, second = both
        for place, line in both.items():
            yield Kind(place, id, line)
            yield Kind(f"G_{pairs[place]}", id, done(f"G_{place}", way=-way))
        yield Kind(first, id, both[first], "both", also={second: both[second]})
        yield Kind(second, id, both[second], "both", also={first: both[first]})
    for place, source in pairs.items():
        yield Kind(f"G_{source}", "value-for-gradient", lambda g, p=place: turned(g(p), g("cos"), g("sin"), own, -1))


ROTARY = Exercise(_draw_rotary, _rotary_lines, _rotary_kinds, "rotated")
ROTARY_SCORES = Exercise(_draw_rotary, _rotary_lines, _rotary_kinds, "scores")


# Residual ---------------------------------------------------------------------------------------------------------


def _draw_residual(rng: random.Random) -> Case:
    shape = rng.randint(2, 4), rng.randint(2, 4)
    case = made("residual", rng, {"X": shape, "F": shape}, shape)
    case.exercise = RESIDUAL
    return case


def _residual_lines(case: Case) -> Lines:
    yield "Y", lambda g: g("X") + g("F")
    yield "G_F", lambda g: g("G_Y")
    yield "G_X", lambda g: g("G_Y")


def _residual_kinds(case: Case) -> Iterator[Kind]:
    yield Kind("Y", "residual-missing", lambda g: g("F"))
    yield Kind("Y", "residual-doubled", lambda g: 2 * g("F"))


RESIDUAL = Exercise(_draw_residual, _residual_lines, _residual_kinds, "Y")


EXERCISES = (_norm("layer_norm"), _norm("rms_norm"), POSITIONS, ROTARY, RESIDUAL)
