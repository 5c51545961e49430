"""A thought inside words is not a step: the text around it is read, whatever its tags are."""

from __future__ import annotations

import json

import pytest

from skillpress.environments.calls.steps import TraceStep
from skillpress.logs.fields import Wanted
from skillpress.logs.formats import format_of, read_record
from skillpress.logs.thoughts import is_thought, without_thoughts
from tests.support.integrations import foreign_records as foreign

PAIRS = (
    ("<think>", "</think>"), ("<Thinking>", "</Thinking>"), ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"), ("<reasoning>", "</reasoning>"), ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"), ("<scratch_pad>", "</scratch_pad>"),
    ("<inner_monologue>", "</inner_monologue>"), ("<antThinking>", "</antThinking>"),
    ("<seed:think>", "</seed:think>"), ("<chain_of_thought>", "</chain_of_thought>"),
    ("<rationale>", "</rationale>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
)  # fmt: skip
WHOLE = (
    *PAIRS, ("<plan>", "</plan>"), ("<analysis>", "</analysis>"), ('<think level="2">', "</think>"),
    ('<details type="reasoning" done="true">\n<summary>Thought for 2 seconds</summary>', "</details>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)  # fmt: skip


@pytest.mark.parametrize(("begin", "end"), WHOLE)
def test_a_thought_is_cut_and_what_is_around_it_stays(begin: str, end: str) -> None:
    assert without_thoughts(f"{begin}I go south, or\ntake it?{end}\ngo north") == "go north"
    assert without_thoughts(f"{begin}hm, cut off") == ""
    assert without_thoughts(f"{begin}a{end}go {begin}b{end}north") == "go north"


@pytest.mark.parametrize(("begin", "end"), PAIRS)
def test_an_end_alone_ends_what_the_prompt_has_begun(begin: str, end: str) -> None:
    assert without_thoughts(f"hm, I look.{end}\n\ngo north") == "go north"


@pytest.mark.parametrize(
    "text",
    [
        "go north", "a < b and c > d", " <b>bold</b>, as you like\n", "[crane]", "The plan: <none>.",
        "see </plan>", "<thin>k</thin>", "<search>think</search>",
    ],
)  # fmt: skip
def test_a_text_without_a_thought_is_not_changed(text: str) -> None:
    assert without_thoughts(text) == text


def test_thoughts_inside_thoughts_end_with_the_outer_one() -> None:
    assert without_thoughts("<think><observation>o</observation><reasoning>r</reasoning></think>go") == "go"
    assert without_thoughts("<think>I use <think> tags.</think>go") == "go"
    assert without_thoughts("<think>It ends with </think>, I think.</think>go") == "go"


@pytest.mark.parametrize(
    "name", ["think", "reasoning", "state_analysis_thought", "plan", "thoughts", "explanation"]
)
def test_a_thoughts_name_is_known(name: str) -> None:
    assert is_thought(name) and not is_thought(f"search_{name[:3]}")


def step_of(record: object) -> TraceStep:
    known = format_of(record)
    assert known is not None
    return read_record(known, record, Wanted()).steps[-1]


SAID = "<reasoning>hm</reasoning>\ngo north"
ANSWER = {"role": "assistant", "content": SAID}
RECORDS = {
    "messages": {"messages": [foreign.TASK, ANSWER]},
    "blocks": {"messages": [foreign.TASK, {**ANSWER, "content": [{"type": "text", "text": SAID}]}]},
    "ShareGPT": {"conversations": [{"from": "human", "value": "x"}, {"from": "gpt", "value": SAID}]},
    "a row": {"conversations": [foreign.TASK, ANSWER]},
    "a row of JSON text": {"messages": json.dumps([foreign.TASK, ANSWER])},
    "OpenHands": [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "x"}},
        {"id": 1, "source": "agent", "action": "message", "args": {"content": SAID}},
    ],
    "Langfuse": {
        "id": "t",
        "observations": [
            {"id": "o", "type": "GENERATION", "startTime": "2026-03-01T10:00:00Z", "output": ANSWER}
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_thoughts_are_cut_in_every_format(name: str) -> None:
    step = step_of(RECORDS[name])
    assert (step.tool, step.content) == (None, "go north")


def test_a_cut_off_thought_is_a_step_without_a_skill(read_lines) -> None:
    talk = [foreign.TASK, {**ANSWER, "content": "<think>hm"}, foreign.TASK, ANSWER]
    log = read_lines(*[{"messages": talk}] * 12)
    assert (
        [trace.steps for trace in log.traces] == [2] * 12
        and log.skills == [("go",)] * 12
        and log.unlabelled.total() == 12
    )


def test_a_history_whose_earlier_thoughts_were_taken_out_goes_on(read_lines) -> None:
    talk = [foreign.TASK, {**ANSWER, "content": "<think>a</think>go north"}]
    later = [foreign.TASK, {**ANSWER, "content": "go north"}, {"role": "user", "content": "ok"}]
    later.append({**ANSWER, "content": "<think>b</think>take lamp"})
    log = read_lines({"messages": talk}, {"messages": later})
    assert log.skills == [("go", "take")]
