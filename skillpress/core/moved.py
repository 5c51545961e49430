"""Modules that had another name in version 0.1: for labs whose own parts import them."""

from __future__ import annotations

import re

MOVED = {
    "console": "cli",
    "doors.formats": "integrations.formats",
    "doors.integrations": "integrations",
    "doors.serving": "integrations.serving",
    "doors.traces": "logs",
    "doors": "integrations",
    "learn.training": "training.loop",
    "learn": "training",
    "measure.evaluation": "evaluation.statistics",
    "measure": "evaluation",
    "play.rollout": "rollouts.collection",
    "play": "rollouts",
    "show": "reports",
    "training.algorithms.scored_tokens": "training.algorithms.algorithm",
    "training.algorithms.token_weights": "training.algorithms.algorithm",
}
"""Former to present name within ``skillpress``."""
_FORMER = re.compile(rf"\bskillpress\.({'|'.join(sorted(map(re.escape, MOVED), key=len, reverse=True))})\b")


def with_present_names(text: str) -> str:
    """The text with the present name of every module that it calls by a former one."""
    return _FORMER.sub(lambda found: f"skillpress.{MOVED[found[1]]}", text)
