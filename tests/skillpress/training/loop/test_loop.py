"""The step from which a training run resumes, and that all its ranks agree on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.errors import StorageError
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.loop.keeping.checkpoint import Checkpoints, TrainingState
from skillpress.training.loop.loop import TrainingLoop
from skillpress.training.loop.step import TrainingStep

NOTHING: Any = None
"""A part that a resumption does not use."""


@dataclass(frozen=True)
class SecondRank(Ranks):
    """Rank 1 of two, which receives the result of rank 0."""

    rank: int = 1
    size: int = 2
    found: Any = None

    def gather(self, items: Sequence[Any]) -> list[Any]:
        assert not items, "it looks for nothing itself"
        return [self.found]


def resume(checkpoints: Checkpoints, ranks: Ranks) -> list[dict[str, float]]:
    step = TrainingStep(
        seed=0, minibatches=1, minibatch_size=0, algorithm=NOTHING, rollouts=NOTHING, shaper=NOTHING,
        learner=NOTHING, mismatch=NOTHING, engine=NOTHING, ranks=ranks,
        sample=NOTHING,
    )  # fmt: skip
    return TrainingLoop(step, NOTHING, checkpoints, (), 4, 2, "last", 0)._resume()


def test_where_rank_0_has_found_nothing_all_start_afresh_whatever_they_see(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "key")
    checkpoints.prepare(2)
    checkpoints.commit(TrainingState(2, {}, [{"step": 1.0}, {"step": 2.0}]))
    assert checkpoints.latest() is not None
    assert resume(checkpoints, SecondRank(found=None)) == []


def test_a_rank_that_does_not_see_rank_0s_checkpoint_says_what_it_needs(tmp_path: Path) -> None:
    found = TrainingState(2, {}, []), tmp_path / "elsewhere" / "step-000002"
    with pytest.raises(
        StorageError, match=r"step-000002: rank 1 does not see .* a disk that all machines share"
    ):
        resume(Checkpoints(tmp_path, "key"), SecondRank(found=found))
