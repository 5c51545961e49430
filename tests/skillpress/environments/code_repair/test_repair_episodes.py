"""Whole episodes by agents with tokens: from the gold patcher, which always wins, to the random explorer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.errors import TaskError
from skillpress.core.interface import Agent, AgentState
from skillpress.core.trajectory import Task, Trajectory, skill_sequence
from skillpress.environments.code_repair.compact import longest
from skillpress.environments.code_repair.environment import CodeRepair
from skillpress.environments.code_repair.oracle import text_edits
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import Program
from skillpress.environments.section import SplitSizes
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, RandomExplorer, Window
from skillpress.rollouts.agents.parsing import plain
from skillpress.rollouts.agents.reward import WeightedMeasure
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from tests.support.rollouts.rote import RoteEngine

REWARD = OutcomeReward(1.0, 0.0, measures={"unsolved": WeightedMeasure(weight=-1.0, credit="trajectory")})
MAX_STEPS = 10


@pytest.fixture(scope="module")
def section(code_repair_data: Path) -> CodeRepairParameters:
    return CodeRepairParameters(
        name="code_repair",
        max_steps=MAX_STEPS,
        data=str(code_repair_data),
        test_seconds=0.5,
        episode_seconds=60.0,
        measure_edits=False,
    )


@pytest.fixture(scope="module")
def tasks(section: CodeRepairParameters) -> list[Task]:
    return list(section.make_tasks(SplitSizes(4, 0, 0), 0))


def played(
    agent: Agent, tasks: Sequence[Task], section: CodeRepairParameters, each: int, slots: int = 4
) -> list[Trajectory]:
    shared = section.make_shared(slots)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, slots) as collector:
        return collector.collect(requests(tasks, each, 0, "test"))


def test_the_gold_patcher_with_tokens_wins_every_episode(
    section: CodeRepairParameters, tasks: Sequence[Task]
) -> None:
    script = section.make_oracle()(tasks[0], 0.0, 0)
    policy = build_scratch_policy(section.vocabulary(3), 16, 1, 2, 4, seed=0)
    agent = LanguageAgent(
        prompter=Prompter(section.rendering("compact", 3), policy.encode, 400, policy.extend),
        parse=plain,
        state_update=Window(3),
        reward=REWARD,
        decode=policy.decode,
        engine=RoteEngine(script * 6, lambda said: policy.encode([f"{said} <end>"])[0], policy.decode),
        sampling=Sampling(max_new_tokens=4),
    )
    found = played(agent, tasks[:1], section, 6, slots=1)
    assert [trajectory.outcome for trajectory in found] == ["won"] * 6
    assert [trajectory.total_reward for trajectory in found] == [1.0] * 6
    skills = skill_sequence(section.make_projection(), tasks[0], found[0])
    skills = [skill for skill in skills if skill != "Inspect"]
    assert skills == ["Reproduce", "Edit", "Test", "Submit"]


def test_a_random_explorer_hardly_ever_wins(section: CodeRepairParameters, tasks: Sequence[Task]) -> None:
    found = played(RandomExplorer(section.explorer_actions, REWARD), tasks, section, 4)
    assert sum(trajectory.won for trajectory in found) <= 4
    assert {trajectory.outcome for trajectory in found} <= {"won", "failing", "timeout"}
    assert all(trajectory.total_reward == (1.0 if trajectory.won else -1.0) for trajectory in found)


def test_detours_are_told_from_the_repair_by_the_tests(
    section: CodeRepairParameters, tasks: Sequence[Task]
) -> None:
    oracle, environment = section.make_oracle(), CodeRepair(section)
    rendering = section.rendering("compact", 0)
    for seed, task in enumerate(tasks):
        straight, detour = (oracle(task, rate, seed) for rate in (0.0, 0.9))
        assert len(straight) <= len(detour) <= MAX_STEPS
        observation, info = environment.reset(task)
        for action in detour:
            prompt = rendering.prompt(AgentState(task=task, observation=observation, info=info))
            assert len(prompt.split()) <= longest(0)
            observation, _, _, info = environment.step(action)
            assert info.invalid is None
        assert info.won
    environment.close()


@pytest.mark.parametrize(
    "key", ["quixbugs/wrap", "quixbugs/flatten", "quixbugs/depth_first_search", "humanevalfix/2"]
)
def test_a_bug_that_no_listed_change_repairs_is_repaired_as_text(
    key: str, section: CodeRepairParameters, programs: dict[str, Program]
) -> None:
    environment = CodeRepair(section)
    task = Task(key, "code_repair", 0, {"program": key, "change": None})
    environment.reset(task)
    actions = section.make_oracle()(task, 0.0, 0)
    assert [json.loads(action)["tool"] for action in actions] == ["edit"] * len(text_edits(programs[key])) + [
        "submit"
    ]
    for action in actions:
        _, _, _, info = environment.step(action)
        assert info.invalid is None
    assert info.won
    environment.close()


def test_a_repair_that_takes_more_steps_than_there_are_is_no_demonstration(
    section: CodeRepairParameters, tasks: Sequence[Task]
) -> None:
    short = section.model_copy(update={"max_steps": 2})
    with pytest.raises(TaskError, match=r"its repair takes \d steps, but environment.max_steps is 2"):
        short.make_oracle()(tasks[0], 0.0, 0)
