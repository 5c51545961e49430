"""Records of every foreign format, made by hand: an agent searches, edits, tests, and says that it is done.

``RUN`` is what each of them must be read as, apart from what a format cannot say.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from skillpress.environments.calls.steps import arguments_of, text_of
from skillpress.logs.fields import Wanted
from skillpress.logs.formats import format_of, read_record
from skillpress.logs.trace import Trace

Call = tuple[str, dict[str, Any], str]
CALLS: list[Call] = [
    ("search", {"text": "gcd"}, "gcd.py:1"),
    ("edit", {"path": "gcd.py", "line": 3}, "edited"),
    ("test", {}, "3 passed"),
]
DONE = "It is mended."
NOON = "2026-03-01T10:00:00Z"
RUN = [(tool, arguments, answer) for tool, arguments, answer in CALLS] + [(None, DONE, "")]
TASK = {"role": "user", "content": "Mend gcd."}
SYSTEM = "You look after programs."


def openai_messages(as_text: bool = True) -> list[dict[str, Any]]:
    """The run as chat completions."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, TASK]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        function = {"name": tool, "arguments": json.dumps(arguments) if as_text else arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    return [*messages, {"role": "assistant", "content": DONE}]


def blocks() -> dict[str, Any]:
    """The run in the blocks of Anthropic's API."""
    messages: list[dict[str, Any]] = [TASK]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        used = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments}
        thought = {"type": "thinking", "thinking": "Which next?", "signature": "x"}
        messages.append({"role": "assistant", "content": [thought, {"type": "text", "text": "Next."}, used]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": answer}
        messages.append({"role": "user", "content": [result]})
    return {
        "system": SYSTEM,
        "messages": [*messages, {"role": "assistant", "content": [{"type": "text", "text": DONE}]}],
    }


def response_items() -> list[dict[str, Any]]:
    """The run as items of the responses API, without the task."""
    items: list[dict[str, Any]] = []
    for number, (tool, arguments, answer) in enumerate(CALLS):
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": []})
        text = {"type": "output_text", "text": "Next."}
        items.append({"type": "message", "role": "assistant", "content": [text]})
        called = {"name": tool, "arguments": json.dumps(arguments), "call_id": f"call_{number}"}
        items.append({"type": "function_call", "id": f"fc_{number}", **called})
        items.append({"type": "function_call_output", "call_id": f"call_{number}", "output": answer})
    text = {"type": "output_text", "text": DONE}
    return [*items, {"type": "message", "role": "assistant", "content": [text]}]


def responses() -> dict[str, Any]:
    """A response of the responses API, with what was asked."""
    return {"input": [TASK, *response_items()[:-1]], "output": response_items()[-1:], "model": "small"}


def gemini() -> dict[str, Any]:
    """The run in Gemini's contents."""
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Mend gcd."}]}]
    for tool, arguments, answer in CALLS:
        contents.append({"role": "model", "parts": [{"functionCall": {"name": tool, "args": arguments}}]})
        part = {"functionResponse": {"name": tool, "response": {"output": answer}}}
        contents.append({"role": "user", "parts": [part]})
    return {"contents": [*contents, {"role": "model", "parts": [{"text": DONE}]}]}


def swe_agent(**changes: Any) -> dict[str, Any]:
    """A ``.traj`` file of an agent that writes commands."""
    actions = ["search gcd", "edit gcd.py 3\nreturn a\nend_of_edit", "test"]
    given = {"thought": "Next.", "execution_time": 0.1, "state": {"working_dir": "/"}}
    steps: list[dict[str, Any]] = [
        {"action": f"{action}\n", "observation": answer, "response": f"Next.\n{action}", **given}
        for action, (_, _, answer) in zip(actions, CALLS, strict=True)
    ]
    history: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "An example run: open x.py", "is_demo": True},
        TASK,
    ]
    for step in steps:
        told = {"content": step["response"], "thought": "Next.", "action": step["action"]}
        history += [{"role": "assistant", **told}, {"role": "user", "content": step["observation"]}]
    replayed = {"problem_statement": {"id": "gcd-1"}, "agent": {"model": {"name": "small"}}}
    return {
        "environment": "swe_main",
        "trajectory": steps,
        "history": [{**message, "agent": "main"} for message in history],
        "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {"api_calls": 3}},
        "replay_config": json.dumps(replayed),
        **changes,
    }


