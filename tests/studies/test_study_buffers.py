"""How much of a corpus the study's buffers made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.record import RecordedRun
from skillpress.pipeline.study.store import read_record
from studies.study.buffers import buffers, earlier_share
from studies.study.results import read_results


@pytest.fixture(scope="module")
def run() -> RecordedRun:
    found = read_record(ROOT / "studies" / "study").runs
    return next(each for each in found if (each.benchmark, each.method) == ("countdown", "segcost"))


def with_curve(run: RecordedRun, steps: list[int], success: list[float], episodes: int = 256) -> RecordedRun:
    training = {**run.params["training"], "tasks_per_step": episodes // 8, "rollouts_per_task": 8}
    return replace(
        run, curve={"step": steps, "success": success}, params={**run.params, "training": training}
    )


def test_the_share_is_the_room_that_a_batch_leaves(run: RecordedRun) -> None:
    """A buffer of 256: 192 new successes leave a quarter, and 512 of 512 episodes nothing."""
    assert earlier_share(with_curve(run, [1, 9], [0.75, 0.75])) == pytest.approx(0.25)
    assert earlier_share(with_curve(run, [9], [1.0], episodes=512)) == 0
    assert earlier_share(with_curve(run, [1], [0.5])) is None


def test_a_buffer_that_is_not_full_yet_has_what_earlier_steps_won(run: RecordedRun) -> None:
    """Two steps of 32 successes before the third: 64 of 96."""
    assert earlier_share(with_curve(run, [3], [0.5], episodes=64)) == pytest.approx(64 / 96)


def test_the_page_says_how_little_the_buffer_added_on_countdown(repository: Path) -> None:
    rows = list(
        buffers(read_results(repository, repository / "params" / "study", repository / "studies" / "study"))
    )
    countdown = next(row for row in rows if row.startswith("| Countdown-Stepwise"))
    assert "| 256 | 216 | 256 | 16 (13 to 19) |" in countdown
    assert rows[-1].startswith("| the paper")
