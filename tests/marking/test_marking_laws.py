"""Laws of marking one sheet: what is right is never marked wrong, and what is changed is found where it was changed."""

from __future__ import annotations

import random
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learner import CARRYING, Learner, as_text, make_case, rounded
from simulation import FAMILIES, FINE, problem, right_trial, wrong_trial
from wrongs import kinds

import attncli
from attncli.marking.mark import Marker
from attncli.problems.answers import sheet, sheet_from_arrays
from attncli.problems.problem import Marking

seeds = st.integers(0, 2**32 - 1)
decimals_ = st.integers(1, 6)
few = settings(max_examples=25, deadline=None, derandomize=True)


def marked(case, decimals, answers, **more):  # type: ignore[no-untyped-def]
    return Marker(problem(case, decimals).changed(**more)).mark(sheet({"answers": answers}))


def verdicts(one):  # type: ignore[no-untyped-def]
    return {step.id: step.verdict for step in one.steps if step.verdict != "blank"}


@few
@given(seeds, decimals_, st.sampled_from(CARRYING), st.sampled_from((ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_DOWN)))
def test_right_sheets_however_rounded(seed, decimals, carrying, ties) -> None:  # type: ignore[no-untyped-def]
    """Rounded either way at a tie, or with the last digit cut off on the page."""
    rng = random.Random(seed)
    case = make_case(rng)
    on_paper = ROUND_HALF_UP if ties == ROUND_DOWN else ties
    values = Learner(case, decimals, carrying, seed, ties=on_paper).run()
    kept = [id for id in values if rng.random() < 0.7]
    one = marked(case, decimals, {id: as_text(values[id], decimals, ties) for id in kept})
    assert one.ok, verdicts(one)
    assert one.first_wrong is None


def test_cut_off_where_no_cell_shows_it() -> None:
    """Found by chance, once in 10,000 sheets: every cut-off cell but those of G_Q could have been rounded."""
    rng = random.Random(1112801664)
    case = make_case(rng)
    values = Learner(case, 3, "by line", 1112801664).run()
    kept = [id for id in values if rng.random() < 0.7]
    assert marked(case, 3, {id: as_text(values[id], 3, ROUND_DOWN) for id in kept}).ok


@few
@given(seeds, st.integers(2, 5), st.booleans())
def test_more_and_fewer_decimals(seed, decimals, more) -> None:  # type: ignore[no-untyped-def]
    """More digits are not punished; fewer are imprecise, or correct where the number is exact."""
    rng = random.Random(seed)
    case = make_case(rng)
    values = Learner(case, decimals, rng.choice(CARRYING), seed).run()
    places = decimals + rng.randint(1, 4) if more else decimals - 1
    one = marked(case, decimals, {id: as_text(values[id], places) for id in values if rng.random() < 0.7})
    if more:
        assert {step.verdict for step in one.steps} <= {"correct", "blank"}, verdicts(one)
    for step in one.steps:
        if step.verdict == "imprecise":
            assert step.points == step.max_points / 2
        if step.verdict == "wrong" and step.id == one.first_wrong:
            # A number that has lost all its digits says nothing.
            lost = np.abs(values[step.id]) < 10.0**-places
            assert (lost & (values[step.id] != 0)).any(), verdicts(one)


@few
@given(seeds, decimals_)
def test_blank_cells_and_vectors_either_way(seed, decimals) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    case = make_case(rng, "self_attention")
    values = Learner(case, decimals, "by use", seed).run()
    answers = {}
    for id, value in values.items():
        text = as_text(value, decimals)
        if value.shape[1] == 1 and rng.random() < 0.5:
            text = text.replace(";", "")
        elif rng.random() < 0.5:
            cells = text.replace(";", " ; ").split()
            at = rng.choice([i for i, cell in enumerate(cells) if cell != ";"])
            cells[at] = rng.choice("?_")
            text = " ".join(cells)
        answers[id] = text
    one = marked(case, decimals, answers)
    assert one.ok, verdicts(one)
    for step in one.steps:
        blank = sum(answers.get(step.id, "").count(sign) for sign in "?_")
        if step.verdict == "correct":
            size = values[step.id].size
            assert step.points == step.max_points * Fraction(size - blank, size)