def swe_agent_calls() -> dict[str, Any]:
    """A ``.traj`` file of an agent that calls tools through the API."""
    history = [{**message, "agent": "main"} for message in openai_messages()]
    for message in history:
        if message["role"] == "tool":
            message["tool_call_ids"] = [message.pop("tool_call_id")]
    history.insert(
        1, {"role": "assistant", "content": "x", "is_demo": True, "tool_calls": history[2]["tool_calls"]}
    )
    return swe_agent(history=history, info={"exit_status": "exit_cost"})


def mini_swe_agent() -> dict[str, Any]:
    """mini-swe-agent's trajectory, with the action in a code block."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Answer with exactly ONE bash code block."},
        TASK,
    ]
    for command, answer in (("ls", "gcd.py"), ("sed -i s/b/a/ gcd.py", "")):
        messages.append({"role": "assistant", "content": f"THOUGHT: Next.\n\n```bash\n{command}\n```"})
        messages.append(
            {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{answer}</output>"}
        )
    messages.append({"role": "assistant", "content": "I do not know how to go on."})
    return {
        "info": {
            "exit_status": "Submitted",
            "submission": "diff",
            "mini_version": "1.14.0",
            "config": {"model": {"model_name": "small"}},
        },
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "gcd-1",
    }


def openhands_events() -> list[dict[str, Any]]:
    """OpenHands' events of version 0."""

    def event(number: int, **fields: Any) -> dict[str, Any]:
        return {"id": number, "source": "agent", "message": "", **fields}

    asked = {"content": "Mend gcd."}
    events: list[dict[str, Any]] = [
        {**event(0, message="Mend gcd.", action="message", args=asked), "source": "user"},
        event(1, observation="agent_state_changed", content="", extras={}),
        event(2, action="recall", args={"query": "Mend gcd."}),
    ]
    events[0]["timestamp"] = "2026-03-01T10:00:00"
    for number, (tool, arguments, answer) in enumerate(CALLS):
        place = 10 * (number + 1)
        function = {"name": tool, "arguments": json.dumps(arguments)}
        answered = {"choices": [{"message": {"tool_calls": [{"id": f"c{number}", "function": function}]}}]}
        called = {"function_name": tool, "tool_call_id": f"c{number}", "model_response": answered}
        run = {"command": "x", "thought": "Next."}
        events.append(event(place, action="run", args=run, tool_call_metadata=called))
        events.append(event(place + 1, cause=place, observation="run", content=answer, extras={}))
    said = {"content": DONE, "wait_for_response": True}
    return [*events, event(99, message=DONE, action="message", args=said)]


def openhands_evaluation() -> dict[str, Any]:
    """A line of OpenHands' evaluations."""
    return {
        "instance_id": "gcd-1",
        "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "small"}},
        "history": openhands_events(),
        "test_result": {"git_patch": "diff", "report": {"resolved": True}},
    }


def openhands_sdk() -> list[dict[str, Any]]:
    """Events of OpenHands' software-agent SDK."""

    def event(kind: str, identity: str, source: str, **fields: Any) -> dict[str, Any]:
        return {"kind": f"{kind}Event", "id": identity, "source": source, **fields}

    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}]}

    began = event("SystemPrompt", "s", "agent", tools=[], timestamp="2026-03-01T10:00:00")
    events = [began, event("Message", "u", "user", llm_message=said("user", "Mend gcd."))]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"id": f"c{number}", "name": tool, "arguments": json.dumps(arguments)}
        both = {"tool_name": tool, "tool_call_id": f"c{number}"}
        action = {"kind": "Action", **arguments}
        seen = {"kind": "Observation", "content": [{"type": "text", "text": answer}]}
        events.append(
            event("Action", f"a{number}", "agent", thought=[], **both, tool_call=call, action=action)
        )
        events.append(
            event(
                "Observation", f"o{number}", "environment", **both, action_id=f"a{number}", observation=seen
            )
        )
    return [*events, event("Message", "m", "agent", llm_message=said("assistant", DONE))]


