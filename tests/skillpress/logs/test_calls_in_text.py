"""Calls that an agent writes into its words, and prose that only looks like them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillpress.environments.calls.steps import TraceStep, arguments_of
from skillpress.logs import chat

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


def tools(*said: str, **beside: Any) -> list[str | None]:
    return [step.tool for step in talk(*said, **beside)]


SEARCHES = {
    "a search": "<search> gcd </search>",
    "after words": "I need more. <search>gcd</search>",
    "stopped before its end": "<search> gcd",
    "a name of two words": "<web_search>gcd</web_search>",
    "in tokens": "<|begin_search_query|>gcd<|end_search_query|>",
    "R1-Searcher's tokens": "<|begin_of_query|> gcd <|end_of_query|>",
    "a tag that names its tool": '<run_tool name="search">gcd</run_tool>',
    "a tool with JSON": '<tool>{"name": "search", "args": {"input": "gcd"}}</tool>',
    "a tool with a Python call": '<tool_code>search("gcd")</tool_code>',
    "parameters as tags": "<search_files><input>gcd</input></search_files>",
}
NAMES = {"a name of two words": "web_search", "in tokens": "search_query", "R1-Searcher's tokens": "query"}


@pytest.mark.parametrize("name", SEARCHES)
def test_tags_of_the_agents_own_are_calls(name: str) -> None:
    first, last = talk(f"<think>Which?</think>\n{SEARCHES[name]}", "<answer>3</answer>")
    tool = "search_files" if name == "parameters as tags" else NAMES.get(name, "search")
    assert (first.tool, last.tool, last.content) == (tool, "answer", {"input": "3"})
    assert str(first.content["input"]).strip('"') == "gcd" and first.answer == "ok"


def test_several_tags_in_one_turn_are_calls_in_their_order_and_results_are_none() -> None:
    whole = (
        "<think>a</think><search>x</search><information>Use <search> again</information><think>b</think>"
        "<search>y</search><information>z</information><think>c</think><answer>3</answer>"
    )
    assert tools(whole) == ["search", "search", "answer"]


def test_a_prompt_explains_a_tag_whose_name_says_nothing() -> None:
    said = ["<zork>gcd</zork>", "Hm.", "<verdict>3</verdict>"]
    explained = "Look up with <zork>word</zork>; end with <verdict>...</verdict>."
    assert tools(*said, system=explained) == ["zork", None, "verdict"]
    assert tools(*said) == [None, None, None]
    assert tools("<b>bold</b>", "<p>Hello.</p>", system="Write <b>HTML</b>, such as <p>.") == [None, None]


def test_an_answer_is_a_call_beside_other_tools_and_otherwise_holds_the_action() -> None:
    acts = ["<answer>go north</answer>", "<act>take lamp</act>", "<answer>look</answer>"]
    assert [(step.tool, step.content) for step in talk(*acts)] == [
        (None, "go north"), (None, "take lamp"), (None, "look"),
    ]  # fmt: skip
    assert tools("<answer>3</answer>", task="Search with <search>words</search>.") == ["answer"]


def test_a_tag_that_is_only_spoken_of_is_no_call() -> None:
    said = ["Use the `<code>` tag, or the <code>x</code> tag.", "With <run>y</run> it goes on."]
    assert tools(*said) == [None, None]


TERMINUS = {
    "keystrokes": {"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls -la\n", "duration": 0.1}]},
    "commands": {"thought": "a", "commands": ["ls -la"]},
    "commands as objects": {"explanation": "a", "commands": [{"command": "ls -la", "timeout_sec": 1}]},
    "one command": {"thought": "a", "command": "ls -la"},
    "an action with fields": {"thought": "a", "action": "ls", "path": "/src"},
    "a tool with fields": {"reasoning": "a", "tool": "ls", "path": "/src"},
    "actions": {"current_state": {"memory": "a"}, "action": [{"ls": {"path": "/src"}}]},
    "AutoGPT": {"thoughts": {"text": "a"}, "command": {"name": "ls", "args": {"path": "/src"}}},
}


@pytest.mark.parametrize("name", TERMINUS)
@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "I look.\n{}", "<think>hm</think>{}"])
def test_an_answer_in_json_is_the_calls_that_it_holds(name: str, around: str) -> None:
    (step,) = talk(around.replace("{}", json.dumps(TERMINUS[name], indent=1)))
    assert step.tool == "ls" and step.content in (
        {"command": "ls -la\n"},
        {"command": "ls -la"},
        {"path": "/src"},
    )


def test_several_commands_waiting_and_the_end_in_json() -> None:
    both = {"commands": [{"keystrokes": "cd /x\n"}, {"keystrokes": "C-c"}], "task_complete": False}
    waits = {"analysis": "It builds.", "plan": "Wait.", "commands": [], "task_complete": False}
    done = {"analysis": "Done.", "commands": [], "task_complete": True}
    said = [json.dumps(each) for each in (both, waits, done)]
    assert tools(*said) == ["cd", "C-c", None, "task_complete"]
    assert talk(*said)[2].content == "It builds."


def test_keystrokes_in_tags() -> None:
    said = (
        '<response><analysis>a</analysis><plan>p</plan><commands>\n<keystrokes duration="0.1">ls -la\n'
        "</keystrokes>\n<keystrokes>make\n</keystrokes></commands><task_complete>false</task_complete></response>"
    )
    assert tools(said) == ["ls", "make"]


def test_an_action_in_words_inside_json_is_words() -> None:
    said = [json.dumps({"thought": "a", "action": words}) for words in ("go to desk 1", "look")]
    assert [(step.tool, step.content) for step in talk(*said)] == [(None, "go to desk 1"), (None, "look")]


LABELLED = {
    "AgentBench": ("Think: look.\n\nAct: bash\n\n```bash\nls /etc\n```", "bash", "ls /etc"),
    "a fence of another language": (
        "I count.\nAction: Operation\n```sql\nSELECT 1;\n```",
        "Operation",
        "SELECT 1;",
    ),
    "ReAct": ("Thought: a.\nAction: search\nAction Input: Oslo", "search", "Oslo"),
    "a tool and its input": ("Tool: search\nTool Input: Oslo", "search", "Oslo"),
    "a fence alone": ("Thought: a.\nAction:\n```bash\nls\n```", "bash", "ls"),
    "a fence of JSON": ('Action:\n```json\n{"action": "ls", "action_input": "/src"}\n```', "ls", "/src"),
    "bold": ("**Action:** search\n**Action Input:** Oslo", "search", "Oslo"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_with_an_input_is_a_call_and_so_are_the_labels_beside_it(name: str) -> None:
    said, tool, given = LABELLED[name]
    first, second, last = talk("Ok.", said, "Thought: done.\nAction: Answer\nFinal Answer: 3", reply="x")
    assert (first.tool, second.tool, last.tool) == (None, tool, "Answer")
    assert given in str(second.content)


def test_a_label_without_an_input_is_no_call_of_a_tool() -> None:
    assert tools("Command:\n```bash\nls\n```", "Tool: the hammer.", reply="Thanks!") == [None, None]


@pytest.mark.parametrize(
    "said",
    [
        "<answer>3</answer>",
        "<code>\nprint(3)\n</code>",
        '{"action": "approve", "reason": "x"}',
        '{"code": "E3"}',
    ],
)
def test_the_form_of_an_answer_behind_calls_through_the_api_is_no_call(said: str) -> None:
    called = {"id": "a", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": f"Answer like this: {said}"},
        {"role": "user", "content": "Mend gcd."},
        {"role": "assistant", "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "assistant", "content": said},
    ]
    found = chat.read({"messages": messages, "tools": [{"name": "ls"}]}).steps
    assert [step.tool for step in found] == ["ls", None]


def test_a_thought_and_an_action_behind_their_labels_are_an_action() -> None:
    said = ["Thought: a\nAction: go to desk 1", "Thought:\nb\n\nAction:\ntake pen 2"]
    assert [(step.tool, step.content) for step in talk(*said, reply="x")] == [
        (None, "go to desk 1"), (None, "take pen 2"),
    ]  # fmt: skip
    called = [
        "Thought: a\nAction: click(box='1')",
        'Thought: b\nAction: {"action_type": "done", "status": "ok"}',
    ]
    assert tools(*called, reply="x") == ["click", "done"]
    assert tools("Thought: a sunny day.", "Action: f(x) follows.", reply="x") == [None, None]


def test_a_command_between_three_marks_in_a_line_is_a_call_where_the_prompt_shows_it() -> None:
    said = ["Next I will perform ```click [12]```", "Next I will perform ```stop [3]```"]
    assert tools(*said, system="Answer: Next I will perform ```action```") == ["click", "stop"]
    assert tools(*said) == [None, None]
