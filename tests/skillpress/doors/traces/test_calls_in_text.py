"""Calls that an agent writes into its words, and prose that only looks like them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillpress.doors.traces import chat
from skillpress.environments.calls.steps import TraceStep, arguments_of

ARGUMENTS = {"path": "gcd.py", "line": "3"}
JSON = json.dumps({"name": "edit", "arguments": ARGUMENTS})
TAGS = "<parameter=path>gcd.py</parameter>\n<parameter=line>\n3\n</parameter>\n"
WRITTEN = {
    "Hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "Hermes, cut off": f"<tool_call>\n{JSON}",
    "OpenHands and SWE-smith": f"<function=edit>\n{TAGS}</function>",
    "Qwen coder": f"<tool_call>\n<function=edit>\n{TAGS}</function>\n</tool_call>",
    "Llama with JSON": f"<function=edit>{json.dumps(ARGUMENTS)}</function>",
    "Llama's tag": f"<|python_tag|>{JSON}<|eom_id|>",
    "GLM": "<tool_call>edit\n<arg_key>path</arg_key>\n<arg_value>gcd.py</arg_value>\n"
    "<arg_key>line</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
    "invoke": '<function_calls>\n<invoke name="edit">\n<parameter name="path">gcd.py</parameter>\n'
    '<parameter name="line">3</parameter>\n</invoke>\n</function_calls>',
    "Mistral": f"[TOOL_CALLS] [{JSON}]",
    "Mistral's newer": f"[TOOL_CALLS]edit{json.dumps(ARGUMENTS)}",
    "DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>edit\n```json\n"
    f"{json.dumps(ARGUMENTS)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "Harmony": "<|channel|>commentary to=functions.edit <|constrain|>json<|message|>"
    f"{json.dumps(ARGUMENTS)}<|call|>",
    "bare JSON": json.dumps({"name": "edit", "parameters": ARGUMENTS}),
    "labelled JSON": f"Thought: Next.\nAction: edit\nAction Input: {json.dumps(ARGUMENTS)}\n",
}


def talk(
    *said: str, system: str = "", task: str = "Mend gcd.", reply: str = "ok", **beside: Any
) -> tuple[TraceStep, ...]:
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": task})
    for words in said:
        messages += [{"role": "assistant", "content": words}, {"role": "user", "content": reply}]
    return chat.read({"messages": messages, **beside}).steps


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_in_words_is_a_call(name: str) -> None:
    system = "Answer with\nThought: ...\nAction: a tool\nAction Input: its arguments"
    first, last = talk(f"<think>Which?</think>{WRITTEN[name]}", "It is mended.", system=system)
    assert (first.tool, dict(arguments_of(first)), first.answer) == ("edit", ARGUMENTS, "ok")
    assert (last.tool, last.content) == (None, "It is mended.")


def test_several_calls_in_one_turn_are_several_steps() -> None:
    two = f"<tool_call>{JSON}</tool_call>\n<tool_call>{JSON.replace('edit', 'test')}</tool_call>"
    assert [step.tool for step in talk(two)] == ["edit", "test"]


def test_a_call_inside_a_thought_is_not_made() -> None:
    (step,) = talk(f"<think>Perhaps <tool_call>{JSON}</tool_call>?</think>No.", system="<tool_call>")
    assert step.tool is None


def test_a_call_whose_json_is_broken_still_names_its_tool() -> None:
    (step,) = talk('<tool_call>{"name": "edit", "arguments": {"path": }</tool_call>')
    assert step.tool == "edit"


def test_the_prompt_explains_a_notation_that_few_turns_use() -> None:
    said = [f"<tool_call>{JSON}</tool_call>", "I think.", "I think more.", "Done."]
    assert [step.tool for step in talk(*said, system="Write <tool_call>...</tool_call>.")] == [
        "edit",
        None,
        None,
        None,
    ]
    assert [step.tool for step in talk(*said, tools=[{"name": "edit"}])] == ["edit", None, None, None]
    assert [step.tool for step in talk(*said)] == [None] * 4, "one turn of four that quotes a tag is prose"


def test_history_in_words_and_an_answer_through_the_api_are_both_read() -> None:
    called = {
        "role": "assistant",
        "tool_calls": [{"id": "a", "function": {"name": "test", "arguments": "{}"}}],
    }
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": WRITTEN["OpenHands and SWE-smith"]},
    ]
    found = chat.read({"messages": [*history, {"role": "user", "content": "ok"}], "response": called})
    assert [step.tool for step in found.steps] == ["edit", "test"]


SHELL = "Let me look.\n\n```bash\nls -la\n```"
ASKED = {
    "mini-swe-agent": {"system": "Your response must contain exactly ONE bash code block with ONE command."},
    "a block in the system prompt": {"system": "Format:\n```bash\nyour_command\n```"},
    "AgentInstruct": {"task": "Act: bash\n\n```bash\n# put your bash code here\n```"},
    "outputs": {"reply": "<returncode>0</returncode>\n<output>x</output>"},
    "more outputs": {"reply": "The output of the OS:\n\nx"},
    "observations": {"reply": "Observation: x"},
}


@pytest.mark.parametrize("name", ASKED)
def test_code_blocks_are_calls_where_the_log_shows_that_they_were_run(name: str) -> None:
    found = talk(SHELL, SHELL, **ASKED[name])
    assert [(step.tool, step.content) for step in found] == [("bash", {"command": "ls -la"})] * 2


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        ("How do I list files?", "Thanks! And how do I remove one?"),
        ("Why does this fail?\n```bash\nls -y\n```", "It still fails."),
        ("Fix this:\n```python\nprint(x\n```", "Great, what else?"),
    ],
)
@pytest.mark.parametrize("said", [SHELL, SHELL.replace("bash", "python")])
def test_a_helpers_code_blocks_are_words(task: str, reply: str, said: str) -> None:
    assert [step.tool for step in talk(said, said, task=task, reply=reply)] == [None, None]


def test_code_of_an_agent_that_is_asked_for_code_is_a_call_of_python() -> None:
    found = talk("Thought: sum.\nCode:\n```py\nprint(3)\n```", system="Write a single code blob in Python.")
    assert [(step.tool, step.content) for step in found] == [("python", {"code": "print(3)"})]


def test_an_action_with_a_label_is_an_action_in_words() -> None:
    found = talk(
        "THOUGHT: There.\nACTION: go to desk 1",
        "ACTION: look",
        task='Write "ACTION: your next action"\nAction: x',
    )
    assert [(step.tool, step.content) for step in found] == [(None, "go to desk 1"), (None, "look")]
    found = talk("Thought: a.\nAction: search[gcd]", "Thought: b.\nAction: finish[3]", reply="Observation: x")
    assert [(step.tool, step.content) for step in found] == [
        ("search", {"input": "gcd"}),
        ("finish", {"input": "3"}),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Action: We must write to the mayor.",
        'A record is {"name": "Ada", "age": 3}.',
        '{"name": "Ada", "age": 3}',
        "Use `<tool>` or <b>bold</b>, as you like.",
        "As a great model, let me say: f(x) = x.",
    ],
)
def test_prose_stays_prose(said: str) -> None:
    assert talk(said, said, reply="Go on.") == (TraceStep(None, said, "Go on."),) * 2


@pytest.mark.parametrize(
    ("said", "tool"),
    [("<action>look</action>", None), ('<action>{"tool": "edit", "line": 3}</action>', "edit")],
)
def test_action_tags_hold_words_or_a_call(said: str, tool: str | None) -> None:
    (step,) = talk(said)
    assert step.tool == tool and step.content in ("look", {"line": 3})
