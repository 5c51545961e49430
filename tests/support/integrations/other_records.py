"""Records of the logs that a few paths read, made by hand after each project's documentation.

All of them say the run of ``foreign_records``, apart from what a format cannot say.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.integrations.foreign_records import CALLS, DONE, TASK, langchain, openai_messages


def art() -> list[Any]:
    """A line of ART's trajectories: a group. Answers of the model are choices."""
    messages = [
        {"finish_reason": "stop", "index": 0, "message": each} if each["role"] == "assistant" else each
        for each in openai_messages()
    ]
    run = {
        "metrics": {},
        "metadata": {"step": 1},
        "messages_and_choices": messages,
        "tools": None,
        "logs": [],
    }
    return [{"trajectories": [{**run, "reward": 1.0}, {**run, "reward": 0.0}]}]


def rllm() -> list[Any]:
    """An episode of rLLM, whose steps hold the conversation so far."""
    messages = openai_messages()
    ends = [number for number, each in enumerate(messages) if each["role"] == "assistant"]
    steps = [
        {
            "observation": "x",
            "thought": "",
            "action": None,
            "chat_completions": messages[: end + 1],
            "done": False,
        }
        for end in ends
    ]
    run = {"uid": "t", "name": "agent", "task": "gcd", "steps": steps, "metadata": None}
    return [{"id": "gcd:0", "is_correct": True, "trajectories": [{**run, "reward": 1.0}], "metrics": {}}]


def bfcl() -> list[Any]:
    """A line of a multi-turn result of BFCL: turns of steps of calls."""
    called = [[{tool: json.dumps(arguments)}] for tool, arguments, _ in CALLS]
    return [{"id": "multi_turn_base_0", "result": [called, [[DONE]]], "input_token_count": [[1]]}]


def bfcl_text() -> list[Any]:
    """The same of a model that writes its calls."""
    written = [
        [f"[{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})]"]
        for tool, arguments, _ in CALLS
    ]
    return [{"id": "multi_turn_base_0", "result": [*written, [DONE]]}]


def langsmith() -> list[Any]:
    """The runs of a trace of LangSmith, the last first."""
    spans = [
        {
            "id": f"r{number}",
            "trace_id": "tr",
            "parent_run_id": "root",
            "name": tool,
            "run_type": "tool",
            "inputs": arguments,
            "outputs": {"output": answer},
            "dotted_order": f"20260301T100000000000Zroot.20260301T10000{number}000000Zr{number}",
        }
        for number, (tool, arguments, answer) in enumerate(CALLS, 1)
    ]
    root = {
        "id": "root", "trace_id": "tr", "name": "mender", "run_type": "chain", "inputs": {"messages": [TASK]},
        "outputs": {"output": DONE}, "dotted_order": "20260301T100000000000Zroot",
        "feedback_stats": {"correctness": {"n": 1, "avg": 1.0}},
    }  # fmt: skip
    model = {**root, "id": "llm", "run_type": "llm", "name": "ChatOpenAI", "feedback_stats": None}
    return [*reversed(spans), model, root]


def langsmith_models() -> list[Any]:
    """The runs of a trace of LangSmith without spans of tools: messages as LangChain's constructors."""
    messages = langchain("lc")["messages"]
    ends = [number for number, each in enumerate(messages) if each["id"][-1] == "AIMessage"]
    root = langsmith()[-1]
    return [root] + [
        {
            **root,
            "id": f"m{number}",
            "run_type": "llm",
            "feedback_stats": None,
            "start_time": f"2026-03-01T10:00:0{number}",
            "inputs": {"messages": [messages[:end]]},
            "outputs": {"generations": [[{"text": "", "message": messages[end]}]], "llm_output": {}},
        }
        for number, end in enumerate(ends)
    ]


def weave() -> list[Any]:
    """The calls of a trace of Weave."""
    messages = openai_messages()
    calls = [
        {
            "id": f"w{number}",
            "op_name": "weave:///team/project/op/openai.chat.completions.create:abc",
            "trace_id": "tr",
            "parent_id": "root",
            "started_at": f"2026-03-01T10:00:0{number}Z",
            "inputs": {"model": "small", "messages": messages[:end]},
            "output": {"choices": [{"index": 0, "message": messages[end]}], "model": "small"},
        }
        for number, end in enumerate(
            number for number, each in enumerate(messages) if each["role"] == "assistant"
        )
    ]
    root = {
        **calls[0],
        "id": "root",
        "op_name": "weave:///team/project/op/mend:d",
        "inputs": {},
        "output": DONE,
    }
    return [root, *calls]


