"""r = R · [won] - penalty · [invalid]: the agent judges facts, the world none."""

from __future__ import annotations

import pytest

from skillpress.agents.reward import OutcomeReward
from skillpress.interface import Info


@pytest.mark.parametrize(
    ("info", "invalid", "expected"),
    [
        (Info(won=True), None, 10.0),
        (Info(), None, 0.0),
        (Info(lost="stuck"), None, 0.0),
        (Info(invalid="negative"), "negative", -0.01),
        (Info(), "missing_action", -0.01),
        (Info(lost="stuck", invalid="unreadable"), "unreadable", -0.01),
    ],
)
def test_success_is_rewarded_once_and_every_invalid_action_costs(
    info: Info, invalid: str | None, expected: float
) -> None:
    assert OutcomeReward(success=10.0, invalid_penalty=0.01)(info, invalid) == pytest.approx(expected)