def openhands_completion() -> dict[str, Any]:
    """A completion that OpenHands logged for a model without an API for tools."""
    messages = openai_messages()
    return {
        "messages": [TASK],
        "response": {"id": "r", "choices": [{"message": {"role": "assistant", "content": "<function=..."}}]},
        "fncall_messages": messages[:-1],
        "fncall_response": {"id": "r", "choices": [{"message": messages[-1]}]},
        "timestamp": 1700000000.0,
        "cost": 0.01,
    }


def tau_bench(**changes: Any) -> dict[str, Any]:
    """A result of tau-bench."""
    return {"task_id": 7, "trial": 1, "reward": 1.0, "info": {}, "traj": openai_messages(), **changes}


def tau2_bench() -> dict[str, Any]:
    """A simulation of tau2-bench, in which the user calls a tool, too."""
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": "Hello."}, TASK]
    mine = {"id": "u0", "name": "look", "arguments": {}, "requestor": "user"}
    messages.append({"role": "user", "content": None, "tool_calls": [mine]})
    messages.append({"role": "tool", "id": "u0", "content": "a light", "requestor": "user"})
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"id": f"c{number}", "name": tool, "arguments": arguments, "requestor": "assistant"}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "id": f"c{number}", "content": answer, "requestor": "assistant"})
    messages.append({"role": "assistant", "content": DONE})
    return {"id": "sim-1", "task_id": "t7", "messages": messages, "reward_info": {"reward": 0.0}, "trial": 0}


def verifiers() -> dict[str, Any]:
    """A line of results of verifiers."""
    messages = openai_messages()
    shown = [{"role": "user", "content": "Say hello."}, {"role": "assistant", "content": "Hello."}]
    return {
        "example_id": 3,
        "prompt": [*shown, *messages[:2]],
        "completion": messages[2:],
        "answer": "",
        "task": "mend",
        "reward": 0.4,
        "metrics": {"tests": 0.4},
        "is_completed": True,
    }


def verifiers_graph() -> dict[str, Any]:
    """A trace of version 1 of verifiers."""
    nodes = [
        {
            "parent": number - 1 if number else None,
            "message": message,
            "sampled": message["role"] == "assistant",
        }
        for number, message in enumerate(openai_messages())
    ]
    return {
        "version": 1,
        "id": "t1",
        "task": {"type": "Mend", "key": "mend-3", "data": {}},
        "nodes": nodes,
        "calls": [{"node": 2, "model": "small"}],
        "rewards": {
            "tests": {"score": 1.0, "weight": 0.5},
            "style": {"score": 1.0, "weight": 0.5},
            "off": None,
        },
    }


def nemo_gym() -> dict[str, Any]:
    """A rollout of NeMo-Gym."""
    return {
        "responses_create_params": {"input": [{"role": "developer", "content": SYSTEM}, TASK], "tools": []},
        "response": {"id": "resp", "model": "small", "object": "response", "output": response_items()},
        "reward": 1.0,
        "task_id": "mend-3",
    }


