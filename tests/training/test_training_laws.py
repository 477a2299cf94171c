"""What holds of every training, whatever is trained."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import specs

from attncli.core.message import InputError
from attncli.problems.problem import run
from attncli.training.generate import Sampling, chosen, softmax, without_cache, written
from attncli.training.saved import as_bytes, load
from attncli.training.spec import Spec, TrainingState, begin
from attncli.training.trainer import Trainer

FEW = settings(max_examples=25, deadline=None)


def after(state: TrainingState, steps: int) -> TrainingState:
    trainer = Trainer(state)
    for _ in trainer.run(steps):
        pass
    return trainer.state


@FEW
@given(trained=specs(), first=st.integers(0, 4), then=st.integers(0, 4))
def test_going_on_with_a_saved_training_equals_one_without_a_break(
    tmp_path_factory: pytest.TempPathFactory, trained: tuple[Spec, str], first: int, then: int
) -> None:
    spec, text = trained
    whole = as_bytes(after(begin(spec, text), first + then))
    assert whole == as_bytes(after(begin(spec, text), first + then))
    file = tmp_path_factory.mktemp("saved") / "training.npz"
    file.write_bytes(as_bytes(after(begin(spec, text), first)))
    assert as_bytes(after(load(str(file)), then)) == whole


@FEW
@given(trained=specs(), steps=st.integers(0, 3), prompt=st.integers(1, 3), seed=st.integers(0, 9))
def test_writing_with_a_cache_equals_writing_without(
    trained: tuple[Spec, str], steps: int, prompt: int, seed: int
) -> None:
    spec, text = trained
    state = after(begin(spec, text), steps)
    ids = spec.encode(text[: min(prompt, spec.context)])
    length = max(1, min(4, spec.context + 1 - len(ids)))
    seen = list(ids)
    for number, token in enumerate(written(state, ids, length, Sampling(temperature=1.0, seed=seed))):
        assert token.cached == (0 if number == 0 else len(ids) + number - 1)
        anew = without_cache(state, seen)
        with_cache = token.logits
        np.testing.assert_allclose(with_cache, anew, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(anew).max()))
        np.testing.assert_allclose(token.probabilities, softmax(anew), rtol=1e-9, atol=1e-15)
        seen.append(token.id)


@FEW
@given(trained=specs(), step=st.integers(1, 4))
def test_a_step_shown_in_full_is_that_step_of_the_training(trained: tuple[Spec, str], step: int) -> None:
    spec, text = trained
    trainer = Trainer(after(begin(spec, text), step - 1))
    shown = run(trainer.problem(trainer.window(trainer.step)))
    reached = after(begin(spec, text), step)
    for name, values in reached.numbers.items():
        np.testing.assert_allclose(shown[f"{name}_new"], values, rtol=1e-12, atol=1e-14, err_msg=name)
    assert float(shown["L"][0, 0]) == pytest.approx(reached.losses[-1], rel=1e-12)


@given(length=st.integers(3, 40), context=st.integers(2, 12), seed=st.integers(0, 99))
def test_every_place_of_the_text_is_visited_once_a_round(length: int, context: int, seed: int) -> None:
    text = ("abcde" * length)[:length]
    spec = Spec(tuple(dict.fromkeys(text)), "characters", min(context, length - 1), seed=seed)
    trainer = Trainer(begin(spec, text))
    assert trainer.windows == length - trainer.length
    for start in (0, trainer.windows):
        visited = [trainer.window(start + step) for step in range(trainer.windows)]
        assert sorted(visited) == list(range(trainer.windows))
    orders = [[trainer.window(trainer.windows * again + i) for i in range(trainer.windows)] for again in range(4)]
    if trainer.windows > 4:
        assert any(order != orders[0] for order in orders[1:])


def test_the_windows_of_a_training_are_the_text() -> None:
    """Each update sees the tokens of its window and is judged by those that follow them."""
    text = "abcdefgh"
    trainer = Trainer(begin(Spec(tuple(text), "characters", 3), text))
    for start in range(trainer.windows):
        problem = trainer.problem(start)
        assert problem.inputs["T"].values.tolist() == [start, start + 1, start + 2]
        assert problem.extras["targets"].values.tolist() == [start + 1, start + 2, start + 3]


PROBABILITIES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8).map(lambda p: np.array(p) / sum(p))


@given(probabilities=PROBABILITIES, temperature=st.floats(5e-324, 1000.0), seed=st.integers(0, 999))
def test_the_only_one_that_may_be_chosen_is_the_likeliest(
    probabilities: np.ndarray, temperature: float, seed: int
) -> None:
    greedy = chosen(probabilities, Sampling(), np.random.default_rng(0))
    assert greedy == int(probabilities.argmax())
    assert chosen(probabilities, Sampling(temperature, 1), np.random.default_rng(seed)) == greedy


@given(probabilities=PROBABILITIES, top=st.integers(1, 8), seed=st.integers(0, 99))
def test_nothing_below_the_top_is_chosen(probabilities: np.ndarray, top: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    allowed = set(np.argsort(-probabilities, kind="stable")[:top].tolist())
    assert {chosen(probabilities, Sampling(2.0, top), random) for _ in range(50)} <= allowed


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_the_temperature_says(temperature: float) -> None:
    """p^(1/T), made to sum to 1; within four standard deviations of 20,000 draws."""
    probabilities, draws = np.array([0.5, 0.3, 0.15, 0.05]), 20_000
    random = np.random.default_rng(3)
    counted = Counter(chosen(probabilities, Sampling(temperature), random) for _ in range(draws))
    expected = probabilities ** (1 / temperature)
    expected /= expected.sum()
    for id, share in enumerate(expected):
        spread = math.sqrt(share * (1 - share) / draws)
        assert abs(counted[id] / draws - share) < 4 * spread


def test_steps_that_are_too_large_are_said() -> None:
    trainer = Trainer(begin(Spec(tuple("ab"), "characters", 3, eta=1e6, optimizer="sgd"), "abab"))
    with pytest.raises(InputError, match=r"the loss is no longer a number.*--eta below 1e\+06"):
        for _ in trainer.run(500):
            pass


def test_the_blogs_text_is_learnt_by_every_one_of_ten_seeds() -> None:
    """我喜欢数学 at the blog's sizes: a loss under 0.1 in 500 steps."""
    text = "我喜欢数学"
    losses = []
    for seed in range(10):
        trainer = Trainer(begin(Spec(tuple(text), "characters", 4, seed=seed), text))
        for _ in trainer.run(500):
            pass
        losses.append(trainer.loss())
    assert max(losses) < 0.1


