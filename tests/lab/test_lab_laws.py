"""The experiments against laws, and against numbers from outside."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attncli import lab
from attncli.core.matrix import as_matrix
from attncli.core.message import Message
from attncli.core.report import Maps, Report
from attncli.lab import heads, overflow, rank, softmax
from attncli.lab.softmax import behaviour, entropy
from attncli.problems import library


def chosen(name: str, **changes: Any) -> dict[str, Any]:
    """An experiment's defaults, some of them changed."""
    defaults = {setting.name: setting.default for setting in lab.get(name).settings}
    plain = {key: str(value) if isinstance(value, Message) else value for key, value in defaults.items()}
    assert set(changes) <= set(plain)
    return {**plain, **changes}


def report(name: str, seed: int = 0, **changes: Any) -> Report:
    return lab.get(name).run(seed, chosen(name, **changes))


def rows(found: Report, table: str) -> list[dict[str, Any]]:
    """A table's rows by the names of its columns."""
    one = next(one for one in found.tables if one.id == table)
    return [dict(zip([column.id for column in one.columns], row, strict=True)) for row in one.rows]


def test_the_experiments_are_the_files_of_the_folder() -> None:
    assert lab.names() == ["heads", "overflow", "rank", "scaling", "softmax"]
    assert [lab.get(name).name for name in lab.names()] == lab.names()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_variance_of_a_score_is_d_k_and_1_with_the_scale(seed: int) -> None:
    """Within four standard deviations of what chance does; 10 widths × 3 seeds leave 0.2 % for a false alarm, once and for all."""
    for row in rows(report("scaling", seed), "variance"):
        assert abs(row["variance"] - row["d_k"]) < 4 * row["chance"]
        assert row["scaled_variance"] == pytest.approx(row["variance"] / row["d_k"], rel=1e-12)
        assert row["std"] == pytest.approx(math.sqrt(row["variance"]), rel=1e-12)


def test_chance_is_what_repeated_measurements_show() -> None:
    """The formula for the spread of the measured variance, against the spread of 200 of them."""
    measured = [rows(report("scaling", seed, d_k=(4,), samples=200, keys=2), "variance")[0] for seed in range(200)]
    spread = np.std([row["variance"] for row in measured])
    assert spread == pytest.approx(measured[0]["chance"], rel=0.25)


def test_a_width_has_the_same_numbers_whatever_else_is_measured() -> None:
    alone = rows(report("scaling", d_k=(16,)), "softmax")[0]
    assert alone in rows(report("scaling", d_k=(1, 16, 64)), "softmax")


def test_without_the_scale_softmax_saturates_as_d_k_grows() -> None:
    found = rows(report("scaling"), "softmax")
    assert [row["largest"] for row in found] == sorted(row["largest"] for row in found)
    assert found[-1]["gradient"] < found[-1]["gradient_scaled"] / 5
    assert max(row["largest_scaled"] for row in found) < 0.45


def test_the_curriculum_says_a_standard_deviation_of_8_at_d_k_64() -> None:
    row = rows(report("scaling", d_k=(64,), samples=20_000), "variance")[0]
    assert row["std"] == pytest.approx(8, rel=0.03)


LOGITS = arrays(np.float64, st.tuples(st.just(1), st.integers(2, 8)), elements=st.floats(-30, 30))


@given(scores=LOGITS)
def test_the_jacobian_is_that_of_the_closed_formula(scores: Any) -> None:
    """‖diag(a) − a aᵀ‖ from the weights themselves, where the graph went backward through its steps."""
    found = behaviour(scores)
    a = np.exp(scores[0] - scores.max())
    a /= a.sum()
    assert found.weights[0] == pytest.approx(a, rel=1e-12)
    assert found.largest[0] == pytest.approx(a.max(), rel=1e-12)
    assert found.gradient[0] == pytest.approx(np.linalg.norm(np.diag(a) - np.outer(a, a)), rel=1e-9, abs=1e-15)
    assert found.entropy[0] == pytest.approx(-sum(x * math.log(x) for x in a if x > 0), rel=1e-9, abs=1e-15)
    assert 0 <= found.entropy[0] <= math.log(a.size) + 1e-12


