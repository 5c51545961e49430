"""The warm-up of the learning rate, and an optimizer that adds nothing beyond its settings.

``test_learner.py`` tests that DeepSpeed updates as these settings say.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillpress.training.loop.optimizer import AdamW


def test_without_a_warm_up_every_step_has_the_full_rate_to_the_bit() -> None:
    assert {AdamW(4e-4).rate(step) for step in (1, 2, 150)} == {4e-4}


def test_four_steps_of_warm_up_are_a_line_to_the_fifth() -> None:
    rates = [AdamW(1.0, warmup_steps=4).rate(step) for step in range(1, 8)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1, 1])


@given(st.integers(0, 50), st.integers(1, 100))
def test_the_rate_is_never_nothing_never_falls_and_is_full_right_after_the_warm_up(
    warmup: int, step: int
) -> None:
    settings = AdamW(0.1, warmup_steps=warmup)
    assert 0 < settings.rate(step) <= settings.rate(step + 1) <= 0.1
    assert (settings.rate(step) == 0.1) == (step > warmup)


def test_only_what_is_asked_for_is_done_to_the_weights() -> None:
    (group,) = AdamW(1e-3).over([torch.nn.Parameter(torch.ones(1))]).param_groups
    assert (group["weight_decay"], group["betas"]) == (0.0, (0.9, 0.999))
