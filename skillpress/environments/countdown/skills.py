"""φ for Countdown-Stepwise: 26 target-relative skills (ReuseRL, Table 3 and E.3).

An operation's skill names the operator and the roles of its two operands. Roles are relative to the target,
and they are sorted, so the order of operands does not matter. An operation that the environment refused still
has its skill, since the rules read only the action; an unreadable action has none.
"""

from __future__ import annotations

import re
from itertools import combinations_with_replacement

from skillpress.core.trajectory import Skills, Task, Trajectory
from skillpress.environments.countdown.actions import RESET, ROLLBACK
from skillpress.environments.text.rules import one_each

OPERATOR_SKILLS = {"+": "OP_Add", "-": "OP_Sub", "*": "OP_Mul", "/": "OP_Div"}
UNDO_SKILLS = {ROLLBACK: "Rollback", RESET: "Reset"}
ROLES = ("large", "near_target", "small")

_CANONICAL = re.compile(r"op\(([-+*/]), ([0-9]+), ([0-9]+)\)")


def role(number: int, target: int) -> str:
    """``near_target`` within 10% of the target (inclusive), else ``small`` or ``large``."""
    if 10 * abs(number - target) <= abs(target):
        return "near_target"
    return "small" if number < target else "large"


def skill(action: str, target: int) -> str | None:
    """The skill of an action in the canonical wording; None if it has none."""
    match = _CANONICAL.fullmatch(action)
    if match is None:
        return UNDO_SKILLS.get(action)
    roles = sorted((role(int(match[2]), target), role(int(match[3]), target)))
    return "-".join((OPERATOR_SKILLS[match[1]], *roles))


class CountdownProjection:
    """φ(τ), at most one skill per step."""

    alphabet: tuple[str, ...] = (
        *(
            "-".join((operator, *roles))
            for operator in OPERATOR_SKILLS.values()
            for roles in combinations_with_replacement(ROLES, 2)
        ),
        *UNDO_SKILLS.values(),
    )

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        target = task.spec["target"]
        return one_each(skill(action, target) for action in trajectory.actions)
