"""φ: the skill of each call, before and after the program was changed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.code_repair.skills import CodeRepairProjection
from skillpress.environments.text.rules import one_each

TASK = Task("t", "code_repair", 0, {})
CHANGE = '{"tool": "edit", "command": "change", "number": 3}'
TEST = '{"tool": "test"}'


def bash(command: str) -> str:
    return json.dumps({"tool": "bash", "command": command})


@pytest.mark.parametrize(
    ("actions", "skills"),
    [
        ([TEST, CHANGE, TEST, '{"tool": "submit"}'], ["Reproduce", "Edit", "Test", "Submit"]),
        ([bash("ls -l"), bash("python3 test_a.py"), bash("sed -i s/a/b/ a.py"), bash("python3 test_a.py")],
         ["Inspect", "Reproduce", "Edit", "Test"]),
        (['{"tool": "edit", "command": "view", "path": "a.py"}'], ["Inspect"]),
        (['{"tool": "edit", "command": "list", "page": 2}'], ["Inspect"]),
        ([f"!{CHANGE}", TEST], ["Edit", "Reproduce"]),
        ([bash("whoami"), bash(""), "nonsense", "[1]"], [None, None, None, None]),
    ],
)  # fmt: skip
def test_each_step_has_its_skill(
    actions: list[str], skills: list[str | None], episode: Callable[..., Trajectory]
) -> None:
    assert CodeRepairProjection()(TASK, episode("t", 0, actions, won=True)) == one_each(skills)
