"""When recorded steps may stay in a GPU's memory during an update. Measuring a GPU is a parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillpress.models.engines.local.room import DeviceMemory, MemoryRoom

LEARNER, STEPS, UPDATE = 20, 8, 16
"""What the learner holds all the time, the recorded steps, and what an update allocates beside the former."""


@pytest.mark.parametrize(
    ("size", "pooled", "stays"),
    [
        (LEARNER + STEPS + 20, 0, True),  # 20 = 1.25 x 16
        (LEARNER + STEPS + 19, 0, False),
        (LEARNER + STEPS + 20, 1, False),
        (LEARNER + STEPS + 21, 1, True),
    ],
)
def test_steps_stay_if_the_rest_is_enough_for_the_largest_update_and_a_quarter_more(
    size: int, pooled: int, stays: bool
) -> None:
    """Whether free memory is the GPU's, or reserved by this process, makes no difference."""
    now = DeviceMemory(size - LEARNER, LEARNER, LEARNER, 0, LEARNER)
    room = MemoryRoom(lambda: now)
    for _ in range(2):
        assert not room.suffices(), "nothing is known of updates yet"
        room.released()
        now = replace(now, peak=LEARNER + UPDATE)
    for reserved in (LEARNER + STEPS + pooled, size):
        now = DeviceMemory(size - reserved, reserved, LEARNER + STEPS, pooled, LEARNER + UPDATE)
        assert room.suffices() == stays
