"""The parts of the plan that the options of ``flows.study`` choose."""

from __future__ import annotations

import pytest

from flows.study import StudyChoice
from skillpress.core.errors import UserError


def test_a_seed_is_chosen_with_all_its_methods() -> None:
    every, one = (
        StudyChoice(benchmarks=("cooking",)).runs(),
        StudyChoice(benchmarks=("cooking",), seeds=(12,)).runs(),
    )
    assert one == [run for run in every if run.seed == 12]
    assert 0 < len(one) < len(every)


def test_a_seed_that_the_plan_has_not_is_refused() -> None:
    with pytest.raises(UserError, match=r"--seeds: params/study has no run of seed 99 here"):
        StudyChoice(seeds=(10, 99)).runs()
