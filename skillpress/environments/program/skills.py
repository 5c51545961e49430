"""φ for programs: the skills of a response are those of its calls, in order, by the section's rules.

A rule reads a call as words: the tool, and behind it the words of its arguments in the order in which the
model wrote them, such as ``bash ls -l src`` or ``edit view main.py``. A response without calls is read as its
own words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.text.stated_rules import StatedRules


class ProgramProjection:
    """φ(τ): the skills of each step, as many as its calls that a rule names."""

    def __init__(self, stated: StatedRules) -> None:
        self._rules = stated.projection()
        self.alphabet: tuple[str, ...] = self._rules.alphabet

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self._skills(step.action)) for step in trajectory.steps)

    def _skills(self, action: str) -> Iterator[str]:
        for said in said_by(action):
            skill = self._rules.skill(said)
            if skill is not None:
                yield skill


def said_by(action: str) -> list[str]:
    """A response's calls as words, or its content if it has none; ``action`` is ``Reply.as_action``."""
    try:
        reply = json.loads(action)
    except (ValueError, RecursionError):
        return [action]
    if not isinstance(reply, Mapping):
        return [action]
    calls = reply.get("calls") or ()
    return [" ".join([call["tool"], *map(_words, call["arguments"].values())]) for call in calls] or [
        str(reply.get("content", ""))
    ]


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
