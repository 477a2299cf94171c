"""A vocabulary: text to ids and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attncli.core.message import InputError
from attncli.models.vocabulary import MOST, Vocabulary

CHINESE = Vocabulary.of(["我", "爱", "你"])


def test_encode() -> None:
    assert CHINESE.encode("我爱你") == [0, 1, 2]
    assert CHINESE.encode("你 爱\n我") == [2, 1, 0]


def test_built_in_order_of_first_appearance() -> None:
    assert Vocabulary.built_from("我爱你你爱我").tokens == ("我", "爱", "你")
    assert Vocabulary.built_from("b a\tb c", split="words").tokens == ("b", "a", "c")
    assert Vocabulary.built_from("b a").tokens == ("b", "a")
    assert Vocabulary.built_from("ab", unknown="?").tokens == ("a", "b", "?")


def test_words() -> None:
    words = Vocabulary.of(["the", "cat", "sat"], split="words")
    assert words.encode("the  cat\nsat the") == [0, 1, 2, 0]
    assert words.cut("the cats") == ["the", "cats"]


def test_the_longest_known_token_is_cut_first() -> None:
    vocabulary = Vocabulary.of(["a", "ab", "abc", "喜欢", "喜"])
    assert vocabulary.cut("abcab") == ["abc", "ab"]
    assert vocabulary.encode("喜欢喜a") == [3, 4, 0]


def test_a_space_is_a_token_only_where_the_vocabulary_has_it() -> None:
    assert Vocabulary.of(["a", " "]).encode("a a") == [0, 1, 0]
    assert Vocabulary.of(["a"]).encode("a a") == [0, 0]


def test_an_unknown_token_is_an_error_that_names_it_and_its_place() -> None:
    with pytest.raises(InputError) as error:
        CHINESE.encode("我爱她")
    assert str(error.value) == (
        "“她” (token 3 of the text) is not in the vocabulary: 我 爱 你. Add it there, or name an unknown token"
        " (setting unknown) that stands in for it."
    )


def test_a_long_vocabulary_is_shown_in_part() -> None:
    vocabulary = Vocabulary.of([chr(ord("a") + i) for i in range(25)])
    with pytest.raises(InputError, match=r"not in the vocabulary: a b c .* s t …\. Add it there"):
        vocabulary.encode("z")


def test_an_unknown_token_may_stand_in() -> None:
    vocabulary = Vocabulary.of(["我", "爱", "<unk>"], unknown="<unk>")
    assert vocabulary.encode("我爱她") == [0, 1, 2]
    added = Vocabulary.of(["我", "爱"], unknown="<unk>")
    assert added.tokens == ("我", "爱", "<unk>")
    assert added.encode("她我") == [2, 0]


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([], "The vocabulary is empty. Give at least one token."),
        (["a", ""], "The vocabulary: token 1 is empty. Write a character or a word."),
        (["a", "b", "a"], "The vocabulary: “a” occurs twice, as id 0 and as id 2. Keep one."),
        (["a"] * (MOST + 1), "The vocabulary has 100001 tokens; the limit is 100000."),
    ],
    ids=["empty", "empty token", "twice", "too many"],
)
def test_a_vocabulary_that_does_not_work(tokens: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        Vocabulary.of(tokens)
    assert str(error.value) == said


def test_texts_that_do_not_work() -> None:
    with pytest.raises(InputError) as error:
        CHINESE.encode(" \n")
    assert str(error.value) == "The text is empty. Write at least one token."
    with pytest.raises(InputError) as error:
        CHINESE.encode("我" * (MOST + 1))
    assert str(error.value) == "The text has 100001 characters; the limit is 100000."
    with pytest.raises(InputError, match="The vocabulary is empty"):
        Vocabulary.built_from(" ")


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.text(min_size=1, max_size=30).filter(lambda text: any(not c.isspace() for c in text)))
def test_a_text_comes_back_from_its_ids(text: str) -> None:
    vocabulary = Vocabulary.built_from(text)
    ids = vocabulary.encode(text)
    assert "".join(vocabulary.tokens[i] for i in ids) == "".join(c for c in text if not c.isspace())
    assert sorted(set(ids)) == list(range(len(vocabulary.tokens)))
    assert ids[0] == 0
