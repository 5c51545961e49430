"""Whether the program has won: its responses are played again in the built-in game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.program_countdown.agent import LARGEST, STEPS
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.environment import Countdown
from skillpress.environments.countdown.parameters import CountdownParameters

GAME = CountdownParameters(
    name="countdown", max_steps=STEPS, min_numbers=3, max_numbers=4, min_target=10, max_target=LARGEST
)


def verify(
    task: dict[str, Any], printed: str, folder: str, calls: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """``success``, and ``refused``: the number of responses that changed nothing."""
    game, refused, won = Countdown(GAME), 0, False
    game.reset(Task(task_id=task["id"], environment="countdown", seed=0, spec=task))
    for call in calls:
        *_, info = game.step(call["content"])
        refused, won = refused + (info.invalid is not None), info.won
    return {"success": won, "refused": refused}