def test_a_saved_training_is_a_plain_npz(tmp_path: Path) -> None:
    state = after(begin(Spec(tuple("ab"), "characters", 2), "abab"), 3)
    file = tmp_path / "a.npz"
    file.write_bytes(as_bytes(state))
    with np.load(file, allow_pickle=False) as arrays:
        assert set(state.numbers) <= set(arrays.files)
        np.testing.assert_array_equal(arrays["losses"], state.losses)


@given(trained=specs())
def test_the_memory_of_a_step_is_not_thought_too_small(trained: tuple[Spec, str]) -> None:
    """The bound that is looked at before a graph is made holds for the graph."""
    trainer = Trainer(begin(*trained))
    cells = sum(step.cells for step in trainer.graph.steps.values())
    assert cells <= trainer.spec.cells(trainer.length) + 2000


def test_a_long_text_is_measured_in_some_of_its_windows() -> None:
    trainer = Trainer(begin(Spec(tuple("ab"), "characters", 2), "ab" * 5000))
    starts = trainer.measured()
    assert 400 <= len(starts) <= 500
    assert len({after - before for before, after in pairwise(starts)}) == 1
    assert trainer.windows - starts[-1] <= starts[1]
    short = Trainer(begin(Spec(tuple("ab"), "characters", 2), "ababab"))
    assert list(short.measured()) == [0, 2, 3]


def test_a_last_step_that_is_too_large_is_said() -> None:
    """The loss before it was a number still; the numbers it leaves behind give none."""
    trainer = Trainer(begin(Spec(tuple("ab"), "characters", 3), "abab"))
    trainer.numbers = {name: np.full_like(values, 1e308) for name, values in trainer.numbers.items()}
    with np.errstate(all="ignore"), pytest.raises(InputError, match="the loss is no longer a number"):
        trainer.loss()


@pytest.mark.parametrize("length", [9, 12, 13, 20])
def test_the_loss_of_a_text_is_the_mean_over_every_token(length: int) -> None:
    """Windows that do not fill a text overlap at its end; no token is left out, and none counts twice."""
    text = "abcdefghijklmnopqrst"[:length]
    ours = Trainer(begin(Spec(tuple(text), "characters", 4), text))
    starts = [0, *range(4, length - 5, 4), length - 5]
    surprises: dict[int, float] = {}
    for start in starts:
        trace = ours.problem(start, learning=False).graph().evaluate()
        for place, surprise in enumerate(trace["loss.surprise"][:, 0], start=start):
            surprises.setdefault(place, float(surprise))
    assert sorted(surprises) == list(range(length - 1))
    assert ours.loss() == pytest.approx(sum(surprises.values()) / (length - 1), rel=1e-12)
