"""What a low rank loses: singular values, the best approximation of each rank, and what it saves.

The best approximation of rank r in the Frobenius norm keeps the r largest singular values; its error is the root of the
sum of the squares of those left out (Eckart and Young, Psychometrika 1, 1936).
"""

from __future__ import annotations

import math

import numpy as np

from attncli.core.matrix import FloatArray, Matrix, as_matrix
from attncli.core.message import N_, InputError, Message
from attncli.core.record import Record
from attncli.core.report import Column, Plot, Report, Table, Trend
from attncli.lab import Experiment, Option, Settings
from attncli.problems.problem import Problem

#: Rows and columns of a matrix of one's own.
_LARGEST = 512
#: Numbers of a matrix of one's own, whose singular values are to stay finite.
_LARGEST_NUMBER = 1e300


class Decomposed(Record):
    """A matrix with its singular values, those that are 0 up to rounding set to 0, and the error of every rank from 1."""

    letter: str
    name: Message
    values: FloatArray
    singular: FloatArray
    errors: FloatArray

    @property
    def rank(self) -> int:
        return int((self.singular > 0).sum())

    def needed(self, error: float) -> int:
        """The smallest rank whose relative error is at most this."""
        return int((self.errors <= error).argmax()) + 1


def decomposed(letter: str, name: Message, values: FloatArray) -> Decomposed:
    """The singular values, and the relative error ‖M − M_r‖/‖M‖ of the best approximation M_r, measured for every r."""
    # Squares of very large or small numbers are no numbers any more, so it is done in units of the largest.
    unit = float(np.abs(values).max()) or 1.0
    rest = values / unit
    left, singular, right = np.linalg.svd(rest, full_matrices=False)
    # NumPy's own rule for the rank: what is smaller than this is rounding.
    tolerance = singular.max(initial=0.0) * max(values.shape) * np.finfo(np.float64).eps
    singular = np.where(singular > tolerance, singular, 0.0)
    whole = float(np.linalg.norm(rest))
    errors = np.zeros(singular.size)
    for r in range(singular.size):
        rest -= singular[r] * np.outer(left[:, r], right[r])
        errors[r] = np.linalg.norm(rest) / whole if whole and singular[r + 1 :].any() else 0.0
    return Decomposed(letter, name, values, singular * unit, errors)


def run(seed: int, settings: Settings) -> Report:
    """Decompose scores, weights and a projection (or a matrix of one's own), and calculate what a rank saves."""
    own, d_k = settings["matrix"], settings["d_k"]
    found = _own(own) if own is not None else _random(seed, settings["size"], d_k)
    height, width = found[0].values.shape
    most = min(height, width)
    ranks = settings["ranks"] or _ranks(most)
    if max(ranks) > most:
        raise InputError(
            "--ranks: {rank} is too much. The matrix is {rows}×{columns}, so its rank is at most {most}.",
            rank=max(ranks),
            rows=height,
            columns=width,
            most=most,
        )
    if settings["rank"] > settings["width"]:
        raise InputError(
            "--rank: {rank} is too much. At a width of {width} the rank is at most {width}: write a smaller --rank, or a"
            " larger --width.",
            rank=settings["rank"],
            width=settings["width"],
        )
    what, needed = _about_own(found[0]) if own is not None else _about_random(found, d_k, seed)
    parts = (
        Message(
            "{matrices} The best approximation of rank r keeps the r largest singular values; no other matrix of that rank comes"
            " nearer.",
            matrices=what,
        ),
        *_errors(found, ranks),
        needed,
        Message(
            "Two factors of rank r hold r · ({height} + {width}) numbers instead of {height} · {width} = {all}: they save something only"
            " below rank {limit}.",
            height=height,
            width=width,
            all=height * width,
            limit=height * width / (height + width),
        ),
        _singular(found, ranks),
        *_from_sizes(settings["width"], settings["rank"]),
    )
    shown = {**settings, "matrix": None if own is None else own.values.tolist(), "ranks": list(ranks)}
    return Report("rank", Message("What a low rank loses, and what it saves"), seed, shown, parts)


def _own(matrix: Matrix) -> list[Decomposed]:
    values = matrix.values
    if values.ndim != 2 or max(values.shape) > _LARGEST or not np.isfinite(values).all():
        raise InputError(
            "--matrix: give one matrix of finite numbers with at most {most} rows and columns, like “1 2; 3 4”.",
            most=_LARGEST,
        )
    if np.abs(values).max() > _LARGEST_NUMBER:
        raise InputError(
            "--matrix: {given} is too large here. Write numbers up to {most}.",
            given=f"{np.abs(values).max():g}",
            most=f"{_LARGEST_NUMBER:g}",
        )
    if not values.any():
        raise InputError(
            "--matrix: all of its numbers are 0, so there is nothing to approximate. Write another matrix."
        )
    return [decomposed("M", Message("your matrix"), values)]


def _random(seed: int, size: int, d_k: int) -> list[Decomposed]:
    """Scaled scores S and weights A of `size` random tokens, and a random projection W: all size × size."""
    if d_k > size:
        raise InputError(
            "--d-k {d_k} is larger than --size {size}: then the scores would have full rank. Write at most {size}.",
            d_k=d_k,
            size=size,
        )
    random = np.random.default_rng(seed)
    queries, keys = random.standard_normal((2, size, d_k))
    graph = Problem(
        model="attention", inputs={"Q": as_matrix(queries), "K": as_matrix(keys), "V": as_matrix(np.zeros((size, 1)))}
    ).graph()
    scores = "scaled" if "scaled" in graph else "scores"  # with d_k = 1 there is nothing to scale
    trace = graph.evaluate(until=(scores, "A"))
    projection = random.standard_normal((size, size)) / math.sqrt(size)
    return [
        decomposed("S", Message("scores S"), trace[scores]),
        decomposed("A", Message("weights A"), trace["A"]),
        decomposed("W", Message("projection W"), projection),
    ]