@few
@given(seeds, st.integers(2, 5))
def test_a_sheet_with_tokens_as_columns(seed, decimals) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    case = make_case(rng, rng.choice(("self_attention", "attention")))
    values = Learner(case, decimals, "rounded", seed).run()
    one = marked(case, decimals, {id: as_text(value.T, decimals) for id, value in values.items()})
    assert one.ok, verdicts(one)
    assert one.layout == "columns" or all(np.allclose(v, v.T) for v in values.values() if v.shape[0] == v.shape[1])


def routes(case, name):  # type: ignore[no-untyped-def]
    """Other right ways, as lines in place of the usual ones."""
    s = case.source
    if name == "no maximum":
        return {"row_max": lambda g: np.zeros((len(g(s)), 1))}
    if name == "one maximum":
        return {"row_max": lambda g: np.full((len(g(s)), 1), g(s).max())}
    if name == "maximum before the mask":
        return {"row_max": lambda g: g("scaled").max(-1, keepdims=True)}
    if name == "a constant a row":
        return {
            "row_max": lambda g: np.round(g(s).max(-1, keepdims=True) + np.arange(1, len(g(s)) + 1)[:, None] / 2, 1)
        }
    if name == "queries scaled":
        return {"scores": lambda g: (g("Q") / g("root")) @ g("K").T, "scaled": lambda g: g("scores")}
    return {
        "scaled": lambda g: np.where(case.hidden, -np.inf, g("scores")) / g("root"),
        "masked": lambda g: g("scaled"),
    }


@pytest.mark.parametrize(
    "name",
    ("no maximum", "one maximum", "maximum before the mask", "a constant a row", "queries scaled", "mask before scale"),
)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=seeds, decimals=st.integers(2, 6), share=st.sampled_from((1.0, 0.6)))
def test_other_ways_are_right(name, seed, decimals, share) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    case = make_case(rng, "self_attention")
    while case.hidden is None and name in ("maximum before the mask", "mask before scale"):
        case = make_case(rng, "self_attention")
    while name == "a constant a row" and case.hidden is not None and ((~case.hidden).sum(-1) < 2).all():
        case = make_case(rng, "self_attention")  # one visible score alone shows no constant
    carrying = "full" if name == "a constant a row" else rng.choice(CARRYING)
    values = Learner(case, decimals, carrying, seed, routes(case, name)).run()
    left_out = {"row_max"} if "maximum" in name or "constant" in name else set()
    if name == "a constant a row" and rng.random() < 0.5:
        left_out |= {"shifted"}
    if name == "a constant a row":
        left_out |= {"row_sum"} if share < 1 else set()
    kept = [id for id in values if id not in left_out and (rng.random() < share or id in ("exp", "A"))]
    if "G_scores" in kept:
        kept = [id for id in kept if not id.startswith("G_") and id not in ("weighted", "row_dot", "deviation")]
    one = marked(case, decimals, {id: as_text(values[id], decimals) for id in kept})
    assert set(verdicts(one).values()) <= {"correct", "route"}, verdicts(one)


@few
@given(seeds, st.integers(2, 6))
def test_a_changed_digit_is_found_where_it_is(seed, decimals) -> None:  # type: ignore[no-untyped-def]
    """One cell of one step is off by far more than rounding: that step, that cell, and the rest from its own numbers."""
    rng = random.Random(seed)
    case = make_case(rng, "self_attention")
    names = list(Learner(case, decimals).run())
    place = rng.choice(names)
    cell = None

    def changed(g, line):  # type: ignore[no-untyped-def]
        nonlocal cell
        out = np.array(line(g), dtype=float)
        finite = np.argwhere(np.isfinite(out))
        cell = tuple(finite[int(rng.random() * len(finite))]) if cell is None else cell
        out[cell] += 0.73 + 0.31 * abs(out[cell])
        return out

    from learner import lines

    line = dict(lines(case))[place]
    values = Learner(case, decimals, "rounded", seed, {place: lambda g: changed(g, line)}).run()
    if any(np.isnan(v).any() for v in values.values()):
        return
    one = marked(case, decimals, {id: as_text(v, decimals) for id, v in values.items()})
    assert one.first_wrong == place
    step = next(step for step in one.steps if step.id == place)
    assert step.cells == (tuple(int(i) + 1 for i in cell),)
    assert not [s.id for s in one.steps if s.id != place and s.verdict in ("wrong", "malformed")]


