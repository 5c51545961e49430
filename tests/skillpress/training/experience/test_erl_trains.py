"""Small trainings with second attempts: their episodes, their lessons, and that they are reproducible."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
import yaml
from safetensors.torch import load_file

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import TokenIds, Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.training_job import experience
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.policy import load_policy
from skillpress.rollouts.agents import LanguageAgent
from skillpress.rollouts.collection import Collector, requests
from skillpress.training.loop.describing.episode_sample import sampled_steps
from tests.support.experiment.small_training import StoppedError, prepared, train_small
from tests.support.programs.training_program import parameters

SMALL = {
    "processes": 1,
    "training": {"steps": 3, "learning_rate": 0.003, "checkpoint_every": 2},
    "environment": {"max_steps": 6, "max_numbers": 3},
    "policy": {"knowledge_words": 4},
    "experience": {"name": "erl", "distill": 0.5, "kl": 0.5, "retries": 4, "reflection": "own"},
}


folder = prepared(SMALL, demonstrations=2500)


@pytest.fixture(scope="module")
def whole(folder: Path) -> list[dict[str, float]]:
    return trained(folder, "whole")


def trained(folder: Path, name: str, **changes: dict) -> list[dict[str, float]]:
    return train_small(folder, name, SMALL, changes)


def same(folder: Path, first: str, second: str) -> bool:
    weights = [load_file(folder / name / "model.safetensors") for name in (first, second)]
    return all(bool((weights[0][name] == weights[1][name]).all()) for name in weights[0])


def test_every_failure_is_tried_again_and_second_successes_are_learned(
    folder: Path, whole: list[dict[str, float]]
) -> None:
    assert all(math.isfinite(value) for row in whole for value in row.values())
    for row in whole:
        assert row["experience/attempts"] == 16 * (1 - row["success"]), "4 groups of 4 first attempts"
    taught = [row for row in whole if row["experience/pairs"]]
    assert taught, "without a second success nothing of this is tried"
    for row in taught:
        assert row["experience/tokens"] >= row["experience/pairs"]
        assert row["experience/nll"] > 0 and row["experience/kl"] >= 0
        assert row["experience/success"] == pytest.approx(
            row["experience/pairs"] / row["experience/attempts"]
        )


def test_the_same_seed_gives_the_same_weights_and_without_lessons_others_come_out(
    folder: Path, whole: list[dict[str, float]]
) -> None:
    again = trained(folder, "again")
    assert same(folder, "whole", "again")
    assert [row["experience/pairs"] for row in again] == [row["experience/pairs"] for row in whole]
    bare = trained(folder, "bare", experience={"distill": 0.0, "kl": 1e-12})
    assert bare[0]["success"] == whole[0]["success"], "the first attempts are the same"
    assert not same(folder, "whole", "bare")


def test_a_training_that_is_stopped_goes_on_bit_for_bit(folder: Path, whole: list[dict[str, float]]) -> None:
    with pytest.raises(StoppedError):
        train_small(folder, "stopped", SMALL, stop_after=3)
    curve = trained(folder, "stopped")
    assert [row["step"] for row in curve] == [1, 2, 3] and same(folder, "whole", "stopped")


def test_people_can_read_the_second_attempts_beside_the_first(
    folder: Path, whole: list[dict[str, float]]
) -> None:
    played = read_rollouts(folder / "training-whole.parquet")
    second = [each for each in played if each.group_id.endswith("/second")]
    first = {(each.group_id, each.rollout_index): each for each in played if each not in second}
    assert second and sampled_steps(3) == [1, 2, 3]
    policy = load_policy(folder / "start")
    for each in second:
        failed = first[each.group_id.removesuffix("/second"), each.rollout_index]
        assert not failed.won and failed.task_id == each.task_id and failed.first_observation
        tried = " ".join(policy.decode(step.response_ids) for step in failed.steps).split()[-4:]
        for step in each.steps:
            assert policy.decode(step.prompt_ids).split()[: len(tried)] == tried
    lessons = pl.read_parquet(folder / "advantages-whole.parquet")
    assert not lessons.filter(pl.col("group_id").str.ends_with("/second"))["selected"].any()


class Repeating(BatchEngine):
    """Gives the responses of one episode, one after another, and records the prompts."""

    promises = Promises(exact_seeds=False, exact_logprobs=False, lockstep=True)

    def __init__(self, episode: Trajectory) -> None:
        super().__init__()
        self._responses = [step.response_ids for step in episode.decisions]
        self.prompts: list[TokenIds] = []

    def generate(
        self,
        prompts: list[TokenIds],
        sampling: Sampling,
        seeds: list[int],  # type: ignore[override]
    ) -> list[Completion]:
        self.prompts += prompts
        response = self._responses.pop(0)
        return [Completion(response, (-1.0,) * len(response), "stop")]

    def update_weights(self, weights: StateDict, version: int) -> None:
        raise AssertionError("no training runs here")


@pytest.mark.parametrize("update", ["window", "concatenate"])
def test_plain_prompts_are_those_that_the_policy_sees_without_a_reflection(folder: Path, update: str) -> None:
    """An agent without knowledge plays the second attempts' responses once more."""
    (folder / "overlay.yaml").write_text(yaml.safe_dump(SMALL))
    params = parameters(folder, smoke=True)
    params = params.model_copy(update={"policy": params.policy.model_copy(update={"state_update": update})})
    experiment = Experiment(params)
    policy, tasks = experiment.starting_policy(), read_tasks(folder / "train.parquet")[:4]
    method = experience(params, policy)
    assert method is not None
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    with experiment.collector(agent) as collector:
        failed = collector.collect(requests(tasks, 1, 0, "train", 1))
        wanted = method.attempts(tasks, failed)
        second = collector.collect(wanted)
    assert len(second) >= 3, "a policy made from nothing fails"
    for request, episode in zip(wanted, second, strict=True):
        engine = Repeating(episode)
        bare = experiment.agent(policy, engine, experiment.training_sampling)  # type: ignore[arg-type]
        assert isinstance(bare, LanguageAgent)
        with experiment.collector(bare) as collector:
            assert isinstance(collector, Collector)
            collector.collect([type(request)(request.task, "g", 0, 0)])
        assert [step.plain_prompt_ids for step in episode.steps] == engine.prompts
        assert all(step.prompt_ids != step.plain_prompt_ids for step in episode.steps)


@pytest.mark.thorough
def test_two_processes_try_every_failure_again_too_and_the_control_trains(
    folder: Path, whole: list[dict[str, float]]
) -> None:
    control = {"processes": 2, "experience": {"reflection": "random", "retries": 2}}
    for name in ("two", "two-again"):
        curve = train_small(folder, name, SMALL, control)
        assert all(0 < row["experience/attempts"] <= 2 * 4 for row in curve)
        assert all(math.isfinite(value) for row in curve for value in row.values())
    assert same(folder, "two", "two-again") and not same(folder, "two", "whole")
