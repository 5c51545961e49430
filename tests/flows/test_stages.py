from pathlib import Path

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Failed

from flows.stages import StageFailedError, reproduce_stage, stage_order, worth_retrying
from skillpress.pipeline import exit_codes


def failed(error: Exception) -> State:
    return Failed(data=error)


def test_stages_come_after_those_that_they_depend_on(repository: Path, monkeypatch) -> None:
    monkeypatch.chdir(repository)
    order = stage_order()
    assert order[:2] == ["pin_inputs", "prepare_tasks"]
    assert order[-1] == "report"
    for before, after in (("prepare_policy", "train_policy"), ("train_policy", "evaluate_policy")):
        assert order.index(before) < order.index(after)


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (StageFailedError("train_policy", -9), True),  # out of memory
        (StageFailedError("train_policy", 1), True),
        (StageFailedError("train_policy", exit_codes.USER_ERROR), False),
        (StageFailedError("train_policy", exit_codes.INTERRUPTED), False),
    ],
)
def test_only_what_may_go_better_next_time_is_retried(error: Exception, retried: bool) -> None:
    assert worth_retrying(reproduce_stage, None, failed(error)) is retried
