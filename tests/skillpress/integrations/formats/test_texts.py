"""The policy's prompts and answers, word by word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from skillpress.core.errors import StorageError
from skillpress.core.trajectory import Summary
from skillpress.integrations.formats.texts import Said, Texts, TokenizerError, load_texts
from tests.support.integrations.playing import episode, unsampled


def test_prompts_are_shown_with_their_special_tokens_and_answers_without(texts: Texts) -> None:
    assert texts(episode()) == [
        Said("<start> you see a door", "think first open", summary=False),
        Said("<start> you see a door", "a door", summary=True),
        Said("<start> you see a door", "open it", summary=False),
    ]


def test_a_response_that_begins_in_a_thought_of_the_prompt_is_an_answer_with_that_thought() -> None:
    words = ["<|start|>", "go", "<think>", "</think>", "up"]
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}))
    tokenizer.add_special_tokens(["<|start|>", "<think>", "</think>"])
    one = episode()
    thinking = replace(one.steps[0], prompt_ids=(1, 0, 2), response_ids=(1, 3, 4, 0))
    plain = replace(one.steps[0], prompt_ids=(1, 0), response_ids=(4,))
    said = Texts(tokenizer)(replace(one, steps=(thinking, plain), summaries=()))
    assert [(each.response, each.answer) for each in said] == [
        ("go </think> up", "<think>go </think> up"), ("up", "up"),
    ]  # fmt: skip


def test_without_a_tokenizer_an_answer_is_its_thought_and_its_action() -> None:
    assert [(said.prompt, said.response) for said in Texts()(episode())] == [
        (None, "think first\nopen"), (None, "a door"), (None, "open it"),
    ]  # fmt: skip


def test_what_was_not_sampled_has_no_prompt_whoever_played(texts: Texts) -> None:
    assert [(said.prompt, said.response) for said in texts(unsampled())] == [
        (None, "why not\nlook"), (None, ""),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 4), max_size=4).map(sorted), st.integers(5, 7))
def test_summaries_are_told_from_steps_wherever_they_stand(before: list[int], steps: int) -> None:
    one = episode()
    played = replace(
        one,
        steps=one.steps[:1] * steps,
        summaries=tuple(Summary(place, one.summaries[0].decision) for place in before),
    )
    told = [said.summary for said in Texts()(played)]
    assert told == [decision is one.summaries[0].decision for decision in played.decisions]


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: no such file; name the folder of the policy"):
        load_texts(tmp_path)
    (tmp_path / "tokenizer.json").write_text("[]")
    with pytest.raises(TokenizerError, match="not a tokenizer"):
        load_texts(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "New"}}')
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: not a tokenizer"):
        load_texts(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(StorageError, match="not valid JSON"):
        load_texts(tmp_path)