def test_a_mistake_in_an_unwritten_line_is_followed_wherever_that_line_is_used() -> None:
    """Q was made with W_Qᵀ and not written down; G_K is made of Q too, and follows."""
    case = make_case(random.Random(3), "self_attention", square=True)
    wrong = {"Q": lambda g: g("X") @ g("W_Q").T}
    values = Learner(case, 4, "rounded", 1, wrong).run()
    one = marked(case, 4, {id: as_text(values[id], 4) for id in ("scores", "G_K", "G_W_K")})
    assert one.first_wrong == "scores"
    assert ("Q", "weight-transposed") in {(n.step, n.id) for step in one.steps for n in step.mistakes}
    assert verdicts(one) == {"scores": "wrong", "G_K": "follow_through", "G_W_K": "follow_through"}


@few
@given(seeds)
def test_points_are_exact_and_in_order(seed) -> None:  # type: ignore[no-untyped-def]
    """Follow-through counts as the exercise says, to the fraction; steps come in the order of the calculation."""
    rng = random.Random(seed)
    case = make_case(rng, "attention")
    trial = None
    while trial is None or trial.first is None:
        case = make_case(rng, "attention")
        trial = wrong_trial(rng, case, rng.choice([kind for kind in kinds(case, seed) if not kind.page]))
    marking = Marking({"A": 3, "O": 0.1, "scores": 2}, follow_through=0.7, imprecise=0.3)
    marker = Marker(problem(case, trial.decimals).changed(marking=marking))
    one = marker.mark(sheet({"answers": trial.written}))
    worth = {"A": Fraction(3), "O": Fraction("0.1"), "scores": Fraction(2)}
    share = {"correct": 1, "route": 1, "follow_through": Fraction("0.7"), "imprecise": Fraction("0.3")}
    for step in one.steps:
        assert step.max_points == worth.get(step.id, 0)
        assert step.points == step.max_points * share.get(step.verdict, 0)
    assert one.score == sum(step.points for step in one.steps)
    assert [s.id for s in one.steps] == [id for id in marker.ids if id in {s.id for s in one.steps}]
    wrong = [s.id for s in one.steps if s.verdict in ("wrong", "malformed")]
    assert one.first_wrong == (wrong[0] if wrong else None)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(seeds)
def test_many_at_once_are_marked_as_one_by_one(seed) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    first = right_trial(rng, FAMILIES[rng.choice([*FAMILIES])](rng))
    case, decimals = first.case, first.decimals
    sheets = []
    for i in range(12):
        values = Learner(case, decimals, rng.choice(CARRYING), rng.getrandbits(32)).run()
        answers = {id: as_text(v, decimals) for id, v in values.items() if rng.random() < 0.7}
        trial = wrong_trial(rng, case, rng.choice(kinds(case, i))) if i % 3 == 0 else None
        sheets.append(sheet({"student": str(i), "answers": answers if trial is None else trial.written}))
    marker = Marker(problem(case, decimals))
    together = marker.mark_many(sheets)
    for one, other in zip(together, map(marker.mark, sheets), strict=True):
        assert repr(one) == repr(other)


def test_rounded_lines_left_out_are_recognised_side_by_side() -> None:
    """Right sheets need no second look, whatever was carried on and left out."""
    rng = random.Random(8)
    case = make_case(rng, "self_attention")
    marker = Marker(problem(case, 2))
    sheets = []
    for way in CARRYING * 4:
        values = Learner(case, 2, way, rng.getrandbits(32)).run()
        kept = {id: as_text(v, 2) for id, v in values.items() if rng.random() < 0.4}
        sheets.append(sheet({"answers": kept or {"O": as_text(values["O"], 2)}}))
    together = marker.mark_many(sheets)
    assert all(one.ok for one in together)
    assert [verdicts(one) for one in together] == [verdicts(marker.mark(one)) for one in sheets]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seeds, st.sampled_from((np.float32, np.float64)))
def test_dumps_of_a_right_program(seed, kind) -> None:  # type: ignore[no-untyped-def]
    dump, problem_ = program(np.random.default_rng(seed), kind, 4, 3, None)
    assert Marker(problem_).mark(dump).ok


@pytest.mark.parametrize("kind", (np.float32, np.float64))
@pytest.mark.parametrize("line", (None, "scaled", "A", "G_scaled", "G_K"))
def test_dumps_of_a_large_program(kind, line) -> None:  # type: ignore[no-untyped-def]
    dump, problem_ = program(np.random.default_rng(3), kind, 64, 32, line)
    one = Marker(problem_).mark(dump)
    assert one.first_wrong == line, verdicts(one)