def test_equal_logits_have_the_entropy_ln_n() -> None:
    found = behaviour(np.zeros((1, 8)))
    assert found.entropy[0] == pytest.approx(math.log(8))
    assert found.gradient[0] == pytest.approx(math.sqrt(7) / 8)
    assert entropy(np.array([1.0, 0.0])) == 0.0


def test_the_factor_of_two_logits_is_the_logit_function() -> None:
    """σ(f·(x₁ − x₂)) = 0.99 at f = ln 99/(x₁ − x₂)."""
    assert softmax.saturating_factor(np.array([3.0, 1.0])) == pytest.approx(math.log(99) / 2, rel=1e-12)
    assert softmax.saturating_factor(np.array([1.0, 1.0, 0.0])) is None


@pytest.mark.parametrize("seed", range(5))
def test_softmax_concentrates_as_logits_grow(seed: int) -> None:
    found = rows(report("softmax", seed), "softmax")
    assert [row["largest"] for row in found] == sorted(row["largest"] for row in found)
    assert [row["entropy"] for row in found] == sorted((row["entropy"] for row in found), reverse=True)


def test_float64_overflows_and_underflows_where_the_c_library_says() -> None:
    """o_threshold and u_threshold of fdlibm's e_exp.c (Sun Microsystems, 1993), which C libraries still use."""
    found = overflow.limits(np.float64)
    assert found.largest_x == 7.09782712893383973096e02
    assert found.smallest_x == -7.45133219101941108420e02
    assert found.smallest == 5e-324


def test_float32_overflows_where_the_c_library_says() -> None:
    """FLT_UWORD_LOG_MAX of newlib's fdlibm.h, 0x42b17217; below FLT_UWORD_LOG_MIN, 0xc2cff1b5, everything is 0."""
    found = overflow.limits(np.float32)
    assert found.largest_x == float(np.uint32(0x42B17217).view(np.float32))
    zero = np.uint32(0xC2CFF1B5).view(np.float32)
    assert found.smallest_x == float(np.nextafter(zero, np.float32(0)))


@pytest.mark.parametrize("kind", overflow.TYPES.values(), ids=list(overflow.TYPES))
def test_the_limits_are_the_last_floats_whose_power_rounds_to_a_number(kind: Any) -> None:
    """e^x calculated to 60 digits: halfway between the largest float and the next power of two it overflows, and up to half
    the smallest float it becomes 0."""
    found, info = overflow.limits(kind), np.finfo(kind)
    half_a_step = Decimal(float(info.max)) - Decimal(float(np.nextafter(info.max, kind(0))))
    ends = Decimal(float(info.max)) + half_a_step / 2
    with localcontext() as context:
        context.prec = 60
        smallest = Decimal(2) ** (int(info.minexp) - int(info.nmant) - 1)
        assert Decimal(found.largest_x).exp() < ends
        assert Decimal(float(np.nextafter(kind(found.largest_x), kind(np.inf)))).exp() >= ends
        assert Decimal(found.smallest_x).exp() > smallest
        assert Decimal(float(np.nextafter(kind(found.smallest_x), kind(-np.inf)))).exp() <= smallest
    assert found.largest <= float(info.max)
    assert found.most == float(info.max)
    assert found.smallest == float(info.smallest_subnormal)


@given(
    logits=st.lists(st.floats(-60_000, 60_000, width=16), min_size=2, max_size=5),
    kind=st.sampled_from(list(overflow.TYPES)),
)
def test_with_the_maximum_away_nothing_is_lost(logits: list[float], kind: str) -> None:
    trace = overflow.softmax_in(overflow.TYPES[kind], tuple(logits), "max")
    assert trace["A"].dtype == overflow.TYPES[kind]
    assert float(trace["A"].sum(dtype=np.float64)) == pytest.approx(1, abs=5e-3)


