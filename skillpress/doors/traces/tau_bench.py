"""tau-bench's results: ``traj`` with the messages and ``reward``; and tau2-bench's simulations.

The simulated user speaks as a user and may have tools of its own, which are not the agent's. The reward is
0 or 1 for each run of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skillpress.doors.traces.chat import messages_in, trace_of
from skillpress.doors.traces.conversation import read_conversation
from skillpress.doors.traces.fields import dig
from skillpress.doors.traces.outcome import outcome_at
from skillpress.doors.traces.trace import Trace, UnreadableTraceError


def recognises(record: Any) -> bool:
    """Whether the record is a result with a trajectory, or a simulation with what its reward is made of."""
    if not isinstance(record, dict):
        return False
    if messages_in(record.get("traj")) is not None:
        return True
    return "reward_info" in record and messages_in(record.get("messages")) is not None


def runs(value: Any) -> Sequence[Any] | None:
    """The simulations of a results file; None if it is not one."""
    simulations = value.get("simulations") if isinstance(value, dict) else None
    if not isinstance(simulations, list):
        return None
    agent = dig(value, "info.agent_info.llm") or dig(value, "info.agent_info.implementation")
    return [{"model": agent, **each} if isinstance(each, dict) else each for each in simulations]


def read(record: Any) -> Trace:
    """The trace of one run.

    Raises:
        UnreadableTraceError: a message cannot be read.
    """
    messages = messages_in(record.get("traj")) or messages_in(record.get("messages"))
    if messages is None:
        raise UnreadableTraceError("a tau-bench result without messages")
    ended = outcome_at(record, ("reward", "reward_info.reward"))
    trace = trace_of(record, read_conversation(messages))
    trial = record.get("trial")
    name = trace.name or (f"{trace.task}/{trial}" if isinstance(trial, int) else trace.task)
    return replace(trace, name=name, **ended._asdict())
