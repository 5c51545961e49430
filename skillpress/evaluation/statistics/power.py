"""What a paired test of successes can show, computed before it is made.

Each task is taken to be won half of the time, which leaves chance the most room, and rollouts to be
independent, so this is the largest of the smallest differences. Where all rollouts of a task end alike, as at
temperature 0, several count as one. The normal approximation of the sign-flip test's power.
"""

from __future__ import annotations

from math import ceil, sqrt

from skillpress.core.distributions import normal_quantile
from skillpress.evaluation.statistics.sign_flips import ERROR

POWER = 0.8
ASKED_ABOUT = 0.05
"""A usual difference for which the required number of tasks is computed."""
FEWEST = next(tasks for tasks in range(1, 99) if 2.0 ** (1 - tasks) <= ERROR)
"""With fewer tasks no result is significant, even if all tasks go one way."""


def smallest_difference(tasks: int, rollouts: int) -> float | None:
    """The smallest difference of shares that is found with ``POWER``; None if there are too few tasks."""
    if tasks < FEWEST:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _needed(middle, rollouts) <= tasks else (middle, high)
    return high


def tasks_for(difference: float, rollouts: int) -> int:
    """The number of tasks with which a difference of shares is found with ``POWER``."""
    return max(FEWEST, ceil(_needed(difference, rollouts)))


def what_it_shows(tasks: int, rollouts: int, temperature: float, asked: float = ASKED_ABOUT) -> str:
    """The smallest difference that this many tasks can show, and the tasks that another needs."""
    alike = temperature == 0
    rollouts = 1 if alike else rollouts
    why = "at temperature 0 a task's rollouts count as one" if alike else "rollouts independent"
    found = smallest_difference(tasks, rollouts)
    if found is None:
        return f"power: {tasks} tasks can show nothing, whatever their outcomes; {FEWEST} are the fewest"
    return (
        f"power: {100 * found:.1f} points or more are found with {POWER:.0%} ({tasks} tasks won half of the "
        f"time, {why}); {100 * asked:.3g} points would need {tasks_for(asked, rollouts):,} tasks"
    )


def _needed(difference: float, rollouts: int) -> float:
    variance = (1 - difference**2) / 2 / rollouts
    spread = normal_quantile(1 - ERROR / 2) * sqrt(variance + difference**2)  # as if signs were drawn
    return float(((spread + normal_quantile(POWER) * sqrt(variance)) / difference) ** 2)
