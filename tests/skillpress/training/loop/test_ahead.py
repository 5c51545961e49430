"""Batches that a thread plays ahead have the same episodes, and nothing outlives an error."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from skillpress.core.interface import Environment, Info
from skillpress.experiment.params import load_params
from skillpress.rollouts.collection import Collector, SyncVectorEnv, VectorEnvironment, WorkerVectorEnv
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.loop.ahead import Rollouts
from skillpress.training.loop.groups import GroupCollector
from tests.support.rollouts.walking import TASKS, Countdowner, Walker
from tests.support.rollouts.walking_weights import Shower

ROOT = Path(__file__).parents[4]
ALGORITHM = load_params(ROOT / "params.yaml").algorithm


@dataclass(frozen=True)
class SilentRanks(Ranks):
    """The second of two ranks; the first would never answer."""

    rank: int = 1
    size: int = 2

    def gather(self, items: Sequence[Any]) -> list[Any]:
        raise AssertionError("a message to the other rank")

    def sum(self, values: dict[str, float]) -> dict[str, float]:
        raise AssertionError("a message to the other rank")


def rollouts(environments: VectorEnvironment, ranks: Ranks = Ranks()) -> Rollouts:  # noqa: B008
    """Rollouts with four groups of two episodes in each step."""
    collector = Collector(environments, Walker(), 8)
    return Rollouts(GroupCollector(TASKS, collector, ALGORITHM, 4, 2, 10.0, 4, seed=0, ranks=ranks))


def in_process(make: Callable[[], Environment] = Countdowner) -> Rollouts:
    return rollouts(SyncVectorEnv(make))


def test_a_batch_played_ahead_has_the_episodes_that_it_would_have_had_and_says_whose_it_is() -> None:
    with in_process() as plain, in_process() as ahead:
        now, _ = plain(3)
        ahead.begin(3)
        ahead.finish()
        before, speed = ahead(3)
    assert {trajectory.policy_version for trajectory in now.episodes} == {2}
    assert {trajectory.policy_version for trajectory in before.episodes} == {1}
    assert [replace(trajectory, policy_version=2) for trajectory in before.episodes] == [*now.episodes]
    assert before.group.tolist() == now.group.tolist()
    assert before.tasks == now.tasks
    assert speed["decisions_per_environment_step"] == 1


def test_what_was_begun_is_taken_once_and_the_next_step_is_played_when_it_is_asked_for() -> None:
    with in_process() as ahead:
        ahead.begin(2)
        versions = [{t.policy_version for t in ahead(step)[0].episodes} for step in (2, 3)]
    assert versions == [{0}, {2}]


def test_all_batches_ahead_are_played_in_one_thread_and_without_a_lag_in_the_callers() -> None:
    seen: list[int] = []

    class Watched(Countdowner):
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            seen.append(threading.get_ident())
            return super().step(action)

    with in_process(Watched) as ahead:
        for step in (2, 3):
            ahead.begin(step)
            ahead(step)
        others = set(seen)
        assert len(others) == 1 and threading.get_ident() not in others
        seen.clear()
        ahead(4)
        assert set(seen) == {threading.get_ident()}


def test_playing_says_nothing_to_the_other_ranks() -> None:
    """Collectives of two threads would start in a different order on each rank, and wait forever."""
    with rollouts(SyncVectorEnv(Countdowner), SilentRanks()) as ahead:
        ahead.begin(2)
        assert len(ahead(2)[0].episodes) == 4, "its half of the groups"


def test_an_error_in_the_thread_is_raised_where_the_step_waits_with_the_place_where_it_happened() -> None:
    class Broken(Countdowner):
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            raise KeyError("the grue")

    with pytest.raises(KeyError, match="the grue") as caught, in_process(Broken) as ahead:
        ahead.begin(2)
        ahead.finish()
    assert "in step" in "".join(traceback.format_tb(caught.value.__traceback__)[-1:])


class Endless(Countdowner):
    """An environment whose episodes never end."""

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        return "on and on", False, False, Info()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_error_beside_what_is_played_ends_that_too(error: type[BaseException]) -> None:
    with pytest.raises(error), in_process(Endless) as ahead:
        ahead.begin(2)
        raise error
    for thread in threading.enumerate():
        if thread.name.startswith("plays ahead"):  # it is about to end
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.timeout(120)
def test_environments_in_worker_processes_live_on_from_batch_to_batch_whichever_thread_plays() -> None:
    environments = WorkerVectorEnv(Countdowner, processes=1)
    with rollouts(environments) as ahead, ahead.collect.collector:
        for step in (1, 2, 3):
            if step == 2:
                ahead.begin(step)
            assert len(ahead(step)[0].episodes) == 8
        assert environments.pool.restarts == 0


@pytest.mark.parametrize("resting", [(), (2, 3, 6)], ids=["plain", "probed"])
@pytest.mark.parametrize("lag", [0, 1, 2, 3])
def test_batch_n_is_played_by_weights_n_less_1_less_the_lag_but_never_by_those_before_a_checkpoint(
    lag: int, resting: tuple[int, ...]
) -> None:
    """Checkpoints follow steps 4 and 8. The learner changes one tensor in place, as DeepSpeed does."""
    agent, learned = Shower(), torch.zeros(1)
    collector = Collector(SyncVectorEnv(Countdowner), agent, 8)
    groups = GroupCollector(TASKS, collector, ALGORITHM, 4, 2, 10.0, 4, seed=0, ranks=Ranks())
    played: dict[int, set[tuple[int, int]]] = {}
    with Rollouts(groups, agent.engine) as ahead:
        for step in range(1, 10):
            batch = ahead(step)[0].episodes
            played[step] = {(t.policy_version, s.prompt_ids[0]) for t in batch for s in t.steps}
            for following in range(ahead.begun + 1, min(step + lag, -(-step // 4) * 4) + 1):
                ahead.begin(following)
            learned += 1
            ahead.finish()
            ahead.update_weights({"w": learned}, step)
            if step in resting:
                ahead.rest()
                assert agent.engine.taken[-1] == agent.engine.weight.item() == step, "the newest, at a probe"
    expected = {step: max(step - 1 - lag, 0 if step <= 4 else 4 if step <= 8 else 8) for step in range(1, 10)}
    assert played == {step: {(version, version)} for step, version in expected.items()}
    assert agent.engine.taken == sorted(agent.engine.taken)