def test_plain_softmax_is_nan_over_its_infinities_and_0_beside_them() -> None:
    """inf/inf = NaN, finite/inf = 0; in float64 the same logits pass."""
    found = {
        (row["type"], str(row["way"])): [row[f"A{i}"] for i in (1, 2, 3)] for row in rows(report("overflow"), "softmax")
    }
    assert all(math.isnan(weight) for weight in found["float16", "plain"])
    assert math.isnan(found["float32", "plain"][0])
    assert found["float32", "plain"][1:] == [0, 0]
    assert found["float64", "plain"] == pytest.approx(found["float64", "maximum subtracted"], rel=1e-12)
    # The published softmax of three logits one apart.
    assert found["float64", "maximum subtracted"] == pytest.approx([0.66524096, 0.24472847, 0.09003057], abs=5e-9)


def test_a_row_is_lost_where_the_hidden_score_is_farther_away_than_e_x_reaches() -> None:
    limits = {name: -overflow.limits(kind).smallest_x for name, kind in overflow.TYPES.items()}
    for gap in (10, 50, 400, 800):
        for row in rows(report("overflow", hidden=2.0 + gap), "order"):
            lost = str(row["maximum"]) == "all scores" and gap > limits[row["type"]]
            assert math.isnan(row["A1"]) == lost, (gap, row)
            assert (row["row_sum"] == 0) == lost


MATRICES = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=st.floats(-9, 9, width=16))


@given(values=MATRICES)
def test_the_best_approximation_has_the_error_of_eckart_and_young(values: Any) -> None:
    found = rank.decomposed("M", Message("M"), values)
    squares = np.linalg.svd(values, compute_uv=False) ** 2
    whole = squares.sum()
    for r, error in enumerate(found.errors, start=1):
        assert error == pytest.approx(math.sqrt(squares[r:].sum() / whole) if whole else 0, abs=1e-7)
    assert found.rank == (np.linalg.matrix_rank(values) if values.any() else 0)
    assert sorted(found.errors, reverse=True) == pytest.approx(list(found.errors))