def _ranks(most: int) -> tuple[int, ...]:
    """1, 2, 4, … and the full rank."""
    powers = [2**i for i in range(most.bit_length()) if 2**i < most]
    return (*powers, most)


#: An error up to which an approximation is called good here.
_GOOD = 0.1


def _about_own(own: Decomposed) -> tuple[Message, Message]:
    """What the matrix is, and the rank that it needs."""
    height, width = own.values.shape
    what = Message("Your matrix is {height}×{width} and has rank {rank}.", height=height, width=width, rank=own.rank)
    return what, Message(
        "To come within {good} of it (relative error), rank {needed} is needed.", good=_GOOD, needed=own.needed(_GOOD)
    )


def _about_random(found: list[Decomposed], d_k: int, seed: int) -> tuple[Message, Message]:
    """What the matrices are, and the rank that each of them needs."""
    scores, weights, projection = found
    size = len(scores.values)
    what = Message(
        "Three {size}×{size} matrices: the scores S = Q Kᵀ/√d_k of {size} random tokens with d_k = {d_k}, their attention weights"
        " A = softmax(S), and a random projection W (seed {seed}).",
        size=size,
        d_k=d_k,
        seed=seed,
    )
    return what, Message(
        "The scores have rank {rank}, for Q and K have only d_k = {d_k} {columns}: from there on nothing is lost. Softmax is not linear,"
        " so the weights have rank {weights_rank}. For an error of at most {good} the scores need rank {scores},"
        " the weights {weights}, and the random projection {projection} of {size}: random numbers have no pattern that a low"
        " rank could use; trained weights often have one.",
        rank=scores.rank,
        d_k=d_k,
        weights_rank=weights.rank,
        good=_GOOD,
        scores=scores.needed(_GOOD),
        weights=weights.needed(_GOOD),
        projection=projection.needed(_GOOD),
        size=size,
    )


def _errors(found: list[Decomposed], ranks: tuple[int, ...]) -> tuple[Plot, Table]:
    height, width = found[0].values.shape
    plot = Plot(
        Message("Relative error of the best approximation, against its rank"),
        Message("rank"),
        range(1, found[0].singular.size + 1),
        tuple(Trend(matrix.name, matrix.errors.tolist()) for matrix in found),
        low=0.0,
        high=1.0,
    )
    kept = [r * (height + width) for r in ranks]
    table = Table(
        "errors",
        Message("Relative error, and the numbers that are kept"),
        (
            Column("rank", Message("rank"), ranks),
            *(
                Column(
                    f"error_{matrix.letter}", Message("error of {name}", name=matrix.letter), _at(ranks, matrix.errors)
                )
                for matrix in found
            ),
            Column("kept", Message("numbers kept"), kept),
            Column("of_all", Message("of all"), [height * width] * len(ranks)),
            Column("compression", Message("times fewer"), [height * width / count for count in kept]),
        ),
    )
    return plot, table


def _at(ranks: tuple[int, ...], values: FloatArray) -> list[float]:
    return [float(values[r - 1]) for r in ranks]


def _singular(found: list[Decomposed], ranks: tuple[int, ...]) -> Table:
    columns = (Column(matrix.letter, matrix.name, _at(ranks, matrix.singular)) for matrix in found)
    return Table(
        "singular_values",
        Message("Singular values, the largest first"),
        (Column("number", Message("number"), ranks), *columns),
    )


def _from_sizes(width: int, rank: int) -> tuple[Table, Message]:
    """“Rank 64 compresses 16-fold”: whether it does depends on what is counted."""
    names = Message("weight matrix d×d"), Message("one cached vector"), Message("key and value together")
    before, after = (width * width, width, 2 * width), (2 * width * rank, rank, rank)
    times = [whole / part for whole, part in zip(before, after, strict=True)]
    table = Table(
        "sizes",
        Message("From the sizes alone: width d = {width}, rank {rank}", width=width, rank=rank),
        (
            Column("what", Message("what"), names),
            Column("before", Message("numbers before"), before),
            Column("after", Message("after"), after),
            Column("times", Message("times fewer"), times),
        ),
    )
    said = Message(
        "“Rank {rank} compresses so many times” depends on what is counted. A weight matrix becomes two factors, d·r and r·d:"
        " {weight} times fewer numbers. A cache that keeps a latent of {rank} numbers in place of one vector of {width}"
        " is {cached} times smaller, and in place of a key and a value together {both} times.",
        rank=rank,
        width=width,
        weight=times[0],
        cached=times[1],
        both=times[2],
    )
    return table, said


EXPERIMENT = Experiment(
    "rank",
    N_("What a low rank loses: singular values, best approximation, compression."),
    (
        Option("size", N_("Tokens, and width of the projection, 2 to 256."), "count", "N", 32, 2, 256),
        Option("d_k", N_("Width of queries and keys, at most the size."), "count", "N", 8, 1, 256),
        Option("matrix", N_("A matrix of your own instead: \"1 2; 3 4\", @FILE, or -."), "matrix", "M", replaces=("size", "d_k")),
        Option("ranks", N_("Ranks in the tables, like \"1 2 4\"."), "counts", "LIST", None, 1, 512, 32),
        Option("width", N_("Width d of the calculation from sizes."), "count", "D", 1024, 1, 1_000_000),
        Option("rank", N_("Rank of the calculation from sizes."), "count", "R", 64, 1, 1_000_000),
    ),
    run,
)  # fmt: skip