def program(rng, kind, n, d, wrong):  # type: ignore[no-untyped-def]
    """The intermediates of attention in NumPy at this precision, some left out, and the exercise they belong to."""
    from attncli.core.matrix import as_matrix
    from attncli.problems.answers import sheet_from_arrays
    from attncli.problems.problem import Problem

    q, k, v, g = (rng.standard_normal((n, d)).astype(kind) for _ in range(4))
    hidden = np.triu(np.ones((n, n), dtype=bool), 1)
    root = kind(d**0.5)
    out = {}
    out["scores"] = q @ k.T
    out["scaled"] = out["scores"] / (kind(d) if wrong == "scaled" else root)
    out["masked"] = np.where(hidden, kind(-np.inf), out["scaled"])
    out["exp"] = np.exp(out["masked"] - out["masked"].max(-1, keepdims=True))
    axis = 0 if wrong == "A" else -1
    out["A"] = out["exp"] / out["exp"].sum(axis, keepdims=True)
    out["O"] = out["A"] @ v
    out["G_A"] = g @ v.T
    out["G_V"] = out["A"].T @ g
    dot = (out["G_A"] * out["A"]).sum(-1, keepdims=True)
    out["G_scaled"] = out["A"] * (out["G_A"] - dot) * (out["G_A"] if wrong == "G_scaled" else kind(1))
    out["G_scores"] = out["G_scaled"] / root
    out["G_Q"] = out["G_scores"] @ k
    out["G_K"] = (out["G_scores"] if wrong == "G_K" else out["G_scores"].T) @ q
    assert all(value.dtype == kind for value in out.values())
    kept = {id: value for id, value in out.items() if id == wrong or rng.random() < 0.75}
    inputs = {name: as_matrix(value) for name, value in zip("QKV", (q, k, v), strict=True)}
    problem_ = Problem("attention", inputs, settings={"causal": True}, upstream=as_matrix(g))
    return sheet_from_arrays(kept), problem_


def test_a_trivial_line_earns_nothing_after_it() -> None:
    case = make_case(random.Random(1), "attention")
    values = Learner(case, 3).run()
    answers = {"scores": as_text(np.zeros_like(values["scores"]), 3)}
    wrong = Learner(case, 3, wrong={"scores": lambda g: np.zeros_like(values["scores"])}).run()
    answers |= {id: as_text(wrong[id], 3) for id in ("scaled", "A")}
    one = marked(case, 3, answers)
    assert {step.id: step.points for step in one.steps if step.id in answers} == dict.fromkeys(answers, 0)
    assert one.first_wrong == "scores"


def test_symbols_stand_for_steps_where_they_are_clear() -> None:
    case = make_case(random.Random(2), "attention")
    values = Learner(case, 3).run()
    names = {"S": "scores", "P": "A", "G_S": "G_scores"}
    one = marked(case, 3, {name: as_text(values[id], 3) for name, id in names.items()})
    assert {step.id for step in one.steps if step.verdict == "correct"} == set(names.values())
    twice = marked(case, 3, {name: as_text(values["scores"], 3) for name in ("S", "scores")})
    assert next(step for step in twice.steps if step.id == "scores").verdict == "correct"
    assert next(step for step in twice.steps if step.id == "S").verdict == "malformed"


def test_everything_is_fine_is_what_the_simulation_says() -> None:
    assert set(FINE) == {"correct", "route", "imprecise", "blank"}
    assert rounded(np.array([0.125, -0.125]), 2).tolist() == [0.13, -0.13]


@few
@given(seeds, decimals_, st.sampled_from(CARRYING), st.booleans())
def test_queries_scaled_first_and_the_gradient_of_what_came_of_that(seed, decimals, carrying, textbook) -> None:  # type: ignore[no-untyped-def]
    """The scores hold the factor, so their gradient has none to lose; it comes in at G_Q. Or all goes back by the book."""
    rng = random.Random(seed)
    case = make_case(rng, rng.choice(("attention", "self_attention")))
    lines = {"scores": lambda g: g("Q") / g("root") @ g("K").T, "scaled": lambda g: g("scores")}
    if not textbook:
        lines |= {
            "G_scores": lambda g: g("G_scaled"),
            "G_Q": lambda g: g("G_scores") @ g("K") / g("root"),
            "G_K": lambda g: g("G_scores").T @ (g("Q") / g("root")),
        }
    values = Learner(case, decimals, carrying, seed, lines).run()
    kept = [id for id in values if rng.random() < 0.8 or id in ("scores", "G_scores")]
    one = marked(case, decimals, {id: as_text(values[id], decimals) for id in kept})
    assert one.ok, verdicts(one)


