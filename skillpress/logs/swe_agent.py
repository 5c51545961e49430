"""SWE-agent's ``.traj`` files and mini-swe-agent's trajectories.

SWE-agent keeps ``trajectory`` (every action with its observation) and ``history`` (the messages). If the
model called tools through its API, the history has the calls and is read. Otherwise the actions are
commands, and the first word of a command is its tool. mini-swe-agent keeps only messages: its action is
the code block of a turn, or a call of ``bash``. The outcome is ``resolved`` or ``target`` if the record has
it. The exit status says how the run ended, and "submitted" is not yet solved: it decides only if the user
asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillpress.environments.calls.steps import TraceStep, json_or
from skillpress.logs.calls_in_text import FENCED_SHELL
from skillpress.logs.chat import dialogue_of, first_text, messages_in
from skillpress.logs.conversation import DEMONSTRATIONS, LoggedConversation, read_conversation
from skillpress.logs.fields import dig
from skillpress.logs.messages import is_demonstration
from skillpress.logs.outcome import outcome_at
from skillpress.logs.trace import Trace, UnreadableTraceError

_OUTCOMES = ("resolved", "target", "info.resolved")
_MODELS = (
    "info.config.model.model_name",
    "replay_config.agent.model.name",
    "agent.model.name",
    "model_name",
    "model",
)
_TASKS = ("instance_id", "info.instance_id", "replay_config.problem_statement.id", "task_id")
_COMMAND = re.compile(r"[A-Za-z_][\w.-]*")
ATTEMPTS = "other attempts"


def recognises(record: Any) -> bool:
    """Whether the record has SWE-agent's trajectory or history, or mini-swe-agent's messages."""
    return isinstance(record, dict) and (_is_mini(record) or _is_swe_agent(record))


def runs(value: Any) -> Sequence[Any] | None:
    """The attempts of a run that chose none of them; None for any other value."""
    if not isinstance(value, dict) or "trajectory" in value or "history" in value:
        return None
    attempts = value.get("attempts")
    if not isinstance(attempts, list) or not attempts or not all(map(recognises, attempts)):
        return None
    outside = {key: held for key, held in value.items() if key != "attempts"}
    return [{**outside, **attempt} for attempt in attempts]


def read(record: Any) -> Trace:
    """The trace of a trajectory file.

    Raises:
        UnreadableTraceError: it has neither steps nor messages that can be read.
    """
    found = _mini(record) if _is_mini(record) else _steps(record)
    steps, left_out = found.steps, found.left_out
    config = record.get("replay_config")
    whole = {**record, "replay_config": json_or(config) if isinstance(config, str) else config}
    ended = outcome_at(whole, _OUTCOMES)
    attempts = record.get("attempts")
    if isinstance(attempts, list) and len(attempts) > 1:
        left_out = {**left_out, ATTEMPTS: len(attempts) - 1}
    return Trace(
        first_text(record, ("traj_id", "run_id", "id", "instance_id")),
        steps,
        task=_at(whole, _TASKS),
        version=_at(whole, _MODELS),
        left_out=left_out,
        dialogue=dialogue_of(found, {}),
        **ended._asdict(),
    )


def _is_mini(record: Mapping[str, Any]) -> bool:
    named = str(record.get("trajectory_format", "")).startswith("mini-swe-agent")
    return (named or dig(record, "info.mini_version") is not None) and messages_in(
        record.get("messages")
    ) is not None


def _is_swe_agent(record: Mapping[str, Any]) -> bool:
    taken = record.get("trajectory")
    if isinstance(taken, list) and taken and isinstance(taken[0], dict):
        return "action" in taken[0] and {"observation", "response", "thought"} & taken[0].keys() != set()
    history = record.get("history")
    beside = {"info", "replay_config", "environment"} & record.keys()
    return bool(beside) and isinstance(history, list) and messages_in(history) is not None


def _mini(record: Mapping[str, Any]) -> LoggedConversation:
    messages = messages_in(record["messages"]) or []
    found = read_conversation(messages)
    if not any(step.tool is not None for step in found.steps):
        found = read_conversation(messages, notation=FENCED_SHELL)
    return found


def _steps(record: Mapping[str, Any]) -> LoggedConversation:
    """The steps of a SWE-agent file; without turns if the file has only steps."""
    taken, history = record.get("trajectory"), record.get("history")
    left_out: dict[str, int] = {}
    if isinstance(history, list) and history:
        shown = sum(is_demonstration(message) for message in history if isinstance(message, dict))
        left_out = {DEMONSTRATIONS: shown} if shown else {}
        if any(_calls(message) for message in history) or not taken:
            found = read_conversation(history)
            return replace(found, steps=tuple(_commands(found.steps, history)))
    if not isinstance(taken, list):
        raise UnreadableTraceError("the SWE-agent file has no list of steps or messages")
    return LoggedConversation(tuple(map(_taken, taken)), left_out=left_out)


def _calls(message: Any) -> bool:
    return isinstance(message, dict) and bool(message.get("tool_calls")) and not is_demonstration(message)


def _commands(steps: Sequence[TraceStep], history: Sequence[Any]) -> Iterator[TraceStep]:
    """The steps of a history; a step in words becomes the command that the history names for it."""
    actions = iter(
        message.get("action")
        for message in history
        if isinstance(message, dict) and message.get("role") == "assistant" and not is_demonstration(message)
        if not message.get("tool_calls")
    )
    for step in steps:
        action = next(actions, None) if step.tool is None else None
        yield _command(step, action) if isinstance(action, str) and action.strip() else step


def _command(step: TraceStep, action: str) -> TraceStep:
    """The step with the command that its words contained."""
    name = _COMMAND.match(action.strip())
    return TraceStep(name[0] if name else "", {"command": action}, step.answer, step.refused)


def _taken(step: Any) -> TraceStep:
    """One entry of ``trajectory``."""
    if not isinstance(step, dict) or "action" not in step:
        raise UnreadableTraceError("a step of the SWE-agent file has no action")
    action, observation = step["action"], step.get("observation")
    answer = "" if observation is None else observation
    if not isinstance(action, str) or not action.strip():
        return TraceStep(None, step.get("response") or step.get("thought") or "", answer, True)
    return _command(TraceStep(None, action, answer), action)


def _at(record: Mapping[str, Any], paths: Sequence[str]) -> str:
    """The first value at some paths that is not null, as text."""
    values = (dig(record, path) for path in paths)
    return next((str(value)[:200] for value in values if isinstance(value, str | int)), "")
