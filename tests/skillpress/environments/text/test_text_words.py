"""Text to words and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.text.words import join_words, split_words


def test_words_are_lower_case_and_punctuation_stands_alone() -> None:
    assert split_words("-= Kitchen =-\nThere's a red apple, (closed).") == [
        "-", "=", "kitchen", "=", "-", "there's", "a", "red", "apple", ",", "(", "closed", ")", ".",
    ]  # fmt: skip


def test_joined_words_read_as_text() -> None:
    assert join_words(["you", "see", "a", "bbq", "(", "hot", ")", "."]) == "you see a bbq (hot)."


def test_an_action_survives() -> None:
    action = "put apple 1 in/on fridge 1"
    assert split_words(join_words(split_words(action))) == split_words(action)
    assert join_words(split_words("open barn-door")) == "open barn-door"


@given(st.text(max_size=60))
def test_the_words_of_joined_words_are_the_words(text: str) -> None:
    words = split_words(text)
    assert all(word and not any(letter.isspace() for letter in word) for word in words)
    assert split_words(join_words(words)) == words
