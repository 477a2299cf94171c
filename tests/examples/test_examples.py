"""Every worked example holds, and the linter and the recomputation really refuse bad ones."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from example_linter import complaints

from attncli.core.gradient import verify
from attncli.problems import file, lesson, library
from attncli.problems.lesson import contrast
from attncli.problems.problem import arithmetic_called

IDS = library.ids()
#: Those of a thousand numbers are gone through in the slow tier.
LARGE = {"e9-decoder-block", "e10-transformer", "f2-gpt-block"}
CURRICULUM = [f"{part}{number}" for part, last in (("a", 11), ("b", 5), ("c", 8)) for number in range(1, last + 1)]


@pytest.mark.parametrize("id", IDS)
def test_every_example_is_complete_and_right(id: str) -> None:
    assert complaints(library.path(id)) == []


@pytest.mark.parametrize("exercise", CURRICULUM)
def test_every_exercise_of_the_curriculum_has_a_file(exercise: str) -> None:
    assert any(id.startswith(f"{exercise}-") for id in IDS)


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_notice_is_filled(id: str, language: str) -> None:
    text = lesson.observations(library.load(id), language)
    assert text and not set("{}") & set(text)


@pytest.mark.parametrize("id", [id for id in IDS if library.load(id).has_gradient])
def test_every_gradient_agrees_with_finite_differences(id: str) -> None:
    assert verify(library.load(id).graph()).ok


def with_one_digit_changed(text: str) -> str:
    """The first number off by one unit in its last place; with more digits than float64 holds, in its first."""
    number = re.search(r"(?:\d+\.?\d*|\.\d+)", text)
    assert number is not None
    many = len(number.group().partition(".")[2]) > 12
    at = number.start() if many else number.end() - 1
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


@pytest.mark.parametrize("id", [pytest.param(id, marks=[pytest.mark.slow] * (id in LARGE)) for id in IDS])
def test_one_digit_changed_anywhere_is_found(id: str) -> None:
    problem = library.load(id)
    for step, text in problem.published.items():
        if problem.how.get(step, "").startswith("wrong"):
            continue
        changed = problem.changed(published={step: with_one_digit_changed(text)}, shapes={}, how={})
        changed = changed.changed(how={step: problem.how[step]} if step in problem.how else {})
        (checked,) = lesson.check(changed)
        assert not checked.ok, (step, checked.printed, checked.computed)


def copy_of(id: str, folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy of an example with some of its text replaced."""
    text = library.path(id).read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / f"{id}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_unchanged_copy_is_fine(tmp_path: Path) -> None:
    assert complaints(copy_of("a1-pronoun", tmp_path)) == []