def inspect_sample() -> dict[str, Any]:
    """A sample of a log of inspect."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend gcd.", "source": "input"}]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"id": f"c{number}", "function": tool, "arguments": arguments, "type": "function"}
        said = [{"type": "reasoning", "reasoning": "Which next?"}, {"type": "text", "text": "Next."}]
        messages.append({"role": "assistant", "content": said, "tool_calls": [call], "source": "generate"})
        messages.append({"role": "tool", "content": answer, "tool_call_id": f"c{number}", "function": tool})
    messages.append({"role": "assistant", "content": DONE})
    return {
        "id": "mend-3",
        "epoch": 2,
        "input": "Mend gcd.",
        "target": "3 passed",
        "messages": messages,
        "output": {"model": "small", "choices": []},
        "scores": {"style": {"value": 0.3}, "match": {"value": "C", "answer": "3 passed"}},
    }


def inspect_log() -> dict[str, Any]:
    """A log of inspect with two samples."""
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "mend", "model": "large", "created": "2026-03-01T10:00:00Z"},
        "plan": {},
        "results": {},
        "samples": [inspect_sample(), {**inspect_sample(), "epoch": 3}],
    }


def claude_code() -> list[dict[str, Any]]:
    """The lines of a session of Claude Code with one sub-agent."""
    shared = {"sessionId": "s-1", "version": "2.1.0", "cwd": "/", "isSidechain": False}
    lines: list[dict[str, Any]] = [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "sessionId": "s-1"},
        {**shared, "type": "user", "uuid": "u", "parentUuid": None, "timestamp": NOON, "message": TASK},
    ]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        made = {"id": f"msg_{number}", "role": "assistant", "model": "small"}
        parts = [
            {"type": "thinking", "thinking": "?"},
            {"type": "text", "text": "Next."},
            {"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments},
        ]
        for place, part in enumerate(parts):
            line = {**shared, "type": "assistant", "uuid": f"a{number}{place}", "parentUuid": "u"}
            lines.append({**line, "message": {**made, "content": [part]}})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": answer}
        line = {**shared, "type": "user", "uuid": f"r{number}", "parentUuid": f"a{number}2"}
        lines.append(
            {**line, "message": {"role": "user", "content": [result]}, "toolUseResult": {"stdout": answer}}
        )
    aside = {**shared, "isSidechain": True, "agentId": "helper"}
    lines.append({**aside, "type": "user", "uuid": "x0", "parentUuid": None, "message": TASK})
    used = {"type": "tool_use", "id": "x", "name": "other", "input": {}}
    lines.append(
        {**aside, "type": "assistant", "uuid": "x1", "message": {"role": "assistant", "content": [used]}}
    )
    said = {"id": "last", "role": "assistant", "model": "small", "content": [{"type": "text", "text": DONE}]}
    return [*lines, {**shared, "type": "assistant", "uuid": "z", "parentUuid": "r2", "message": said}]


def codex() -> list[dict[str, Any]]:
    """The lines of a session of Codex."""
    lines: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "s-2", "cli_version": "0.50"}},
        {"type": "turn_context", "payload": {"model": "small"}},
        {
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Mend gcd."}],
            },
        },
    ]
    for item in response_items():
        lines.append({"type": "response_item", "payload": item})
        lines.append({"type": "event_msg", "payload": {"type": "agent_message", "message": "repeated"}})
    return [{"timestamp": "2026-03-01T10:00:00Z", **line} for line in lines]


def agents_sdk() -> dict[str, Any]:
    """A run state of the agents SDK."""
    kinds = {
        "function_call": "tool_call_item",
        "function_call_output": "tool_call_output_item",
        "message": "message_output_item",
        "reasoning": "reasoning_item",
    }
    items = [
        {"type": kinds[item["type"]], "raw_item": item, "agent": {"name": "mender"}}
        for item in response_items()
    ]
    return {
        "$schemaVersion": "1.5",
        "current_turn": 4,
        "current_agent": {"name": "mender"},
        "original_input": "Mend gcd.",
        "model_responses": [],
        "generated_items": items[-1:],
        "session_items": items,
        "context": {},
    }


def langchain(form: str = "plain") -> dict[str, Any]:
    """LangChain's messages: plain, with ``data``, or as constructors."""
    messages: list[dict[str, Any]] = [
        {"type": "system", "content": SYSTEM},
        {"type": "human", "content": "Mend gcd."},
    ]
    for number, (tool, arguments, answer) in enumerate(CALLS):
        call = {"name": tool, "args": arguments, "id": f"c{number}", "type": "tool_call"}
        messages.append({"type": "ai", "content": "Next.", "id": f"run-{number}", "tool_calls": [call]})
        messages.append({"type": "tool", "content": answer, "name": tool, "tool_call_id": f"c{number}"})
    messages.append({"type": "ai", "content": DONE, "tool_calls": []})
    if form == "data":
        messages = [{"type": each["type"], "data": each} for each in messages]
    if form == "lc":
        names = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
        messages = [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", names[each.pop("type")]],
                "kwargs": each,
            }
            for each in messages
        ]
    return {"messages": messages}


