"""Decisions that an agent makes for itself are played, recorded, stored and trained like its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from skillpress.core.errors import StorageError
from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import (
    iterate_rollouts,
    read_rollouts,
    rollout_frame,
    scan_rollouts,
    write_rollouts,
)
from skillpress.core.tables import write_table
from skillpress.core.trajectory import Trajectory
from skillpress.environments.section import SplitSizes
from skillpress.evaluation.statistics import evaluation_steps
from skillpress.evaluation.statistics.episodes import episode_table
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import pack_responses
from skillpress.rollouts.agents.summarize import Summarize
from skillpress.rollouts.collection import Collector, EpisodeLog, SyncVectorEnv, requests, write_in_order
from skillpress.training.algorithms.batch import batch_of
from skillpress.training.loop.model_pass import sampled_steps
from tests.support.rollouts.walking import TASKS, Countdowner, Walker

WANTED = requests(TASKS, 3, 0, "test")


@dataclass
class Summarizer(Walker):
    """Walks, and summarizes every two turns."""

    update: Summarize = field(default_factory=lambda: Summarize(2))

    def decision(self, request: DecisionRequest) -> Decision:
        decided = super().decision(request)
        if not self.update.due(request.state):
            return decided
        return replace(decided, parsed=ParsedAction(f"notes {request.seed % 10}", ""), kind="summary")

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        if decision.kind == "summary":
            assert (observation, info) == (state.observation, state.info), "nothing has happened"
            return self.update.summed_up(state, decision.parsed)
        parsed = decision.parsed
        return self.update(state, parsed.thought, parsed.action, observation, info)


def collect(slots: int, lockstep: bool) -> tuple[Collector, list[Trajectory]]:
    collector = Collector(SyncVectorEnv(Countdowner), Summarizer(lockstep), slots)
    return collector, collector.collect(WANTED)


PLAYED = collect(4, True)[1]


@pytest.mark.parametrize("lockstep", [True, False])
@pytest.mark.parametrize("slots", [1, 4, 100])
def test_trajectories_with_summaries_depend_on_nobody_else(slots: int, lockstep: bool) -> None:
    collector, found = collect(slots, lockstep)
    assert found == PLAYED
    steps, summaries = sum(len(t.steps) for t in found), sum(len(t.summaries) for t in found)
    assert collector.statistics.environment_steps == steps
    assert collector.statistics.decisions == steps + summaries and summaries > 10


def test_a_summary_costs_no_step_of_the_episode_and_stands_before_the_step_that_goes_on_from_it() -> None:
    longest = max(PLAYED, key=lambda trajectory: len(trajectory.steps))
    assert len(longest.steps) == TASKS[0].spec["length"]  # T, however often it summarized
    assert [summary.before for summary in longest.summaries] == [2, 4, 6, 8]
    assert [len(decision.action) > 0 for decision in longest.decisions] == [1, 1, 0] * 4 + [1]
    assert len({step.prompt_ids for step in longest.decisions}) > 5, "each decision has a seed of its own"
    assert all(summary.decision.thought.startswith("notes") for summary in longest.summaries)
    assert all(summary.decision.observation == "" for summary in longest.summaries)


def test_they_come_back_from_disk_and_no_table_of_steps_sees_them(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "r.parquet", PLAYED)
    assert read_rollouts(tmp_path / "r.parquet") == PLAYED
    bare = [replace(trajectory, summaries=()) for trajectory in PLAYED]
    with_summaries, without = (
        episode_table(evaluation_steps(rows))
        for rows in (scan_rollouts(tmp_path / "r.parquet"), rollout_frame(bare))
    )
    assert with_summaries.equals(without)
    read = list(iterate_rollouts(tmp_path / "r.parquet", tokens=False))
    assert [len(trajectory.summaries) for trajectory in read] == [len(t.summaries) for t in PLAYED]


def test_a_step_that_is_missing_beside_a_summary_is_an_error(tmp_path: Path) -> None:
    frame = rollout_frame([max(PLAYED, key=lambda trajectory: len(trajectory.steps))])
    write_table(tmp_path / "r.parquet", frame.filter(pl.col("step") != 2), "rollouts")
    with pytest.raises(StorageError, match="are not its steps from 0 on"):
        read_rollouts(tmp_path / "r.parquet")


def test_a_collection_that_is_interrupted_loses_none_of_them(tmp_path: Path) -> None:
    played = 0

    def count() -> None:
        nonlocal played
        played += 1
        if played == 7:
            raise KeyboardInterrupt

    for _ in range(2):
        collector = Collector(SyncVectorEnv(Countdowner), Summarizer(), 4)
        with pytest.MonkeyPatch.context(), EpisodeLog(ResumeStore(tmp_path, "key")) as log:
            try:
                log.play(collector, enumerate(WANTED), 0, count)
            except KeyboardInterrupt:
                log.save()
            log.save()
    write_in_order(tmp_path / "all", [ResumeStore(tmp_path, "key")], len(WANTED), tmp_path / "scratch")
    assert read_rollouts(tmp_path / "all") == PLAYED


def test_training_learns_from_them_and_shaping_does_not_count_them() -> None:
    batch = batch_of(PLAYED, [0] * len(PLAYED), 10.0, 4)
    decisions = [len(trajectory.decisions) for trajectory in PLAYED]
    assert batch.length.tolist() == decisions and len(batch.tokens) == sum(decisions)
    np.testing.assert_array_equal(batch.returns, [10.0 * trajectory.won for trajectory in PLAYED])
    assert sampled_steps(PLAYED) == [step for trajectory in PLAYED for step in trajectory.decisions]
    assert [len(trajectory.actions) for trajectory in PLAYED] == [len(t.steps) for t in PLAYED]


@dataclass(frozen=True)
class Wordless(Summarize):
    """For a policy without words to be asked with: any text that it writes is a summary."""

    request = ""


def test_a_real_policys_summaries_are_recorded_as_they_were_sampled(repository: Path) -> None:
    """The model's own scores of every decision, including summaries, are the recorded log-probabilities."""
    params = load_params(repository / "params.yaml", repository / "params" / "smoke.yaml")
    experiment = Experiment(params)
    policy, sampling = experiment.starting_policy(), experiment.training_sampling
    tasks = list(params.environment.checked_tasks(SplitSizes(4, 1, 1), 0))[:4]
    agent = experiment.agent(policy, experiment.engine(policy), sampling)
    agent.state_update = Wordless(2)
    with Collector(experiment.collector(agent).environments, agent, 3) as collector:
        played = collector.collect(requests(tasks, 2, 0, "summaries"))
    asked = [summary.decision for trajectory in played for summary in trajectory.summaries]
    assert len(asked) > 10 and all(each.response_ids and each.thought for each in asked)
    assert _scores(policy.model, played, sampling.temperature) < 1e-4


def _scores(model: torch.nn.Module, played: Sequence[Trajectory], temperature: float) -> float:
    """The largest difference between a model's log-probabilities of all decisions and those recorded."""
    steps = sampled_steps(played)
    with torch.no_grad():
        found, _ = choose_scorer(model)(
            pack_responses([(step.prompt_ids, step.response_ids) for step in steps]), temperature
        )
    recorded = torch.tensor([logprob for step in steps for logprob in step.logprobs])
    return float((found - recorded).abs().max())