BAD = {
    "a digit changed": (("2.680", "2.690"), "O: cell [1,2] is printed as 2.690, but the calculation gives 2.680000"),
    "the remark on carrying taken away": (('O = "carried"', ""), "would explain it: write “carried”"),
    "a stale remark": (('O = "carried"', 'scaled = "wrong: misprint"\nO = "carried"'), "marked as wrong, but the"),
    "a needless remark": (('O = "carried"', 'O = "carried"\nA = "carried"'), "“carried” is not needed"),
    "an unknown remark": (('O = "carried"', 'O = "carred"'), "Did you mean “carried”?"),
    "a remark on nothing": (('O = "carried"', 'O = "carried"\nrow_max = "rounded"'), "no numbers are published for it"),
    "an unknown step": (('scaled = "0.707 1.414"', 'scald = "0.707 1.414"'), "Did you mean “scaled”?"),
    "another shape": (('scores = "1 2"', 'scores = "1 2 3"'), "published with the shape 1×3, but scores is 1×2"),
    "a hint removed": (("[hint]\nen", "[hint]\n#"), "hint is missing in en"),
    "a language removed": (('zh = "“它”在看谁？"', ""), "title is missing in zh"),
    "another id": (('id = "a1-pronoun"', 'id = "a1"'), "the id is a1, but the file is a1-pronoun.toml"),
    "no source": (('source.zh = "博客', '#source.zh = "博客'), "source is missing in zh"),
    "a typed decimal": (("Your last number may be {carried.O[1,2]}", "Your last number may be 2.680"), "was typed"),
    "an unknown place": (("{scores[1,2]:0}", "{score[1,2]:0}"), "Did you mean “scores”?"),
    "a place outside": (("{scores[1,2]:0}", "{scores[2,2]:0}"), "scores[2,2], but scores is 1×2"),
    "a contrast that is not there": (("{scores[1,2]:0}", "{contrast.scores[1,2]:0}"), "this problem has none"),
    "an open brace": (("the output {full", "the output {{full"), "a brace"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_linter_refuses_a_bad_example(case: str, tmp_path: Path) -> None:
    change, expected = BAD[case]
    assert expected in "\n".join(complaints(copy_of("a1-pronoun", tmp_path, change)))


def test_the_linter_refuses_an_example_without_numbers(tmp_path: Path) -> None:
    path = copy_of("a1-pronoun", tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[published]")], encoding="utf-8")
    assert complaints(path) == ["no published numbers to verify"]


def test_the_linter_refuses_a_wrong_shape(tmp_path: Path) -> None:
    assert complaints(copy_of("c5-shapes", tmp_path, ('X = "5×64"', 'X = "64×5"'))) == [
        "X: published as 64×5, but X is 5×64."
    ]


def test_a1_carries_a_rounded_weight() -> None:
    text = lesson.observations(library.load("a1-pronoun"), "en")
    assert "2.680 or 2.679" in text and "2.6790" in text


def test_a2_hides_a_forgotten_transpose() -> None:
    problem = library.load("a2-first-by-hand")
    k, other = problem.inputs["K"].values, contrast(problem)
    assert other is not None
    assert (k == k.T).all() and not (other.inputs["K"].values == other.inputs["K"].values.T).all()


def test_a6_adds_up_to_exactly_one() -> None:
    pytest.importorskip("sympy")
    problem = library.load("a6-weights-sum-to-one")
    assert [str(cell) for cell in problem.graph().evaluate(arithmetic_called("exact"))["O"].flat] == ["1", "1"]
    assert not np.isclose(problem.graph().evaluate(arithmetic_called("hand", 3))["O"], 1.0, atol=1e-6).any()


def test_a9_booleans_hide_the_same() -> None:
    problem = library.load("a9-causal-mask")
    other = contrast(problem)
    assert other is not None
    assert (problem.graph().evaluate()["A"] == other.graph().evaluate()["A"]).all()


def test_a10_loses_the_row() -> None:
    problem = library.load("a10-mask-before-maximum")
    other = contrast(problem)
    assert other is not None
    lost, kept = other.graph().evaluate(), problem.graph().evaluate()
    assert lost["row_sum"][1, 0] == 0 and np.isnan(lost["A"][:2]).any(-1).all()
    assert np.isfinite(kept["A"]).all()


def test_b6_is_a_good_exercise() -> None:
    """Good practice numbers: N ≠ d, scores within ±4, an upstream gradient that varies along every row."""
    trace = library.load("b6-full-backward").graph().evaluate()
    assert trace["Q"].shape == (3, 2) and trace["E"].shape == (6, 4)
    assert np.abs(trace["scores"]).max() < 4
    assert (trace["G_O"][:, 0] != trace["G_O"][:, 1]).all()
    assert trace["scores"].shape == (3, 3) and not np.allclose(trace["scores"], trace["scores"].T, atol=0.5)


def test_b6_tells_mistakes_apart() -> None:
    """Common mistakes in the forward pass give other outputs, each its own, at three decimals."""
    t = library.load("b6-full-backward").graph().evaluate()
    q, k, v, mask = t["Q"], t["K"], t["V"], t["M"]
    visible = np.isfinite(mask)

    def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
        power = np.exp(scores - scores.max())
        return power / power.sum(axis, keepdims=True)

    s = q @ k.T
    outputs = {
        "right": softmax(s / np.sqrt(2) + mask) @ v,
        "no-scale": softmax(s + mask) @ v,
        "scale-by-d": softmax(s / 2 + mask) @ v,  # √d_model = d_k here: the two are one mistake
        "scale-inverted": softmax(s * np.sqrt(2) + mask) @ v,
        "no-mask": softmax(s / np.sqrt(2)) @ v,
        "mask-as-zero": softmax(np.where(visible, s / np.sqrt(2), 0)) @ v,
        "mask-other-triangle": softmax(s / np.sqrt(2) + mask.T) @ v,
        "operands-swapped": softmax(s.T / np.sqrt(2) + mask) @ v,
        "softmax-over-columns": softmax(s / np.sqrt(2) + mask, 0) @ v,
        "mask-after-softmax": softmax(s / np.sqrt(2)) * visible @ v,
        "weights-transposed": softmax(s / np.sqrt(2) + mask).T @ v,
        "gradients-of-scores": np.where(visible, s / np.sqrt(2), 0) @ v,
    }
    rounded = {name: tuple(np.round(o, 3).flat) for name, o in outputs.items()}
    assert len(set(rounded.values())) == len(rounded)


def test_a_problem_file_elsewhere_can_be_checked(tmp_path: Path) -> None:
    assert all(checked.ok for checked in lesson.check(file.load(copy_of("a8-subtract-the-maximum", tmp_path))))