def sharegpt() -> dict[str, Any]:
    """ShareGPT with calls as turns of their own."""
    turns = [{"from": "human", "value": "Mend gcd."}]
    for tool, arguments, answer in CALLS:
        turns.append({"from": "function_call", "value": json.dumps({"name": tool, "arguments": arguments})})
        turns.append({"from": "observation", "value": answer})
    return {"conversations": [*turns, {"from": "gpt", "value": DONE}], "system": SYSTEM, "tools": "[]"}


def row(**changes: Any) -> dict[str, Any]:
    """A row of a table with the run as JSON text."""
    return {
        "instance_id": "gcd-1",
        "trajectory": json.dumps(openai_messages()),
        "resolved": 1,
        "model": "small",
        **changes,
    }


def _attributes(**named: Any) -> list[dict[str, Any]]:
    return [
        {"key": name.replace("__", "."), "value": {"stringValue": str(value)}}
        for name, value in named.items()
    ]


def otlp_spans() -> list[dict[str, Any]]:
    """The spans of a run by the conventions for generative AI, the last first."""

    def span(number: int, name: str, parent: str, **attributes: Any) -> dict[str, Any]:
        """The first word of the name is the operation."""
        stated = {f"gen_ai__{key}": value for key, value in attributes.items()}
        return {
            "traceId": "5b8e",
            "spanId": f"s{number}",
            "parentSpanId": parent,
            "name": name,
            "startTimeUnixNano": str(1_772_359_200_000_000_000 + number),
            "endTimeUnixNano": "0",
            "attributes": _attributes(gen_ai__operation__name=name.split()[0], **stated),
            "status": {},
        }

    def said(part: dict[str, Any], **more: Any) -> str:
        return json.dumps([{"role": "assistant", "parts": [part], **more}])

    spans = [span(0, "invoke_agent mender", "", conversation__id="gcd")]
    for number, (tool, arguments, answer) in enumerate(CALLS, 1):
        asked = said({"type": "tool_call", "id": f"c{number}", "name": tool, "arguments": arguments})
        called = {"tool__call__arguments": json.dumps(arguments), "tool__call__result": answer}
        spans.append(span(10 * number, "chat small", "s0", request__model="small", output__messages=asked))
        spans.append(span(10 * number + 1, f"execute_tool {tool}", "s0", tool__name=tool, **called))
    spans.append(span(12, "invoke_agent helper", "s11"))
    spans.append(span(13, "execute_tool other", "s12", tool__name="other"))
    done = said({"type": "text", "content": DONE}, finish_reason="stop")
    return [*spans, span(90, "chat small", "s0", output__messages=done)][::-1]


def otlp_events() -> list[dict[str, Any]]:
    """Spans of a model alone, with its answers in the older events."""
    spans = []
    for number, message in enumerate(
        message for message in openai_messages() if message["role"] == "assistant"
    ):
        attributes = _attributes(gen_ai__system="x", index="0", message=json.dumps(message))
        spans.append(
            {
                "traceId": "5b8e",
                "spanId": f"s{number}",
                "name": "chat small",
                "startTimeUnixNano": str(10**18 + number),
                "attributes": _attributes(gen_ai__operation__name="chat"),
                "events": [{"name": "gen_ai.choice", "attributes": attributes}],
            }
        )
    return spans


def otlp_document() -> dict[str, Any]:
    """What an OTLP exporter sends."""
    return {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": otlp_spans()}]}
        ]
    }


