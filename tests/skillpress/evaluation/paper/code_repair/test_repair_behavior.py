"""How programs are repaired, counted by hand."""

from __future__ import annotations

import json

from skillpress.core.rollout_files import rollout_frame
from skillpress.core.trajectory import Step, Trajectory
from skillpress.evaluation.paper.code_repair import FIGURES
from skillpress.evaluation.statistics.episodes import evaluation_steps

CHANGE = json.dumps({"tool": "edit", "command": "change", "number": 3})
TEST, SUBMIT = json.dumps({"tool": "test"}), json.dumps({"tool": "submit"})
COMMAND = json.dumps({"tool": "bash", "command": "ls"})


def played(number: int, outcome: str, *actions: str) -> Trajectory:
    steps = tuple(Step((), (), (), "", action, "", None, ()) for action in actions)
    return Trajectory(
        f"quixbugs/{number}", f"test/{number}", 0, steps, outcome == "won", True, False, outcome, 0, 0
    )


def test_submissions_are_counted_over_all_episodes_and_edits_over_those_won() -> None:
    steps = evaluation_steps(
        rollout_frame(
            [
                played(1, "won", TEST, CHANGE, TEST, CHANGE, TEST, SUBMIT),
                played(2, "failing", CHANGE, SUBMIT),
                played(3, "timeout", COMMAND, "nonsense"),
                played(4, "won", COMMAND, "nonsense", CHANGE, SUBMIT),
            ]
        )
    )
    found = FIGURES.behavior(steps)
    assert {figure.key: figure.value for figure in found.figures} == {
        "submitted": 0.75, "edits": 1.5, "tests": 1.5
    }  # fmt: skip
    assert found.action_mix == {
        "Inspect": 0, "Edit": 3, "Test": 3, "Submit": 2, "Command": 1, "Other": 1
    }  # fmt: skip
