"""Text to words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.text.words import split_words


def test_words_are_lower_case_and_punctuation_stands_alone() -> None:
    assert split_words("-= Kitchen =-\nThere's a red apple, (closed).") == [
        "-", "=", "kitchen", "=", "-", "there's", "a", "red", "apple", ",", "(", "closed", ")", ".",
    ]  # fmt: skip


@given(st.text(max_size=60))
def test_the_words_of_words_are_the_words(text: str) -> None:
    words = split_words(text)
    assert all(word and not any(letter.isspace() for letter in word) for word in words)
    assert split_words(" ".join(words)) == words
    assert split_words("Open barn-door") == ["open", "barn-door"]
