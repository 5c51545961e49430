"""Skills: an episode of Countdown and the skill of each step, as the environment's own φ gives it."""

from __future__ import annotations

import numpy as np

from docs.figures.drawing import BLUE, GREEN, MUTED, ORANGE, RED, YELLOW, Drawing
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.skills import CountdownProjection

TASK = Task("191=4,96,99", "countdown", 0, {"target": 191, "numbers": [4, 96, 99]})
ACTIONS = ("op(*, 96, 4)", "rollback", "op(-, 99, 4)", "op(+, 96, 95)")
FILLS = {
    "OP_Add": BLUE,
    "OP_Sub": GREEN,
    "OP_Mul": ORANGE,
    "OP_Div": ORANGE,
    "Rollback": RED,
    "Reset": YELLOW,
}
ABOUT = "An episode of Countdown as four actions, what the environment said to each, and the skill of each."


def episode() -> tuple[Trajectory, list[str]]:
    """The episode, played, and what numbers were left after each action."""
    section = CountdownParameters(
        name="countdown", max_steps=30, min_numbers=3, max_numbers=4, min_target=10, max_target=999
    )
    environment = section.make()
    environment.reset(TASK)
    steps, said = [], []
    for action in ACTIONS:
        observation, terminated, truncated, info = environment.step(action)
        steps.append(Step((), (), np.empty(0, np.float32), "", action, observation, info.invalid, ()))
        said.append(observation)
    assert info.won and terminated and not truncated
    played = Trajectory(
        task_id=TASK.task_id, group_id="figure", rollout_index=0, steps=tuple(steps), won=True,
        terminated=True, truncated=False, outcome="won", policy_version=0, seed=0,
    )  # fmt: skip
    return played, said


def draw() -> str:
    """The picture."""
    played, _ = episode()
    skills = CountdownProjection()(TASK, played)
    page = Drawing(760, 190, ABOUT)
    page.text(20, 30, "Reach 191 from 4, 96 and 99", anchor="start", bold=True)
    page.text(20, 78, "actions", anchor="start", color=MUTED)
    page.text(20, 148, "skills", anchor="start", color=MUTED)
    for number, (step, (skill,)) in enumerate(zip(played.steps, skills, strict=True)):
        x = 95 + number * 166
        page.box(x, 52, 150, 42, "#ffffff", (step.action,), mono=True, size=13)
        operator, *roles = skill.split("-")
        page.box(
            x, 120, 150, 48, FILLS[operator], (operator, *([", ".join(roles)] if roles else [])), size=13
        )
        page.arrow((x + 75, 94), (x + 75, 120))
    return page.svg()
