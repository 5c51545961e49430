"""The collector: every episode once and in order, without waiting for others and without wasted samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.answers import UnansweredError
from skillpress.core.engine import Completion, Sampling
from skillpress.core.interface import Decision, Info
from skillpress.core.trajectory import Task, TokenIds, Trajectory, WeightSpan
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.rollouts.collection import CollectionStoppedError, Collector, SyncVectorEnv, requests
from skillpress.rollouts.collection.vector import StepResult
from tests.support.rollouts.lockstep import play_in_rounds
from tests.support.rollouts.walking import TASKS, Countdowner, Walker


def collect(
    slots: int, lockstep: bool = True
) -> tuple[Collector, Walker, list[tuple[str, int, bool, tuple[str, ...]]]]:
    walker = Walker(lockstep)
    collector = Collector(SyncVectorEnv(Countdowner), walker, slots)
    trajectories = collector.collect(requests(TASKS, 3, 0, "test"), policy_version=5)
    assert {t.policy_version for t in trajectories} == {5}
    assert all(t.group_id == f"test/{t.task_id}" for t in trajectories), "a group is one task's rollouts"
    return collector, walker, [(t.task_id, t.rollout_index, t.won, t.actions) for t in trajectories]


def test_trajectories_come_in_the_order_requested_whatever_the_number_of_slots() -> None:
    one, four, many = (collect(slots)[2] for slots in (1, 4, 100))
    assert one == four == many == collect(4, lockstep=False)[2]
    assert [(task, index) for task, index, *_ in one] == [(t.task_id, i) for t in TASKS for i in range(3)]
    assert any(won for *_, won, _ in one) and not all(won for *_, won, _ in one)


@pytest.mark.parametrize("lockstep", [True, False])
@pytest.mark.parametrize("slots", [1, 4, 100])
def test_one_decision_per_environment_step_and_none_for_finished_episodes(slots: int, lockstep: bool) -> None:
    collector, walker, played = collect(slots, lockstep)
    steps = sum(len(actions) for *_, actions in played)
    assert collector.statistics.decisions == collector.statistics.environment_steps == steps
    assert sum(walker.batches) == steps and max(walker.batches) <= slots
    assert collector.statistics.episodes == 18


def test_a_slot_that_falls_free_is_filled_at_once() -> None:
    _, walker, _ = collect(4)
    emptying = walker.batches.index(min(walker.batches))
    assert all(batch == 4 for batch in walker.batches[: emptying - 4])


def test_a_trajectory_records_what_was_sampled_and_how_it_ended() -> None:
    walker = Walker()
    (trajectory,) = Collector(SyncVectorEnv(Countdowner), walker, 1).collect(requests(TASKS[1:2], 1, 3, "x"))
    (step,) = trajectory.steps
    assert (step.response_ids, step.logprobs, step.thought, step.action) == ((1,), (-0.5,), "hm", step.action)
    assert step.action in ("WALK", "JUMP")
    assert trajectory.outcome == ("won" if trajectory.won else "timeout")
    assert trajectory.first_observation == "1", "O_0 of a task of one step"


def test_who_played_and_in_which_run_is_recorded() -> None:
    wanted = requests(TASKS[:1], 1, 0, "trained", "run-2", policy="trained", run=2)
    (trajectory,) = Collector(SyncVectorEnv(Countdowner), Walker(), 1).collect(wanted)
    assert (trajectory.policy, trajectory.run, trajectory.group_id) == ("trained", 2, "trained/run-2/t9")


def test_seeds_differ_between_rollouts_steps_and_places() -> None:
    here, there = requests(TASKS, 4, 0, "train", 1), requests(TASKS, 4, 0, "train", 2)
    assert len({request.seed for request in here + there}) == 48
    assert requests(TASKS, 4, 0, "train", 1) == here


def test_requests_are_a_sequence_that_can_be_joined_and_cut() -> None:
    here, there = requests(TASKS, 4, 0, "train", 1), requests(TASKS[:2], 1, 0, "train", 2, first=7)
    whole = [*here, *there]
    joined = here + there
    assert list(joined) == whole and len(joined) == 26 and joined[-1] == whole[-1] == joined[25]
    assert joined[::-1] == whole[::-1] and joined[22:25] == whole[22:25]
    assert [request.rollout_index for request in there] == [7, 7]
    with pytest.raises(IndexError):
        joined[26]


def test_in_lock_step_a_real_policys_episodes_are_those_of_the_plain_loop_bit_for_bit(repository) -> None:
    """The same batches in the same order give the same log-probabilities to the last digit."""
    params = load_params(repository / "params.yaml", repository / "params" / "smoke.yaml")
    experiment = Experiment(params)
    policy, sampling = experiment.starting_policy(), experiment.training_sampling
    made = params.environment.checked_tasks(SplitSizes(8, 1, 1), 0)
    wanted = requests([task for task in made if task.split == "train"], 2, 0, "lock-step")

    def batches_of(play) -> tuple[list[Trajectory], list[tuple[Sequence[TokenIds], Sequence[int]]]]:
        engine, batches = experiment.engine(policy), []
        compute = engine.generate

        def generate(
            prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
        ) -> list[Completion]:
            batches.append((list(prompts), list(seeds)))
            return compute(prompts, sampling, seeds)

        engine.generate = generate
        return play(experiment.agent(policy, engine, sampling)), batches

    def collected(agent) -> list[Trajectory]:
        with Collector(experiment.collector(agent).environments, agent, 5) as collector:
            return collector.collect(wanted, 3)

    def in_rounds(agent) -> list[Trajectory]:
        return play_in_rounds(lambda: params.environment.make(), agent, wanted, 5, 3)

    (found, batches), (expected, batches_expected) = batches_of(collected), batches_of(in_rounds)
    assert batches == batches_expected and {len(prompts) for prompts, _ in batches} >= {5, 1}
    for trajectory in found:
        for step in trajectory.steps:
            assert step.weight_spans == (WeightSpan(0, 0, len(step.response_ids)),)
    bare = [replace(t, steps=tuple(replace(s, weight_spans=()) for s in t.steps)) for t in found]
    assert bare == expected and len({tuple(step.logprobs) for t in found for step in t.steps}) > 100


class Clock:
    """A clock that advances only when a test advances it."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("lockstep", [True, False])
