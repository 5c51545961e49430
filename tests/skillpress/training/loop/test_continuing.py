"""Rollouts that go on over new weights: their bound, what is dropped, and that each group is learned once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.interface import DecisionRequest, Environment, Info
from skillpress.core.trajectory import Task, Trajectory
from skillpress.experiment.params import load_params
from skillpress.rollouts.collection import Collector, EpisodeRequest, SyncVectorEnv
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import FURTHER, LEFT_OUT, TEACHES, Batch
from skillpress.training.loop.ahead import Rollouts
from skillpress.training.loop.continuing import TOO_OLD, ContinuingRollouts
from skillpress.training.loop.groups import GroupCollector
from tests.support.rollouts.walking import TASKS, Countdowner
from tests.support.rollouts.walking_weights import Holder

ROOT = Path(__file__).parents[4]
SLOW = "t9"
"""A task of nine steps; its second decision is kept back where a test says so."""


def algorithm(overlay: str = "grpo") -> Any:
    return load_params(ROOT / "params.yaml", ROOT / f"params/{overlay}.yaml").algorithm


GRPO = algorithm()


def planned(steps: Sequence[int], groups: GroupCollector) -> Counter[str]:
    """How many episodes each group of these steps has, by the groups' names."""
    found: Counter[str] = Counter()
    for step in steps:
        for group in groups.plan(step)[0]:
            found.update(each.group_id for each in group.requests(groups.size, groups.seed, step))
    return found


def names(trajectories: Sequence[Trajectory]) -> Counter[str]:
    return Counter(trajectory.group_id for trajectory in trajectories)


@dataclass
class Learner:
    """Takes the rollouts of steps one after another; a checkpoint follows step ``last``."""

    rollouts: ContinuingRollouts
    lag: int
    last: int
    step: int = 0
    played: dict[int, list[Trajectory]] = field(default_factory=dict)
    too_old: dict[int, int] = field(default_factory=dict)

    def take(self, updates: Callable[[], object] = lambda: None) -> Batch:
        """One training step; ``updates`` takes as long as the updates of its weights."""
        self.step += 1
        played, metrics = self.rollouts(self.step)
        for following in range(self.rollouts.begun + 1, min(self.step + self.lag, self.last) + 1):
            self.rollouts.begin(following)
        updates()
        self.rollouts.finish()
        self.rollouts.update_weights({"w": torch.tensor([float(self.step)])}, self.step)
        self.played[self.step] = played.played_as(TEACHES, LEFT_OUT)
        self.too_old[self.step] = int(metrics[TOO_OLD])
        return played

    def settle(self, kept: int = 0) -> None:
        """Wait for all groups in the air to finish, except for the number that the test keeps back.

        A step learns from younger groups where an older one has not finished, and that one may be too old for
        the next step. Tests that count dropped groups let each step's updates wait for all others: how fast
        the thread plays then decides nothing."""
        changed, unfinished = self.rollouts._changed, self.rollouts._unfinished
        with changed:
            assert changed.wait_for(lambda: len(unfinished()) <= kept, 60), unfinished()

    def oldest(self) -> dict[int, int]:
        """For each step the age of the oldest token that it learned from, by its span."""
        return {
            step: max(step - 1 - span.version for t in played for s in t.steps for span in s.weight_spans)
            for step, played in self.played.items()
        }


@contextmanager
def learner(
    agent: Holder,
    lag: int,
    last: int,
    make: Callable[[], Environment] = Countdowner,
    slots: int = 8,
    **options: Any,
) -> Iterator[Learner]:
    collector = Collector(SyncVectorEnv(make), agent, slots)
    given_: dict[str, Any] = {"algorithm": GRPO, "ranks": Ranks(), **options}
    groups = GroupCollector(
        tasks=TASKS,
        collector=collector,
        groups=4,
        size=2,
        core_maximum=10.0,
        longest_response=4,
        seed=0,
        **given_,
    )
    with ContinuingRollouts(groups, agent.engine, lag) as rollouts:
        yield Learner(rollouts, lag, last)


