"""A rank selects its GPU before it connects to the others: collectives of objects use the current GPU, which
is GPU 0 for all ranks until each has selected its own. The GPUs here are simulated, since this machine has
none."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from skillpress.core.errors import UserError
from skillpress.core.resume import ResumeStore
from skillpress.experiment.collection import CollectionJob, Play
from skillpress.experiment.collection_job import play_rank
from skillpress.experiment.imitation import ImitationJob
from skillpress.experiment.imitation_job import imitate_rank
from skillpress.experiment.params import load_params
from skillpress.experiment.training import TrainingJob
from skillpress.experiment.training_job import train_rank
from skillpress.rollouts.workers.distributed import Ranks, join_ranks, settle
from skillpress.training.loop.describing.trained_episodes import TrainedEpisodes
from skillpress.training.loop.keeping.checkpoint import Checkpoints

MEETING = Path("skillpress/rollouts/workers/distributed.py")
"""The only module that connects ranks."""
OTHERS = {
    Path("skillpress/models/engines/link.py"),  # groups of the learner and a server, not of ranks
    Path("skillpress/models/engines/vllm/rank.py"),  # asks whether ranks are connected, and connects none
}
MEETS = re.compile(r"torch\.distributed|deepspeed\.comm|init_distributed")
"""Matches code that connects processes or uses such a connection."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls to the machine, in order; it pretends to have four GPUs."""
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    import deepspeed

    told: list[str] = []
    monkeypatch.setenv("LOCAL_RANK", "")
    monkeypatch.setattr(torch, "set_num_threads", lambda count: told.append(f"{count} thread"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: told.append(str(device)))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(deepspeed, "init_distributed", lambda backend, **_: told.append(backend))
    return told


@pytest.mark.parametrize(
    ("ranks", "gpu"), [(Ranks(1, 2), 1), (Ranks(6, 8, local_rank=2, local_size=4), 2)], ids=["one", "several"]
)
def test_a_rank_takes_the_gpu_of_its_place_on_its_machine_and_then_meets_the_others(
    ranks: Ranks, gpu: int, calls: list[str]
) -> None:
    join_ranks(ranks, 1)
    assert calls == ["1 thread", f"cuda:{gpu}", "nccl"]


def test_a_rank_without_a_gpu_of_its_own_is_told_what_to_set(calls: list[str]) -> None:
    with pytest.raises(
        UserError, match=r"processes: rank 4 of 8 is number 5 .* sees 4 GPUs.* set processes to 4"
    ):
        settle(Ranks(4, 8))
    settle(Ranks(4, 8, local_rank=0, local_size=4))
    assert calls[-1] == "cuda:0"


class SettledError(Exception):
    """Raised when a rank selects its GPU."""


def jobs(folder: Path) -> dict[str, Callable[[], Any]]:
    """The jobs of the second of two ranks, without any files that they could read."""
    params, nothing = load_params(), folder / "nothing"
    store = ResumeStore(nothing, "key")
    episodes = TrainedEpisodes(nothing, nothing)
    training = TrainingJob(
        params=params, tasks=nothing, validation=nothing, unseen=nothing, start=nothing, output=nothing,
        history=nothing, library=nothing, episodes=episodes, probes=nothing,
        checkpoints=Checkpoints(nothing, "key"),
    )  # fmt: skip
    imitation = ImitationJob(params, nothing, nothing, store)
    collection = CollectionJob(params, "training", [Play(nothing, [])], store)

    def report(value: object) -> None:
        raise AssertionError(f"told {value} before it has settled")

    return {
        "training": partial(train_rank, training, Ranks(1, 2), 1, report),
        "imitation": partial(imitate_rank, imitation, 1, 1, 2, report),
        "collection": partial(play_rank, collection, 1, 2, report),
    }


@pytest.mark.parametrize("job", ["training", "imitation", "collection"])
def test_every_job_of_ranks_begins_with_that(
    job: str, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settled(device: torch.device) -> None:
        raise SettledError

    monkeypatch.setattr(torch.cuda, "set_device", settled)
    with pytest.raises(SettledError):
        jobs(tmp_path)[job]()
    assert calls == ["1 thread"] and not any(tmp_path.iterdir())


def test_no_other_module_meets_ranks(repository: Path) -> None:
    sources = [*(repository / "skillpress").rglob("*.py"), *(repository / "tasks").rglob("*.py")]
    found = {path.relative_to(repository) for path in sources if MEETS.search(path.read_text())}
    assert found == {MEETING, *OTHERS}
    joins = re.compile(r"init_process_group|init_distributed|new_group")
    assert not any(joins.search((repository / path).read_text()) for path in OTHERS)
