"""Whole episodes by agents with tokens: from an oracle to the random explorer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.interface import Agent
from skillpress.core.trajectory import Task, Trajectory, skill_sequence
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.section import SplitSizes, projection_without_keys
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, RandomExplorer, Window
from skillpress.rollouts.agents.parsing import plain
from skillpress.rollouts.agents.reward import WeightedMeasure
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from tests.support.rollouts.rote import RoteEngine

REWARD = OutcomeReward(
    0.9,
    0.0,
    measures={
        "has_answer": WeightedMeasure(weight=0.1, credit="trajectory"),
        "executed": WeightedMeasure(weight=0.05, credit="step"),
    },
)


@pytest.fixture(scope="module")
def tasks(parameters: NotebookQaParameters) -> list[Task]:
    return list(parameters.make_tasks(SplitSizes(3, 1, 2), 0))


def played(
    agent: Agent, tasks: Sequence[Task], section: NotebookQaParameters, each: int, slots: int = 4
) -> list[Trajectory]:
    shared = section.make_shared(slots)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, slots) as collector:
        return collector.collect(requests(tasks, each, 0, "test"))


def test_an_oracle_with_tokens_wins_every_episode(
    parameters: NotebookQaParameters, tasks: Sequence[Task]
) -> None:
    policy = build_scratch_policy(parameters.vocabulary(8), 16, 1, 2, 4, seed=0)
    rendering, oracle = parameters.rendering("compact", 8), parameters.make_oracle()
    script = oracle(tasks[0], 0.0, 0)
    agent = LanguageAgent(
        prompter=Prompter(rendering, policy.encode, 400, policy.extend),
        parse=plain,
        state_update=Window(8),
        reward=REWARD,
        decode=policy.decode,
        engine=RoteEngine(script * 6, lambda said: policy.encode([f"{said} <end>"])[0], policy.decode),
        sampling=Sampling(max_new_tokens=4),
    )
    found = played(agent, tasks[:1], parameters, 6, slots=1)
    assert [trajectory.outcome for trajectory in found] == ["won"] * 6
    for trajectory in found:
        assert trajectory.total_reward == pytest.approx(1.0 + 0.05 * len(trajectory.steps))
    skills = skill_sequence(projection_without_keys("notebook_qa"), tasks[0], found[0])
    assert skills[-1] == "Answer" and {"Search", "Read", "Note"} <= set(skills)
    assert all(step.prompt_ids and step.response_ids for step in found[0].steps)


def test_a_random_explorer_hardly_ever_wins(parameters: NotebookQaParameters, tasks: Sequence[Task]) -> None:
    explorer = RandomExplorer(parameters.explorer_actions, REWARD)
    found = played(explorer, tasks, parameters, 4)
    assert sum(trajectory.won for trajectory in found) <= 3
    assert {trajectory.outcome for trajectory in found} <= {"won", "wrong_answer", "timeout"}
