"""φ for code repair: Inspect, Reproduce, Edit, Test, Submit.

A call that runs the program or its tests is ``Reproduce`` before the first edit and ``Test`` after it, so the
projection tracks whether the program was changed. Otherwise the rules read only the action: a refused action
has its skill too. The skill of a bash command depends on its first word; a word in no row has no skill.
"""

from __future__ import annotations

import json

from skillpress.core.trajectory import Skills, Task, Trajectory
from skillpress.environments.text.rules import RuleTable, one_each

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
    """φ(τ), at most one skill per step."""

    alphabet: tuple[str, ...] = SKILLS

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        found: list[str | None] = []
        changed = False
        for step in trajectory.steps:
            skill = (CHANGED if changed else UNCHANGED).skill(called(step.action))
            found.append(skill)
            changed = changed or (skill == "Edit" and step.invalid is None)
        return one_each(found)


def called(action: str) -> str:
    """The tool and the first word of its command, such as ``edit view``, ``bash ls`` or ``test``; the text
    itself if it is not a tool call."""
    try:
        call = json.loads(action)
        words = str(call.get("command", "")).split() if isinstance(call, dict) else []
    except (ValueError, RecursionError):
        return action
    if not isinstance(call, dict):
        return action
    return " ".join([str(call.get("tool", "")), *words[:1]])
