"""Thoughts that prompts open and responses begin with, and special tokens that are part of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel

from skillpress.core.markup import behind_thought, opened_thought, silent_tokens


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("Where to?<|assistant|><think>\n", "<think>\n"),
        ("<think>", "<think>"),
        ("<think>\n\n</think>\n\n", ""),  # thinking is switched off
        ("Reason in <think> tags.", ""),
        ("", ""),
        ("\n", ""),
    ],
)
def test_a_prompt_opens_a_thought_only_where_it_ends_with_one(prompt: str, opened: str) -> None:
    assert opened_thought(prompt) == opened


@given(st.text(), st.text())
def test_a_thought_and_the_answer_behind_it_are_told_apart(thought: str, answer: str) -> None:
    thought = thought.replace("</think>", "")
    assert behind_thought(f"\n<think>{thought}</think>{answer}") == (thought.strip(), answer)
    assert behind_thought(f"<think>{thought}") == (thought.strip(), None)
    assert behind_thought(f"so: <think>{thought}</think>") == ("", f"so: <think>{thought}</think>")


def test_a_special_token_is_silent_unless_it_is_one_of_a_pair_of_tags() -> None:
    words = ["<s>", "</s>", "<pad>", "<|im_start|>", "<think>", "</think>", "<file_sep>", "<plan>", "</plan>"]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}))
    tokenizer.add_special_tokens(words[:7])
    tokenizer.add_tokens([AddedToken(word, special=False) for word in words[7:]])
    assert silent_tokens(tokenizer) == {0, 1, 2, 3, 6}
