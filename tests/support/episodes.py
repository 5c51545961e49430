"""Steps and episodes of which a test says only what matters to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillpress.core.trajectory import Step, Trajectory


def made_step(**known: Any) -> Step:
    """A step with these fields; it has no tokens, texts or rewards unless they are given."""
    fields: dict[str, Any] = {
        "prompt_ids": (), "response_ids": (), "logprobs": (), "thought": "", "action": "", "observation": "",
        "invalid": None, "reward_parts": (),
    }  # fmt: skip
    return Step(**fields | known)


def made_trajectory(steps: Sequence[Step] = (), won: bool = False, **known: Any) -> Trajectory:
    """An episode with these steps and fields; one that is not won runs out of time, unless it is said how it
    ended."""
    fields: dict[str, Any] = {
        "task_id": "t", "group_id": "g", "rollout_index": 0, "terminated": won, "truncated": not won,
        "outcome": "won" if won else "timeout", "policy_version": 0, "seed": 0,
    }  # fmt: skip
    return Trajectory(steps=tuple(steps), won=won, **fields | known)
