"""Whole episodes by agents with tokens: from an oracle to the random explorer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.interface import Agent
from skillpress.core.trajectory import Task, TokenIds, Trajectory, skill_sequence
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.section import SplitSizes, projection_without_keys
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, RandomExplorer, Window
from skillpress.rollouts.agents.parsing import plain
from skillpress.rollouts.agents.reward import WeightedMeasure
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests

REWARD = OutcomeReward(
    0.9,
    0.0,
    measures={
        "has_answer": WeightedMeasure(weight=0.1, credit="trajectory"),
        "executed": WeightedMeasure(weight=0.05, credit="step"),
    },
)


class Scripted(BatchEngine):
    """Answers each prompt from a script, by the prompt's beginning and the number of actions it shows."""

    promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=True)

    def __init__(self, policy: Policy, scripts: dict[str, list[str]]) -> None:
        super().__init__()
        self._policy, self._scripts = policy, scripts

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        found = []
        for prompt in prompts:
            text = self._policy.decode(prompt)
            (script,) = [words for asked, words in self._scripts.items() if text.startswith(asked)]
            (ids,) = self._policy.encode([f"{script[text.count(';')]} <end>"])
            found.append(Completion(ids, (0.0,) * len(ids), "stop"))
        return found

    def update_weights(self, weights: StateDict, version: int) -> None:
        raise AssertionError("nobody trains here")


@pytest.fixture(scope="module")
def tasks(parameters: NotebookQaParameters) -> list[Task]:
    return list(parameters.make_tasks(SplitSizes(3, 1, 2), 0))


def played(agent: Agent, tasks: Sequence[Task], section: NotebookQaParameters, each: int) -> list[Trajectory]:
    shared = section.make_shared(4)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, 4) as collector:
        return collector.collect(requests(tasks, each, 0, "test"))


def test_an_oracle_with_tokens_wins_every_episode(
    parameters: NotebookQaParameters, tasks: Sequence[Task]
) -> None:
    policy = build_scratch_policy(parameters.vocabulary(8), 16, 1, 2, 4, seed=0)
    rendering, oracle = parameters.rendering("compact", 8), parameters.make_oracle()
    engine = Scripted(policy, {"ask": oracle(tasks[0], 0.0, 0)})
    agent = LanguageAgent(
        prompter=Prompter(rendering, policy.encode, 400, policy.extend),
        parse=plain,
        state_update=Window(8),
        reward=REWARD,
        decode=policy.decode,
        engine=engine,
        sampling=Sampling(max_new_tokens=4),
    )
    found = played(agent, tasks[:1], parameters, 6)
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