class SecondDecision:
    """Keeps back the second decision of an episode of the slow task, until released; of its ``tries`` first
    tries, if it is played again."""

    def __init__(self, tries: int = 1) -> None:
        self.left, self.kept = tries, set[int]()
        self.episode: int | None = None
        self.was_kept = threading.Event()

    def __call__(self, request: DecisionRequest) -> bool:
        state, episode = request.state, request.episode_seed
        second = state.task.task_id == SLOW and state.observation == "8"
        if second and self.left and self.episode in (None, episode) and request.key not in self.kept:
            self.episode, self.left = episode, self.left - 1
            self.kept.add(request.key)
            self.was_kept.set()
        return request.key in self.kept

    def wait(self) -> None:
        """Wait until an episode is kept back."""
        assert self.was_kept.wait(60)
        self.was_kept.clear()

    def release(self) -> None:
        self.kept.clear()


@settings(max_examples=8, deadline=None)
@given(lag=st.integers(1, 4), slots=st.integers(1, 40), seed=st.integers(0, 99), every=st.integers(5, 7))
def test_no_token_is_older_than_the_lag_and_every_group_is_learned_once_before_a_checkpoint(
    lag: int, slots: int, seed: int, every: int
) -> None:
    """Whichever requests are answered late: each is passed over as often as its own seed says."""
    passed: Counter[int] = Counter()

    def held(request: DecisionRequest) -> bool:
        passed[request.key] += 1
        return passed[request.key] <= (request.seed + seed) % 13

    with learner(Holder(held=held), lag, every, slots=slots) as found:
        for _ in range(every):
            found.take()
    assert max(found.oldest().values()) <= lag
    everything = [trajectory for played in found.played.values() for trajectory in played]
    assert names(everything) == planned(range(1, every + 1), found.rollouts.collect)
    assert all(len(played) == 8 for played in found.played.values())
    versions = {(trajectory.group_id, trajectory.policy_version) for trajectory in everything}
    assert len(versions) == 4 * every, "a group shows the skills of one version of a library"
    if lag == 1:
        assert not any(found.too_old.values()), "a step takes all that are in the air"


def test_a_group_beyond_the_bound_is_dropped_and_played_again_by_the_newest_weights() -> None:
    keeps = SecondDecision()
    with learner(Holder(held=keeps), lag=2, last=6) as found:
        found.take(keeps.wait)
        for _ in range(2):
            found.take(lambda: found.settle(kept=1))
        found.take(found.settle)
        assert found.too_old == {1: 0, 2: 0, 3: 0, 4: 1}, "begun by weights 0, and weights 3 are the newest"
        for _ in range(2):
            found.take(found.settle)
        keeps.release()
    everything = [trajectory for played in found.played.values() for trajectory in played]
    assert names(everything) == planned(range(1, 7), found.rollouts.collect)
    assert max(found.oldest().values()) <= 2 and sum(found.too_old.values()) == 1


def test_an_episode_goes_on_under_new_weights_and_its_steps_say_which() -> None:
    keeps = SecondDecision()
    with learner(Holder(held=keeps), lag=3, last=6) as found:
        found.take(keeps.wait)
        for _ in range(2):
            found.take(lambda: found.settle(kept=1))
        keeps.release()
        found.rollouts.rest()
        for _ in range(3):
            found.take(found.settle)
    versions = [
        (trajectory.policy_version, [span.version for step in trajectory.steps for span in step.weight_spans])
        for played in found.played.values()
        for trajectory in played
    ]
    crossing = [(first, spans) for first, spans in versions if len(set(spans)) > 1]
    assert any(spans[0] == 0 and spans[1] == 3 for _, spans in crossing), "kept back over three updates"
    for first, spans in versions:
        assert first <= spans[0] and spans == sorted(spans)
    assert found.too_old == dict.fromkeys(range(1, 7), 0)


