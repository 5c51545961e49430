"""NeMo-Gym's rollouts: ``responses_create_params`` with the input, ``response.output`` and ``reward``.

The output holds everything that happened after the input, the tools' answers included. Turns of an
assistant in the input belong to the task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skillpress.doors.traces.chat import trace_of
from skillpress.doors.traces.outcome import outcome_at
from skillpress.doors.traces.trace import Trace, UnreadableTraceError
from skillpress.doors.traces.verifiers import completed

_TASKS = ("task_id", "instance_id", "_ng_task_index", "task_index", "uuid", "id")


def recognises(record: Any) -> bool:
    """Whether the record has the parameters of a response and the response's output."""
    if not isinstance(record, dict) or not isinstance(record.get("responses_create_params"), dict):
        return False
    response = record.get("response")
    return isinstance(response, dict) and isinstance(response.get("output"), list)


def read(record: Any) -> Trace:
    """The trace of a rollout.

    Raises:
        UnreadableTraceError: an item cannot be read.
    """
    given = record["responses_create_params"].get("input")
    prompt = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if prompt is not None and not isinstance(prompt, list):
        raise UnreadableTraceError(f"the input is a {type(prompt).__name__}, not a text or a list")
    found = completed(prompt or [], record["response"]["output"])
    ended = outcome_at(record, ("reward",))
    trace = trace_of(record["response"], found)
    task = next((str(record[key])[:200] for key in _TASKS if isinstance(record.get(key), str | int)), "")
    return replace(trace, task=task, **ended._asdict())
