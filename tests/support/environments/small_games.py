"""Sections of small games, which fixtures and property tests change."""

from __future__ import annotations

from typing import Any

from skillpress.environments.countdown.parameters import CountdownParameters

COUNTDOWN = CountdownParameters(
    name="countdown", max_steps=30, min_numbers=3, max_numbers=4, min_target=10, max_target=999
)
DOORS: dict[str, Any] = {
    "name": "gymnasium_text",
    "max_steps": 6,
    "id": "tests/Doors-v0",
    "module": "tests.support.environments.doors_game",
    "kwargs": {},
    "won": {"info": "success"},
}

WORDS = ["beach", "bread", "child", "chest", "cloud", "coast", "dance", "earth"]

WORDLE: dict[str, Any] = {
    "name": "gymnasium_text",
    "max_steps": 6,
    "id": "textarena/WordleOfWords-v0",
    "module": "skillpress.environments.gymnasium_text.textarena",
    "kwargs": {"words": WORDS},
    "won": {"reward": 1.0},
    "info": {"invalid": "invalid", "action": "action"},
    "actions": WORDS,
    "skills": {"verbs": WORDS},
    "compact": {"words": ["g", "y", "x"], "per_observation": 6, "per_action": 1},
    "oracle": "skillpress.environments.gymnasium_text.wordle:oracle",
}