def test_a_group_that_was_dropped_once_is_awaited_before_it_would_be_dropped_again() -> None:
    keeps = SecondDecision(tries=2)
    with learner(Holder(held=keeps), lag=2, last=9) as found:
        found.take(keeps.wait)
        for _ in range(2):
            found.take(lambda: found.settle(kept=1))
        found.take(keeps.wait)
        assert found.too_old[4] == 1
        found.take(lambda: found.settle(kept=1))
        release = threading.Timer(0.5, keeps.release)
        release.start()
        found.take()
        release.join()
        again = [t for t in found.played[6] if t.task_id == SLOW and t.policy_version == 3]
        assert again, "others had finished, but weights 3 would be too old for step 7"
        assert sum(found.too_old.values()) == 1


def test_dropped_groups_of_a_selection_are_replaced_and_all_are_learned_or_judged_once() -> None:
    """Only groups in which one of two episodes wins teach."""
    with learner(Holder(), 2, 4, algorithm=algorithm("varied_groups")) as found:
        kept = [found.take() for _ in range(4)]
        refills = 4 * 8
        assert all(each.teaching.groups == 4 for each in kept), "every step has its groups"
        everything = names([trajectory for played in found.played.values() for trajectory in played])
        assert len(everything) > 16 and set(everything.values()) == {2}
        assert planned(range(1, 5), found.rollouts.collect) <= everything
        assert refills < everything.total()


@dataclass(frozen=True)
class SecondTries:
    """Asks for a second attempt at each failure."""

    reflection: None = None

    def attempts(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[EpisodeRequest]:
        return [
            EpisodeRequest(task, f"{failed.group_id}/second", failed.rollout_index, failed.seed + 1)
            for task, failed in zip(tasks, trajectories, strict=True)
            if not failed.won
        ]


def test_further_attempts_belong_to_their_groups() -> None:
    with learner(Holder(), 2, 4, experience=SecondTries()) as found:
        for step in range(1, 5):
            played = found.take()
            assert len(found.played[step]) == 8
            failed = Counter(f"{t.group_id}/second" for t in found.played[step] if not t.won)
            assert names(played.played_as(FURTHER)) == failed, step


def test_what_was_played_ahead_is_kept_while_the_engine_rests() -> None:
    """A probe plays with the same collector in the learner's thread."""
    with learner(Holder(), 2, 4) as found:
        found.take(found.rollouts.rest)
        collector = found.rollouts.collect.collector
        alone = collector.collect(found.rollouts.collect.plan(9)[0][0].requests(2, 0, 9), 1)
        assert {trajectory.policy_version for trajectory in alone} == {1}
        found.take()
        assert {t.policy_version for t in found.played[2]} == {0}, "it was finished before the rest"


def test_an_error_in_the_thread_is_raised_where_a_step_waits() -> None:
    class Broken(Countdowner):
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            raise KeyError("the grue")

    with pytest.raises(KeyError, match="the grue"), learner(Holder(), 1, 4, Broken) as found:
        found.take()


@pytest.mark.timeout(60)
def test_an_error_beside_what_is_played_ends_that_too() -> None:
    class Endless(Countdowner):
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            return "on and on", False, False, Info()

    with pytest.raises(SystemExit), learner(Holder(), 1, 4, Endless) as found:
        found.rollouts.begin(1)
        raise SystemExit
    for thread in threading.enumerate():
        if thread.name.startswith("plays ahead"):
            thread.join(30)
            assert not thread.is_alive()


def test_with_nothing_ahead_the_episodes_are_those_of_lock_step() -> None:
    agent = Holder()
    with learner(agent, 1, 0) as found:
        mine = found.take().episodes
        groups = found.rollouts.collect
        found.rollouts.rest()
        with Rollouts(groups) as lockstep:
            theirs = lockstep(1)[0].episodes
    assert [(t.group_id, t.rollout_index, t.actions) for t in mine] == [
        (t.group_id, t.rollout_index, t.actions) for t in theirs
    ]
