"""The learning rate of imitation comes near the one in params, however few updates there are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillpress.experiment.params import load_params
from skillpress.training.imitation.optimizers import MOST, Schedule
from skillpress.training.imitation.parameters import ImitationParameters

PARAMETERS = load_params().imitation


def schedule(updates: int, warmup: int = PARAMETERS.warmup_updates) -> Schedule:
    return Schedule.of(PARAMETERS.model_copy(update={"warmup_updates": warmup}), updates)


@given(st.integers(1, 3000), st.integers(0, 200))
@example(1, 50)
@example(2, 50)
@example(20, 50)
@example(499, 50)
def test_the_largest_rate_is_nine_tenths_of_what_params_say_at_least(updates: int, warmup: int) -> None:
    made = schedule(updates, warmup)
    factors = [made.factor(done) for done in range(updates)]
    assert max(factors) == made.peak and 1 - 1 / MOST < made.peak <= 1
    assert min(factors) > 0


@given(st.integers(500, 3000))
def test_with_five_hundred_updates_and_more_it_is_the_schedule_that_was_always_there(updates: int) -> None:
    made = schedule(updates)
    for done in (0, 1, 48, 49, 50, updates // 2, updates - 1):
        assert made.factor(done) == min(1.0, (done + 1) / 50) * (1 - done / updates)


def test_it_rises_in_a_line_and_falls_in_a_line() -> None:
    """4 of 40 updates warm up (calculated by hand)."""
    made = schedule(40)
    assert [made.factor(done) for done in (0, 1, 2, 3, 4, 39)] == pytest.approx(
        [1 / 4, 2 / 4 * 39 / 40, 3 / 4 * 38 / 40, 37 / 40, 36 / 40, 1 / 40]
    )


def test_a_shorter_warm_up_is_taken_at_its_word() -> None:
    assert schedule(1000, 7).warmup == 7 and schedule(1000, 0).factor(0) == 1


def test_a_warm_up_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="warmup_updates"):
        ImitationParameters.model_validate(PARAMETERS.model_dump() | {"warmup_updates": -1})
