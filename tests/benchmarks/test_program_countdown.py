"""Countdown as a program of 30 lines: its prompts, its log-probabilities and its weights are the built-in
agent's."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from benchmarks.lag import changed
from benchmarks.program_countdown.__main__ import AGAIN, compared, spoken, trained, weights
from benchmarks.program_countdown.agent import LARGEST, OPERATIONS, STEPS, operated
from benchmarks.program_countdown.same import compare_calls
from benchmarks.program_countdown.setting import BUILT_IN, PROGRAM, SAME_DRAWS, arm, prepare, tasks_of
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory
from skillpress.environments.countdown.actions import action_words, read_operation
from skillpress.environments.countdown.rules import Operation, carry_out
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy import Policy, load_policy
from skillpress.rollouts.collection import requests

ROOT = Path(__file__).parents[2]
PARAMS = changed(
    load_params(ROOT / "params.yaml", ROOT / "params" / "smoke.yaml"),
    environment={"max_steps": STEPS},
    tasks={"train": 16, "test": 12},
    imitation={"demonstrations": 1500, "detour_rate": 0.4},
    training={"steps": 2},
    evaluation={"runs": 1},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks, and a start that has imitated a little."""
    made = tmp_path_factory.mktemp("countdown") / "seed-0"
    prepare(PARAMS, made)
    return made


def played(folder: Path, name: str) -> tuple[Params, Policy, list[Trajectory]]:
    """The test tasks' episodes, four of each, by the start."""
    params, policy = arm(PARAMS, folder, name), load_policy(folder / "start")
    experiment = Experiment(params)
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    wanted = requests(read_tasks(tasks_of(folder, name, "test")), 4, params.seed, "test")
    with experiment.collector(agent) as collector:
        return params, policy, collector.collect(wanted)


def test_the_program_operates_as_the_built_in_game() -> None:
    for pool in combinations_with_replacement((0, 1, 2, 3, 6, 7, 100, 999), 3):
        for word in OPERATIONS:
            operation = read_operation(word, pool)
            expected = carry_out(pool, operation, LARGEST) if isinstance(operation, Operation) else operation
            found = operated(list(pool), word)
            assert (None if isinstance(expected, str) else list(expected)) == found, (pool, word)
    assert {*OPERATIONS, "rollback", "reset"} == set(action_words(4))


@pytest.mark.heavy
def test_every_prompt_is_the_built_in_agents_and_every_log_probability_the_scorers(folder: Path) -> None:
    """The built-in agent with the program's draws also plays the same episodes."""
    _, policy, program = played(folder, PROGRAM)
    params, _, built_in = played(folder, SAME_DRAWS)
    tasks = read_tasks(tasks_of(folder, BUILT_IN, "test"))
    found = compare_calls(params, policy, tasks, program)
    assert found["other_prompts"] == 0 and found["largest_difference"] < 1e-5
    assert found["calls"] > 200
    assert [spoken(each) for each in program] == [spoken(each) for each in built_in]
    assert [logprobs(each) for each in program] == [logprobs(each) for each in built_in]
    assert [[step.skills for step in each.steps] for each in program] == [
        [step.skills for step in each.steps] for each in built_in
    ]
    assert sum(map(reward, program)) == pytest.approx(sum(map(reward, built_in)))
    said = {skill for each in program for step in each.steps for skill in step.skills or ()}
    assert {"rollback", "reset"} < said, "what is undone is part of what is compared"
    assert any(each.won for each in program) and any(step.invalid for e in built_in for step in e.steps)


@pytest.mark.slow
def test_a_program_trains_to_the_same_weights_again_and_to_those_of_the_built_in_agent(folder: Path) -> None:
    """One process plays in lock-step. The built-in agent with its own draws gets other weights."""
    found = {
        name: trained(PARAMS, folder, name)["weights"] for name in (PROGRAM, AGAIN, SAME_DRAWS, BUILT_IN)
    }
    assert found[PROGRAM] == found[AGAIN] == found[SAME_DRAWS]
    assert found[PROGRAM] not in (found[BUILT_IN], weights(folder / "start"))
    after = compared(PARAMS, folder)
    assert after["episodes"] == 12 and after["other_episodes"] == after["other_prompts"] == 0


def logprobs(episode: Trajectory) -> list[list[float]]:
    """The log-probabilities of its tokens, step by step."""
    return [[*step.logprobs] for step in episode.steps]


def reward(episode: Trajectory) -> float:
    """The sum of its steps' rewards."""
    return sum(step.reward for step in episode.steps)
