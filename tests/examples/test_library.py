"""The library of worked examples: found, ordered, loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attncli.core.message import InputError
from attncli.problems import library


def test_teaching_order() -> None:
    ids = library.ids()
    own = [id for id in ids if library.path(id).parent == library.folder()]
    assert [id.partition("-")[0] for id in own[:12]] == [*(f"a{n}" for n in range(1, 12)), "b1"]
    assert ids[: len(own)] == own


def test_ids_are_unique_and_in_small_letters() -> None:
    assert len(library.ids()) == len(list(library.folder().rglob("*.toml")))
    assert all(id == id.casefold() for id in library.ids())


def test_load() -> None:
    assert library.load("a1-pronoun").id == "a1-pronoun"


def test_an_example_of_other_people_has_its_plain_id() -> None:
    assert library.path("keras-dot-attention").parent.name == "published"


def test_an_unknown_id_suggests_the_likely_one() -> None:
    with pytest.raises(InputError, match="Did you mean “a1-pronoun”") as error:
        library.load("a1-pronown")
    assert "The worked example “a1-pronown” does not exist." in str(error.value)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("a1-p", "“a1-pronoun”"),
        ("f", "“f1-bare-gpt”, “f2-gpt-block”, “f3-adam”, “f4-cross-entropy”"),
        ("causal", "“a9-causal-mask”, “a11-causal-self-attention”, “rasbt-causal-attention”"),
    ],
)
def test_an_id_that_is_not_whole_names_those_near_it_and_no_others(typed: str, near: str) -> None:
    with pytest.raises(InputError) as error:
        library.load(typed)
    assert f"Did you mean {near}? All of them: attncli examples list." in str(error.value)


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("a2", "a2-first-by-hand"),
        ("a1", "a1-pronoun"),
        ("A11", "a11-causal-self-attention"),
        ("E1", "e1-cross-attention"),
    ],
)
def test_the_beginning_up_to_a_dash_is_enough(typed: str, id: str) -> None:
    assert library.find(typed) == id
    assert library.load(typed).id == id


def test_every_short_id_of_our_own_means_one_example() -> None:
    own = [id for id in library.ids() if library.path(id).parent == library.folder()]
    assert [library.find(id.partition("-")[0]) for id in own] == own
    assert library.find("a") is None
    assert library.find("") is None


def test_an_id_like_no_other_names_none() -> None:
    with pytest.raises(InputError) as error:
        library.load("zzzz")
    assert str(error.value) == "The worked example “zzzz” does not exist. All of them: attncli examples list."


def test_the_examples_of_a_model() -> None:
    """Found by searching the files; the same by reading each."""
    for model in ("positions", "gpt", "attention"):
        assert library.of_model(model) == [id for id in library.ids() if library.load(id).model == model]


def test_a_path_is_not_an_id() -> None:
    with pytest.raises(InputError):
        library.load("../pyproject")


def test_the_checkout_wins() -> None:
    assert library.folder() == Path(__file__).resolve().parents[2] / "worked_examples"


def test_an_installed_package_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", str(tmp_path / "attncli" / "problems" / "library.py"))
    (tmp_path / "worked_examples").mkdir()  # somebody else's folder: there is no pyproject.toml beside it
    assert library.folder() == tmp_path / "attncli" / "worked_examples"


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from attncli.problems import library; assert library.ids();"
        "print([name for name in ('numpy', 'pydantic', 'rich', 'sympy', 'tomllib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