def gemini() -> list[Any]:
    """A session of Gemini CLI."""
    messages: list[dict[str, Any]] = [
        {"id": "u", "timestamp": "2026-03-01T10:00:00Z", "type": "user", "content": "Mend gcd."},
        {"id": "i", "timestamp": "2026-03-01T10:00:00Z", "type": "info", "content": "Update available"},
    ]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        response = {"functionResponse": {"id": f"c{number}", "name": tool, "response": {"output": answer}}}
        call = {
            "id": f"c{number}", "name": tool, "args": arguments, "result": [response], "status": "success",
            "timestamp": "2026-03-01T10:00:01Z", "resultDisplay": answer,
        }  # fmt: skip
        messages.append(
            {
                "id": f"m{number}",
                "type": "gemini",
                "content": "",
                "toolCalls": [call],
                "thoughts": [],
                "model": "small",
            }
        )
    messages.append({"id": "m", "type": "gemini", "content": DONE, "thoughts": [], "model": "small"})
    return [
        {"sessionId": "s-3", "projectHash": "f0", "startTime": "2026-03-01T10:00:00Z", "messages": messages}
    ]


def gemini_lines() -> list[Any]:
    """The same in lines: a message is written again when its call was answered."""
    (session,) = gemini()
    messages = session.pop("messages")
    lines: list[Any] = [session]
    for message in messages:
        if message.get("toolCalls"):
            calls = [{**call, "result": None, "resultDisplay": None} for call in message["toolCalls"]]
            lines.append({**message, "toolCalls": calls})
        lines.append(message)
    return [*lines, {"$set": {"lastUpdated": "2026-03-01T10:01:00Z"}}]


def smolagents() -> list[Any]:
    """The result of a run of smolagents."""
    steps: list[dict[str, Any]] = [{"system_prompt": "You mend."}, {"task": "Mend gcd.", "task_images": None}]
    for number, (tool, arguments, answer) in enumerate(CALLS, 1):
        function = {"name": tool, "arguments": arguments}
        steps.append(
            {
                "step_number": number,
                "timing": {"start_time": 1.0, "end_time": 2.0, "duration": 1.0},
                "model_input_messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
                "error": None,
                "model_output_message": {"role": "assistant", "content": "Next."},
                "model_output": "Next.",
                "code_action": None,
                "observations": answer,
                "action_output": answer,
                "is_final_answer": False,
            }
        )
    steps.append({"step_number": 4, "tool_calls": [], "model_output": DONE, "observations": None})
    return [{"output": DONE, "state": "success", "steps": steps, "token_usage": None, "timing": {}}]


def autogen() -> list[Any]:
    """A TaskResult of AutoGen."""
    shared: dict[str, Any] = {"models_usage": None, "metadata": {}, "source": "mender"}
    messages: list[dict[str, Any]] = [
        {**shared, "source": "user", "type": "TextMessage", "content": "Mend gcd."}
    ]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"id": f"c{number}", "name": tool, "arguments": json.dumps(arguments)}
        result = {"content": answer, "name": tool, "call_id": f"c{number}", "is_error": False}
        messages.append({**shared, "type": "ThoughtEvent", "content": "Next."})
        messages.append({**shared, "type": "ToolCallRequestEvent", "content": [call]})
        messages.append({**shared, "type": "ToolCallExecutionEvent", "content": [result]})
        messages.append({**shared, "type": "ToolCallSummaryMessage", "content": answer})
    return [
        {"messages": [*messages, {**shared, "type": "TextMessage", "content": DONE}], "stop_reason": None}
    ]


def autogen_state() -> list[Any]:
    """The saved state of an agent of AutoGen."""
    messages: list[dict[str, Any]] = [{"content": "Mend gcd.", "source": "user", "type": "UserMessage"}]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"id": f"c{number}", "arguments": json.dumps(arguments), "name": tool}
        result = {"content": answer, "name": tool, "call_id": f"c{number}", "is_error": False}
        messages.append({"content": [call], "thought": None, "source": "mender", "type": "AssistantMessage"})
        messages.append({"content": [result], "type": "FunctionExecutionResultMessage"})
    messages.append({"content": DONE, "thought": None, "source": "mender", "type": "AssistantMessage"})
    return [{"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": messages}}]


def agent_data_protocol() -> list[Any]:
    """A trajectory of the agent data protocol, one of whose actions is code."""
    (search, asked, found), (tool, arguments, answer), (_, _, passed) = CALLS
    return [
        {
            "id": "gcd-1",
            "content": [
                {"class_": "text_observation", "content": "Mend gcd.", "name": None, "source": "user"},
                {"class_": "api_action", "function": search, "kwargs": asked, "description": "Next."},
                {"class_": "text_observation", "content": found, "name": None, "source": "environment"},
                {"class_": "api_action", "function": tool, "kwargs": arguments, "description": None},
                {"class_": "web_observation", "axtree": answer, "html": None, "url": None},
                {"class_": "code_action", "language": "bash", "content": "pytest", "description": None},
                {"class_": "text_observation", "content": passed, "name": None, "source": "environment"},
                {"class_": "message_action", "content": DONE, "description": None},
            ],
            "details": {},
        }
    ]
