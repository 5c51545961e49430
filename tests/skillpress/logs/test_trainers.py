"""Rollouts of verl and TRL are runs: who speaks is read from the markers of chat templates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillpress.environments.calls.steps import text_of
from skillpress.logs.chat_text import messages_of_text, opened
from skillpress.logs.formats import format_of, part_of
from tests.support.integrations.foreign_records import RUN, openai_messages, read
from tests.support.integrations.trace_records import chat

CALL = '<tool_call>\n{"name": "search", "arguments": {"text": "gcd"}}\n</tool_call>'
RESPONSE = "<tool_response>\ngcd.py:1\n</tool_response>"
TEMPLATES = {
    "ChatML": ("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n<|im_start|>user\n",
               "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"),
    "Llama": ("<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\n",
              "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
              "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
    "Gemma": ("<bos><start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n",
              "<end_of_turn>\n<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n",
              "<end_of_turn>"),
    "Mistral": ("<s>[INST] {} [/INST] ", "</s>[INST] ", " [/INST] ", "</s>"),
    "DeepSeek": ("<｜begin▁of▁sentence｜><｜User｜>{}<｜Assistant｜>", "<｜end▁of▁sentence｜><｜User｜>",
                 "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "skipped tokens": ("user\n{}\nassistant\n", "\nuser\n", "\nassistant\n", ""),
    "answers in the text": ("user\n{}\nassistant\n", "\n", "\n", ""),
}  # fmt: skip
"""A template to its prompt, and the text before an answer, before the next turn, and at the end."""


def verl(template: str, **changes: Any) -> dict[str, Any]:
    prompt, before, after, end = TEMPLATES[template]
    output = f"{CALL}{before}{RESPONSE}{after}It is mended.{end}"
    return {
        "input": prompt.format("Mend gcd."),
        "output": output,
        "score": 1.0,
        "step": 3,
        "gts": "x",
        **changes,
    }


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_dump_of_verl_is_calls_answers_and_words(template: str) -> None:
    found = read(verl(template))
    assert [(step.tool, text_of(step.answer)) for step in found.steps] == [("search", "gcd.py:1"), (None, "")]
    assert found.steps[1].content == "It is mended."
    assert (found.outcome, found.success, found.time) == ("score", True, 3)
    assert format_of(verl(template)).name == "verl rollouts"  # type: ignore[union-attr]


def test_a_score_between_is_no_success(read_lines: Any) -> None:
    assert read(verl("ChatML", score=0.4)).success is None


def test_examples_in_the_prompt_are_left_out() -> None:
    prompt, _, after, _ = TEMPLATES["ChatML"]
    asked = prompt.format("Say hello.") + f"Hello.<|im_end|>\n{prompt.format('Mend gcd.')}"
    found = read(verl("ChatML", input=asked))
    assert [step.tool for step in found.steps] == ["search", None]
    assert found.left_out == {"steps of the prompt": 1} and after in asked


def test_what_the_prompt_begins_of_the_answer_belongs_to_the_answer() -> None:
    prompt = TEMPLATES["ChatML"][0].format("Mend gcd.")
    assert opened(prompt + "<think>\n") == "<think>\n" and opened(prompt) == ""
    assert opened("<|im_start|>assistant\nHello.<|im_end|>\n") == ""
    found = read(verl("ChatML", input=prompt + "<think>\n", output=f"Which?</think>\n{CALL}<|im_end|>"))
    assert [step.tool for step in found.steps] == ["search"] and not found.left_out


def test_text_without_markers_is_the_speakers() -> None:
    assert messages_of_text("go to desk 1") == [{"role": "assistant", "content": "go to desk 1"}]
    assert messages_of_text("A user\nsaid it.", "user") == [{"role": "user", "content": "A user\nsaid it."}]


def trl(**changes: Any) -> dict[str, Any]:
    return {"step": 2, "prompt": "Mend gcd.", "completion": CALL, "advantage": 0.5, **changes}


def test_the_only_reward_of_a_completion_is_its_outcome() -> None:
    found = read(trl(tests_pass=1.0))
    assert (found.outcome, found.success, found.time) == ("tests_pass", True, 2)
    assert [step.tool for step in found.steps] == ["search"]


def test_of_several_rewards_the_one_whose_name_means_success_decides() -> None:
    assert read(trl(tests_pass=1.0, short=0.0)).outcome == "tests_pass"
    unsure = read(trl(format_reward=1.0, length_reward=0.0))
    assert unsure.outcome == "" and {each.path for each in unsure.candidates} == {
        "format_reward",
        "length_reward",
    }


def test_completions_may_be_messages_or_their_json() -> None:
    messages = openai_messages()
    for form in (lambda value: value, json.dumps):
        found = read(trl(prompt=form(messages[:2]), completion=form(messages[2:]), reward=0.0))
        assert [(step.tool, step.content if step.tool is None else "") for step in found.steps] == [
            (tool, content if tool is None else "") for tool, content, _ in RUN
        ]
        assert found.success is False


def test_lines_of_messages_are_one_run_or_one_for_each_session(read_lines: Any) -> None:
    lines = openai_messages()
    assert len(read_lines(*lines).skills) == 1
    found = read_lines(*[{**line, "session_id": session} for session in "ab" for line in lines])
    assert [len(skills) for skills in found.skills] == [3, 3] and found.formats == {"chat messages": 2}
    assert found.called == 6 and found.in_words == 2


def test_a_record_with_messages_is_no_message() -> None:
    assert part_of(chat()) is None and part_of({"role": "user", "name": "x"}) is None
    assert part_of({"role": "planner", "content": "x"}) is None