@given(values=MATRICES, seed=st.integers(0, 99))
def test_no_other_matrix_of_the_rank_is_nearer(values: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    found = rank.decomposed("M", Message("M"), values)
    whole = np.linalg.norm(values)
    for r in range(1, found.singular.size + 1):
        other = random.standard_normal((values.shape[0], r))
        other = other @ np.linalg.lstsq(other, values, rcond=None)[0]  # the best with these columns
        assert np.linalg.norm(values - other) >= found.errors[r - 1] * whole - 1e-9


def test_the_singular_values_of_a_textbook() -> None:
    """[[3, 0], [4, 5]] has the singular values 3√5 and √5 (Strang, Introduction to Linear Algebra, section 7.2)."""
    found = rank.decomposed("M", Message("M"), np.array([[3.0, 0.0], [4.0, 5.0]]))
    assert found.singular == pytest.approx([3 * math.sqrt(5), math.sqrt(5)])
    assert found.errors == pytest.approx([1 / math.sqrt(10), 0])
    assert (found.needed(0.4), found.needed(0.3)) == (1, 2)


@pytest.mark.parametrize(("size", "d_k"), [(32, 8), (16, 1), (12, 12), (2, 1)])
def test_scores_have_at_most_the_rank_d_k_and_weights_more(size: int, d_k: int) -> None:
    found = rank._random(0, size, d_k)
    assert found[0].rank == d_k
    # Softmax of rank-1 scores has full rank too, but its smallest singular values are less than float64 can tell from 0.
    assert found[1].rank == size if d_k > 1 else found[1].rank > d_k
    assert found[2].rank == size


def test_rank_64_compresses_16_fold_where_a_vector_of_1024_is_cached() -> None:
    found = {str(row["what"]): row["times"] for row in rows(report("rank"), "sizes")}
    assert list(found.values()) == [8, 16, 32]
    assert found["one cached vector"] == 1024 / 64


def test_a_head_of_a_published_example() -> None:
    """d1-two-heads prints its weights; the map has them."""
    problem = library.load("d1-two-heads")
    found = report("heads", problem=problem)
    maps = next(part for part in found.parts if isinstance(part, Maps))
    printed = np.array(
        [[[float(x) for x in row.split()] for row in block.split(";")] for block in problem.published["A"].split("|")]
    )
    assert len(maps.maps) == 3
    for (_, weights), expected in zip(maps.maps, printed, strict=False):
        assert weights == pytest.approx(expected, abs=5e-4 + 1e-12)
    assert maps.maps[2][1] == pytest.approx(printed.mean(0), abs=5e-4 + 1e-12)


WEIGHTS = arrays(np.float64, (3, 4, 5), elements=st.floats(0.001, 1)).map(lambda a: a / a.sum(-1, keepdims=True))


@given(weights=WEIGHTS)
def test_distances_and_averages_keep_their_laws(weights: Any) -> None:
    for a, b in itertools.product(range(3), repeat=2):
        found = heads.distance(weights[a], weights[b])
        assert (found >= 0).all()
        assert (found <= 1 + 1e-12).all()
        assert found == pytest.approx(heads.distance(weights[b], weights[a]))
        assert (a != b) or not found.any()
    average = weights.mean(0)
    # The entropy is concave and the maximum convex, so an average can only blur.
    assert (entropy(average) >= entropy(weights).mean(0) - 1e-12).all()
    assert (average.max(-1) <= weights.max(-1).mean(0) + 1e-12).all()


def test_heads_that_look_at_different_tokens_differ_by_1() -> None:
    assert heads.distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])) == [1.0]
    some = heads.distance(np.array([[0.5, 0.3, 0.1, 0.1]]), np.array([[0.1, 0.1, 0.5, 0.3]]))
    assert some == pytest.approx([0.6])


def test_equal_tokens_look_alike_and_causal_heads_do_not_look_ahead() -> None:
    found = report("heads", text="a b a", causal=True)
    maps = next(part for part in found.parts if isinstance(part, Maps))
    for _, weights in maps.maps:
        assert not np.triu(weights, 1).any()
        assert weights.sum(-1) == pytest.approx([1, 1, 1])
    plain = next(part for part in report("heads", text="a b a").parts if isinstance(part, Maps))
    for _, weights in plain.maps:
        assert weights[0] == pytest.approx(weights[2])


@pytest.mark.parametrize("name", lab.names())
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(name: str) -> None:
    one, again, other = report(name, 3), report(name, 3), report(name, 4)
    # NaN is not equal to itself, but to its own text.
    tables = [str([table.rows for table in found.tables]) for found in (one, again, other)]
    assert tables[0] == tables[1]
    assert (tables[0] == tables[2]) == (name == "overflow")


def test_a_matrix_of_ones_own() -> None:
    found = report("rank", matrix=as_matrix([[1, 2], [2, 4], [3, 6]]), size=None, d_k=None)
    assert [row["error_M"] for row in rows(found, "errors")] == [0, 0]
    assert [row["kept"] for row in rows(found, "errors")] == [5, 10]


def test_a_stack_also_shows_the_attentions_of_its_further_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = library.load("e10-transformer")
    found = report("heads", problem=problem)
    titles = [str(part.title) for part in found.parts if isinstance(part, Maps)]
    attentions = [step.id for step in problem.graph().steps.values() if step.is_attention and len(step.axes) == 3]
    assert titles[1:] == [f"And in {step_id}" for step_id in attentions[1:]] != []
    monkeypatch.setattr(heads, "_MOST_FURTHER", 1)
    said = [str(message) for message in report("heads", problem=problem).said]
    assert f"Not shown: {', '.join(attentions[2:])}. The tables below are about {attentions[0]}." in said
