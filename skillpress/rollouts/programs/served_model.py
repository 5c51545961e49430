"""A model behind a URL that answers a program's requests, for evaluation and never for training.

The endpoint reads a request in any form, and this agent forwards it as a chat completion with the program's
tools. The evaluation controls sampling, as with a local model. The server reads the calls in its model's
response, so they arrive as structure; its text is never searched for calls. Text, thought, calls and the
server's token counts are recorded. ``chat/`` defines answers, failures and refusals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillpress.core.chat_messages import Message, ToolCall, call_of
from skillpress.core.interface import AgentState, Decision, Info
from skillpress.core.markup import THOUGHT_END
from skillpress.core.parsed_action import ParsedAction
from skillpress.rollouts.chat.outcomes import ModelAnswer, readable
from skillpress.rollouts.chat.question import Question
from skillpress.rollouts.chat.server import ConversationError
from skillpress.rollouts.chat.server_agent import ServerAgent, tokenless
from skillpress.rollouts.programs.agent import unasked, with_ids
from skillpress.rollouts.programs.forms.chat import calls as written
from skillpress.rollouts.programs.requests import Asked, Finish, ModelRequest, Reply
from skillpress.rollouts.programs.tool_calls import BROKEN, plain

FINISHES: Mapping[str, Finish] = {"cut_off": "length", "refused": "content_filter"}
"""Maps the end of an answer without calls to the program's finish reason; for other ends it is ``stop``."""


class ServedModelAgent(ServerAgent):
    """An ``interface.Agent`` that decides the answers to a program."""

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """The program keeps its own past: the next state is its next request."""
        return replace(state, observation=observation, info=info)

    def _decide(self, state: AgentState, seed: int) -> Decision:
        asked = state.info.state
        if not isinstance(asked, Asked):
            return unasked("nothing_asked: the program has ended")
        try:
            answer = self._client.put(question_of(asked.request), seed, f"task {state.task.task_id}")
        except ConversationError as refused:
            return unasked(f"not_served: {refused.reason}", asked.kind)
        if answer.ended == "prompt_too_long":
            told = "prompt_too_long: prompt is too long for the context of the server's model"
            return unasked(told, asked.kind)
        return _decision(asked, answer)


def question_of(request: ModelRequest) -> Question:
    """The request as a question to a server."""
    messages = [_message(message) for message in request.messages]
    return Question(messages, request.tools, max_tokens=request.max_tokens, stop=request.stop)


def _message(message: Message) -> dict[str, Any]:
    """The message in the form of chat completions, with arguments as JSON text."""
    found = message.plain()
    if message.calls:
        found["tool_calls"] = written(message.calls)
        found["content"] = message.content or None
    return found


def _decision(asked: Asked, answer: ModelAnswer) -> Decision:
    text, thought = answer.text, answer.thought
    if THOUGHT_END in text:
        said = plain(text)
        text, thought = said.content, thought or said.thought
    if answer.ended == "refused" and not text:
        text, thought = thought, ""  # what the model said instead
    # Some servers do not support ``stop``, and some return it as the response's end.
    kept = asked.request.cut(text)
    calls, broken = read_calls(answer.calls if kept == text else None)
    reply = Reply(
        content=kept,
        calls=with_ids(calls, asked),
        thought=thought,
        finish=_finish(answer, calls, kept != text),
        prompt_tokens=answer.usage.prompt_tokens or 0,
        response_tokens=answer.usage.response_tokens or 0,
    )
    return tokenless(ParsedAction(thought, reply, _invalid(answer, broken)), asked.kind, answer.usage)


def _finish(answer: ModelAnswer, calls: Sequence[ToolCall], stopped: bool) -> Finish:
    if calls:
        return "tool_calls"
    return "stop" if stopped else FINISHES.get(answer.ended, "stop")


def _invalid(answer: ModelAnswer, broken: bool) -> str | None:
    return answer.ended if answer.ended in FINISHES else BROKEN if broken else None


def read_calls(sent: Any) -> tuple[tuple[ToolCall, ...], bool]:
    """Return (calls, whether the arguments of one are not a JSON object) from a server's field:
    ``tool_calls``, or the older ``function_call``. Other arguments are kept under ``raw``; calls without a
    name are dropped."""
    listed = [sent] if isinstance(sent, Mapping) else sent if isinstance(sent, list) else []
    found, broken = [], False
    for item in listed:
        function = item.get("function", item) if isinstance(item, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        # Half surrogates may be inside keys and values alike.
        call = json.loads(readable(json.dumps(dict(function), ensure_ascii=False)))
        arguments = call.get("arguments") or {}
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found.append(call_of(call["name"], text, ""))
        broken = broken or dict(found[-1].arguments) in ({"raw": arguments}, {"raw": text})
    return tuple(found), broken