@pytest.mark.parametrize("scale", ["sqrt", "0.3", "1/7"])
def test_queries_scaled_first_by_any_scale(scale: str) -> None:
    """√d_k or a number of the exercise's own: a factor may go in at either place."""
    inputs = {"Q": "1 2; 0 1", "K": "1 0.5; 0 1", "V": "2 0; 0 4"}
    exercise = attncli.problem("attention", inputs=inputs, settings={"scale": scale})
    factor = {"sqrt": 0.5**0.5, "0.3": 0.3, "1/7": 1 / 7}[scale]
    early = " ; ".join(" ".join(f"{factor * x:.3f}" for x in row) for row in ((2, 2), (0.5, 1)))
    done = attncli.mark(exercise, {"scores": early, "scaled": early})
    assert [step.verdict for step in done.steps[:2]] == ["route", "correct"], str(done)


def test_a_marked_sheet_prints_as_feedback() -> None:
    exercise = attncli.problem("attention", inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0; 0 4"})
    text = str(attncli.mark(exercise, {"scores": "1 2", "A": "0.269 0.731"}))
    assert "`scores`" in text and "Look again at the scale" in text


def test_who_did_not_scale_first_has_lost_the_factor() -> None:
    case = make_case(random.Random(8), "attention")
    values = Learner(case, 4, wrong={"G_scores": lambda g: g("G_scaled")}).run()
    one = marked(case, 4, {id: as_text(value, 4) for id, value in values.items()})
    assert one.first_wrong == "G_scores"
    step = next(step for step in one.steps if step.id == "G_scores")
    assert [named.id for named in step.mistakes] == ["gradient-scale-lost"]


SMALL = {
    "layer_norm": attncli.problem(
        model="layer_norm",
        inputs={"X": "8.2 5.8 -6.1", "gamma": "-1 -1.5 1", "beta": "-2.3 1.9 2.8"},
        settings={"eps": 0.01},
        gradient={"G_Y": "-0.9 -1.3 -1.7"},
    ),
    "softmax": attncli.problem(model="softmax", inputs={"scores": "1 2 0"}, gradient={"G_A": "1 0 3"}),
    "attention": attncli.problem(
        inputs={"Q": "1 2; 0 1", "K": "1 0; 0 1", "V": "2 0; 0 4"},
        settings={"causal": True},
        gradient={"G_O": "1 2; 0 1"},
    ),
}
MARKERS = {name: Marker(given) for name, given in SMALL.items()}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_numbers_stand_in_whatever_lines_a_sheet_is_marked(data: st.DataObject) -> None:
    """Infinite ones, zeros, the right ones off by a sign or a power of ten, in any mixture: points, never an error."""
    marker = MARKERS[data.draw(st.sampled_from(sorted(MARKERS)))]
    right = attncli.backward(marker.problem)
    kinds = {
        "plus": lambda a: a + np.inf,
        "minus": lambda a: a * 0 - np.inf,
        "zero": lambda a: a * 0,
        "sign": lambda a: -a,
        "ten": lambda a: a * 10,
        "right": lambda a: a,
        "other": lambda a: a + 1,
    }
    lines = data.draw(
        st.dictionaries(st.sampled_from(list(marker.graph.steps)), st.sampled_from(sorted(kinds)), max_size=5)
    )
    with np.errstate(invalid="ignore"):
        written = {
            id: np.nan_to_num(kinds[kind](right[id]), posinf=np.inf, neginf=-np.inf) for id, kind in lines.items()
        }
    for one in (sheet_from_arrays(written), sheet({"answers": {id: as_text(a, 3) for id, a in written.items()}})):
        found = marker.mark(one)
        assert 0 <= found.score <= found.max_score


def test_a_mistake_that_leads_nowhere_for_some_habits_is_marked() -> None:
    """Found by a sheet of infinite lines: by one habit a mistake came to numbers of another shape, and that ended it."""
    found = MARKERS["layer_norm"].mark(sheet({"answers": {"mean": "-inf", "std": "inf", "G_std": "-inf"}}))
    assert verdicts(found) == {"mean": "wrong", "std": "wrong", "G_std": "wrong"}
