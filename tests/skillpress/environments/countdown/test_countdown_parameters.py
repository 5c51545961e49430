"""The environment section refuses empty ranges."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.environments.countdown.parameters import CountdownParameters

GOOD: dict[str, Any] = {
    "name": "countdown", "max_steps": 30,
    "min_numbers": 3, "max_numbers": 4, "min_target": 10, "max_target": 999,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"min_numbers": 5}, "min_numbers 5 must not exceed max_numbers 4"),
        ({"min_target": 1000}, "min_target 1000 must not exceed max_target 999"),
        ({"max_steps": 2}, "max_steps 2 must be at least max_numbers - 1"),
        ({"max_steps": 3, "unseen_numbers": 5}, "max_steps 3 must be at least unseen_numbers - 1"),
        ({"unseen_numbers": 4}, "unseen_numbers 4 must be 0 or exceed max_numbers 4"),
        ({"max_numbers": 6}, "max_numbers"),
        ({"max_target": 99}, "max_target"),
        ({"min_numbers": 3.0}, "min_numbers"),
        ({"operators": "+-"}, "operators"),
    ],
)
def test_a_wrong_section_is_refused_by_key_and_value(change: dict[str, Any], message: str) -> None:
    CountdownParameters.model_validate(GOOD)
    with pytest.raises(ValidationError, match=message):
        CountdownParameters.model_validate({**GOOD, **change})