def langfuse_observations() -> list[dict[str, Any]]:
    """The observations of a trace of Langfuse."""

    def observed(
        number: int, kind: str, name: str, asked: Any, said: Any, parent: str = "o0"
    ) -> dict[str, Any]:
        return {
            "id": f"o{number}",
            "traceId": "tr-1",
            "type": kind,
            "name": name,
            "input": asked,
            "output": said,
            "startTime": f"2026-03-01T10:00:{number:02}.000Z",
            "parentObservationId": parent,
            "level": "DEFAULT",
        }

    found = [{**observed(0, "AGENT", "mender", "Mend gcd.", DONE), "parentObservationId": None}]
    for number, (tool, arguments, answer) in enumerate(CALLS, 1):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        found.append({**observed(10 * number, "GENERATION", "chat", [TASK], said), "model": "small"})
        found.append(observed(10 * number + 1, "TOOL", tool, arguments, answer))
    found.append(observed(50, "GENERATION", "chat", [TASK], {"role": "assistant", "content": DONE}))
    return found


def langfuse() -> dict[str, Any]:
    """A trace that was downloaded from Langfuse."""
    scores = [
        {"name": "speed", "value": 0.7, "dataType": "NUMERIC"},
        {"name": "solved", "value": 1, "dataType": "BOOLEAN"},
    ]
    return {
        "id": "tr-1",
        "name": "mend",
        "sessionId": "gcd",
        "observations": langfuse_observations(),
        "scores": scores,
    }


RECORDS: dict[str, tuple[str, Callable[[], Any]]] = {
    "messages": ("chat completions", lambda: {"messages": openai_messages()}),
    "arguments as mappings": ("chat completions", lambda: {"messages": openai_messages(as_text=False)}),
    "a list of messages": ("chat completions", openai_messages),
    "blocks": ("chat completions", blocks),
    "items": ("chat completions", lambda: {"messages": [TASK, *response_items()]}),
    "responses": ("chat completions", responses),
    "SWE-agent's calls": ("SWE-agent trajectories", swe_agent_calls),
    "OpenHands": ("OpenHands", openhands_events),
    "OpenHands' evaluation": ("OpenHands", openhands_evaluation),
    "OpenHands' SDK": ("OpenHands", openhands_sdk),
    "OpenHands' completion": ("OpenHands", openhands_completion),
    "tau-bench": ("tau-bench results", tau_bench),
    "verifiers": ("verifiers results", verifiers),
    "verifiers' graph": ("verifiers results", verifiers_graph),
    "NeMo-Gym": ("NeMo-Gym rollouts", nemo_gym),
    "inspect": ("inspect logs", inspect_sample),
    "Claude Code": ("Claude Code sessions", claude_code),
    "Codex": ("Codex sessions", codex),
    "agents SDK": ("agents SDK run states", agents_sdk),
    "LangChain": ("LangChain messages", langchain),
    "LangChain with data": ("LangChain messages", lambda: langchain("data")),
    "LangChain's constructors": ("LangChain messages", lambda: langchain("lc")),
    "ShareGPT": ("ShareGPT", sharegpt),
    "row": ("rows of a table", row),
    "OpenTelemetry": ("OpenTelemetry spans", otlp_spans),
    "Langfuse": ("Langfuse exports", langfuse),
    "Langfuse's observations": ("Langfuse exports", langfuse_observations),
}
"""Records that all say the same run, each with its format."""
OTHERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "Gemini": ("chat completions", gemini),
    "SWE-agent": ("SWE-agent trajectories", swe_agent),
    "mini-swe-agent": ("SWE-agent trajectories", mini_swe_agent),
    "tau2-bench": ("tau-bench results", tau2_bench),
    "OpenTelemetry's events": ("OpenTelemetry spans", otlp_events),
}
"""Records whose format says something else of the run."""


def read(record: Any, wanted: Wanted | None = None) -> Trace:
    """A record as its format reads it."""
    known = format_of(record)
    assert known is not None
    return read_record(known, record, wanted or Wanted())


def run_in(trace: Trace) -> list[tuple[str | None, Any, str]]:
    """Every step as its tool, its arguments (or words) and its answer."""
    return [
        (step.tool, step.content if step.tool is None else dict(arguments_of(step)), text_of(step.answer))
        for step in trace.steps
    ]