def test_what_time_the_agent_had_something_to_decide_and_what_time_it_waited_is_told(
    lockstep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decisions of a round take 3 seconds together, and each start or step of an environment takes 1
    second."""
    clock = Clock()
    monkeypatch.setattr("skillpress.rollouts.collection.collector.time", clock)

    class Slow(Countdowner):
        def reset(self, task: Task) -> tuple[str, Info]:
            clock.now += 1
            return super().reset(task)

        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            clock.now += 1
            return super().step(action)

    class Thinking(Walker):
        def completed(self, wait: float) -> list[tuple[int, Decision]]:
            clock.now += 3
            return super().completed(wait)

    collector = Collector(SyncVectorEnv(Slow), agent := Thinking(lockstep), 3)
    trajectories = collector.collect(requests(TASKS, 2, 0, "test"))
    found = collector.statistics
    waited = len(trajectories) + sum(len(trajectory.steps) for trajectory in trajectories)
    assert found.agent_seconds == 3 * len(agent.batches)
    assert found.seconds == found.agent_seconds + waited


def test_statistics_are_added_and_subtracted_field_by_field() -> None:
    first, second = (collect(slots)[0].statistics for slots in (1, 4))
    both = first + second
    assert both.decisions == 2 * first.decisions and both.seconds == first.seconds + second.seconds
    assert (both - second).episodes == first.episodes


class Unruly(Walker):
    """Answers some or none of its requests at a time, in any order."""

    def __init__(self, random: Random) -> None:
        super().__init__(lockstep=False)
        self.random = random

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        self.random.shuffle(self.asked)
        count = self.random.randint(0, len(self.asked))
        answered, self.asked = self.asked[:count], self.asked[count:]
        return [(request.key, self.decision(request)) for request in answered]


class UnrulyEnv(SyncVectorEnv):
    """Environments that answer in the same way."""

    def __init__(self, random: Random) -> None:
        super().__init__(Countdowner)
        self.random = random

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        self.random.shuffle(self._answers)
        count = self.random.randint(0, len(self._answers))
        answered, self._answers = self._answers[:count], self._answers[count:]
        return answered


@given(st.integers(1, 20), st.integers(), st.booleans())
def test_whoever_answers_first_makes_no_difference(slots: int, seed: int, lockstep: bool) -> None:
    random = Random(seed)
    agent = Unruly(random)
    agent.lockstep = lockstep
    wanted = requests(TASKS, 3, 0, "test")
    order: list[int] = []
    collector = Collector(UnrulyEnv(random), agent, slots)
    found: dict[int, Trajectory] = {}

    def finished(number: int, trajectory: Trajectory) -> None:
        order.append(number)
        found[number] = trajectory

    collector.play(enumerate(wanted), finished, 5)
    expected = Collector(SyncVectorEnv(Countdowner), Walker(), 4).collect(wanted, 5)
    assert [found[number] for number in range(len(wanted))] == expected
    assert sorted(order) == list(range(len(wanted)))


class Holding(Walker):
    """Decides nothing for the first task until it is released."""

    released = False

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        held = [r for r in self.asked if not self.released and r.state.task == TASKS[0]]
        answered, self.asked = [r for r in self.asked if r not in held], held
        return [(request.key, self.decision(request)) for request in answered]


def test_episodes_go_on_while_one_waits_for_its_decision() -> None:
    agent, order = Holding(lockstep=False), []

    def finished(number: int, trajectory: Trajectory) -> None:
        order.append(number)
        agent.released = len(order) == 17

    Collector(SyncVectorEnv(Countdowner), agent, 2).play(
        enumerate(requests(TASKS[:1] + TASKS[1:] * 4, 1, 0, "x")[:18]), finished
    )
    assert order[-1] == 0 and len(order) == 18


@pytest.mark.parametrize("lockstep", [True, False])
def test_an_agent_that_decides_nothing_is_an_error_that_says_who_and_what_for(lockstep: bool) -> None:
    collector = Collector(SyncVectorEnv(Countdowner), agent := Holding(lockstep), 1, patience=0.0)
    with pytest.raises(
        UnansweredError, match=r"the Holding has decided nothing .* task t9 of walk in slot 0"
    ):
        collector.collect(requests(TASKS, 1, 0, "x"))
    assert not agent.asked, "what it was asked is aborted"


@pytest.mark.parametrize("lockstep", [True, False])
def test_what_is_under_way_at_an_interruption_is_forgotten_on_both_sides(lockstep: bool) -> None:
    random, wanted = Random(0), requests(TASKS, 3, 0, "test")
    environments, agent = UnrulyEnv(random), Unruly(random)
    agent.lockstep = lockstep
    collector = Collector(environments, agent, 6)
    whole = collector.collect(wanted)

    def interrupt(number: int, trajectory: Trajectory) -> None:
        raise KeyboardInterrupt

    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            collector.play(enumerate(wanted), interrupt)
        assert not agent.asked and not environments.completed(0.0)
        assert collector.collect(wanted) == whole


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_stopped_collector_forgets_what_is_under_way_and_plays_no_more(lockstep: bool) -> None:
    random, wanted = Random(0), requests(TASKS, 3, 0, "test")
    environments, agent, finished = UnrulyEnv(random), Unruly(random), []
    agent.lockstep = lockstep
    collector = Collector(environments, agent, 6)

    def stop(number: int, trajectory: Trajectory) -> None:
        finished.append(number)
        collector.stop()

    for _ in range(2):
        with pytest.raises(CollectionStoppedError):
            collector.play(enumerate(wanted), stop)
        assert not agent.asked and not environments.completed(0.0)
    assert 0 < len(finished) < len(wanted), "at its next turn, and then none"
