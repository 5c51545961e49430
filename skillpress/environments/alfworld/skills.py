"""φ for ALFWorld: five skills (ReuseRL, Table 3 and E.1).

Going somewhere or opening something is ``Explore`` with empty hands and ``Transport`` with something in them.
So the projection tracks what is carried: the flag counts as it was *before* the action, and only takes and
moves (or puts) that changed something set it. Otherwise the rules read only the action: a refused action has
its skill too. ``close``, ``inventory``, ``help`` and ``slice`` are in no row of the table and have no skill.
"""

from __future__ import annotations

from skillpress.core.trajectory import Skills, Task, Trajectory
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS
from skillpress.environments.text.rules import RuleTable, one_each, verb_of

SKILLS = ("Explore", "Transport", "Take", "Deliver", "Transform")

_ANYWAY = (
    ("look", "Explore"),
    ("examine *", "Explore"),
    ("take *", "Take"),
    ("move *", "Deliver"),
    ("put *", "Deliver"),
    ("heat *", "Transform"),
    ("cool *", "Transform"),
    ("clean *", "Transform"),
    ("use *", "Transform"),
    ("light *", "Transform"),
)
EMPTY_HANDED = RuleTable((("go to *", "Explore"), ("open *", "Explore"), *_ANYWAY))
CARRYING = RuleTable((("go to *", "Transport"), ("open *", "Transport"), *_ANYWAY))


class AlfworldProjection:
    """φ(τ), at most one skill per step."""

    alphabet: tuple[str, ...] = SKILLS

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        found: list[str | None] = []
        carrying = False
        for step in trajectory.steps:
            found.append((CARRYING if carrying else EMPTY_HANDED).skill(step.action))
            carrying = carried_after(carrying, step.action, step.observation)
        return one_each(found)


def carried_after(carrying: bool, action: str, observation: str) -> bool:
    """Whether the agent carries something after this step."""
    verb = verb_of(action)
    if observation == NOTHING_HAPPENS or verb not in ("take", "move", "put"):
        return carrying
    return verb == "take"
