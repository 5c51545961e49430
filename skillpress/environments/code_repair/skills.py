"""φ for code repair: Inspect, Reproduce, Edit, Test, Submit.

A call that runs the program or its tests is ``Reproduce`` before the first edit was made and ``Test`` after
it, so the projection follows whether the program was changed. The rules read the action alone otherwise:
a refused one has its skill too. A bash command goes by its first word; one that is in no row has no skill.
"""

from __future__ import annotations

import json

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.text.rules import RuleTable

SKILLS = ("Inspect", "Reproduce", "Edit", "Test", "Submit")

_READING = ("cat", "ls", "head", "tail", "grep", "find", "wc", "nl", "diff", "git", "file", "pwd", "tree")
_WRITING = ("sed", "echo", "printf", "tee", "patch", "ed", "mv", "cp", "rm")
_RUNNING = ("python", "python3", "test")
_ANYWAY = (
    ("edit view", "Inspect"),
    ("edit list", "Inspect"),
    ("edit *", "Edit"),
    ("submit", "Submit"),
    *((f"bash {word}", "Inspect") for word in _READING),
    *((f"bash {word}", "Edit") for word in _WRITING),
)


def _running(skill: str) -> tuple[tuple[str, str], ...]:
    return (("test", skill), *((f"bash {word}", skill) for word in _RUNNING))


UNCHANGED = RuleTable((*_ANYWAY, *_running("Reproduce")))
CHANGED = RuleTable((*_ANYWAY, *_running("Test")))


class CodeRepairProjection:
    """φ(τ), one label per step."""

    alphabet: tuple[str, ...] = SKILLS

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[str | None, ...]:
        labels: list[str | None] = []
        changed = False
        for step in trajectory.steps:
            label = (CHANGED if changed else UNCHANGED).skill(called(step.action))
            labels.append(label)
            changed = changed or (label == "Edit" and step.invalid is None)
        return tuple(labels)


def called(action: str) -> str:
    """``edit view``, ``bash ls``, ``test``: the tool, and what of it; the text itself where it is no call."""
    try:
        call = json.loads(action)
        words = str(call.get("command", "")).split() if isinstance(call, dict) else []
    except (ValueError, RecursionError):
        return action
    if not isinstance(call, dict):
        return action
    return " ".join([str(call.get("tool", "")), *words[:1]])
