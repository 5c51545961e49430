"""Directions of behaviour figures compared with the paper's printed ones."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_rel

from studies.statistics.behavior_signs import MISSING, OPEN, OTHER, SAME, printed, signs

FIRST = {10: 6.0, 11: 6.2, 12: 5.9}
SHORTER = {10: 4.0, 11: 4.3, 12: 4.0}


def direction(found: dict, planned: int = 3) -> dict:
    return {
        (s.first, s.second): s.direction for s in signs("countdown", {"9/success_length": found}, planned)
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [("58.0", 58.0), ("20 of 700", 100 * 20 / 700), ("74.97 ± 0.76", 74.97), ("", None), ("yes", None)],
)
def test_a_printed_figure_is_read(text: str, number: float | None) -> None:
    assert printed(text) == (None if number is None else pytest.approx(number))


def test_the_direction_is_the_papers_where_both_signs_agree_and_the_difference_is_shown() -> None:
    # The paper's successes take 6.70 steps under GRPO and 4.30 under round length.
    assert direction({"grpo": FIRST, "round_length": SHORTER})["grpo", "round_length"] == SAME
    assert direction({"grpo": SHORTER, "round_length": FIRST})["grpo", "round_length"] == OTHER
    assert direction({"grpo": FIRST, "round_length": {**SHORTER, 11: 9.0}})["grpo", "round_length"] == OPEN


def test_with_a_seed_missing_nothing_is_said() -> None:
    assert set(direction({"grpo": FIRST, "round_length": SHORTER}, planned=4).values()) == {MISSING}


def test_the_p_is_that_of_the_paired_t_test() -> None:
    found = {"grpo": FIRST, "round_length": SHORTER}
    sign = next(s for s in signs("countdown", {"9/success_length": found}, 3) if s.p is not None)
    assert sign.p == pytest.approx(ttest_rel(list(SHORTER.values()), list(FIRST.values())).pvalue)
    assert sign.corrected == pytest.approx(min(1.0, 6 * sign.p))  # six pairs of four methods
