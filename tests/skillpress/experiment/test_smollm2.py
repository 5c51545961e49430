"""A real pretrained language model in all parts: sampling, acting, learning.

SmolLM2-135M-Instruct plays Countdown by text (chat template, <think>/<action>) and is updated by DeepSpeed. A
CPU trains it at about a hundred tokens per second, so this shows that training runs, not that the model
learns.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy import Policy, load_policy, save_policy
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.agents import LanguageAgent
from skillpress.rollouts.collection import requests
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.algorithm import token_weights
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.measured import mean_metrics
from skillpress.training.loop.model_pass import sampled_steps
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from skillpress.training.loop.reference import Reference
from tests.support.programs import PROGRAMS, importing
from tests.support.training.batches import clipped

ROOT = Path(__file__).parents[3]
OVERLAY = """
processes: 1
environment: {max_steps: 3}
algorithm: {kl_coefficient: 0.01}
policy: {model: smollm2-135m, rendering: text, history: 2}
imitation: {demonstrations: 0}
sampling: {max_new_tokens: 12, slots: 8}
training: {steps: 2, tasks_per_step: 1, rollouts_per_task: 2, minibatches: 1,
           learning_rate: 0.0001, microbatch_tokens: 1024, checkpoint_every: 5}
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("smollm2")
    (path / "overlay.yaml").write_text(OVERLAY)
    return path


@pytest.fixture(scope="module")
def params(folder: Path) -> Params:
    return load_params(ROOT / "params.yaml", folder / "overlay.yaml")


@pytest.fixture(scope="module")
def policy(params: Params, folder: Path) -> Policy:
    """The package's weights, saved to and loaded from our own model folder."""
    save_policy(Experiment(params).starting_policy(), folder / "start")
    return load_policy(folder / "start")


@pytest.fixture(scope="module")
def tasks(params: Params, folder: Path) -> list[Task]:
    made = list(params.environment.checked_tasks(SplitSizes(4, 1, 1), params.seed))
    splits = {split: [t for t in made if t.split == split] for split in ("train", "validation")}
    for split, those in splits.items():
        write_tasks(folder / f"{split}.parquet", those)
    return splits["train"]


def acting(params: Params, policy: Policy) -> LanguageAgent:
    experiment = Experiment(params)
    return experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)


def test_it_is_the_real_model_and_continues_text_sensibly(policy: Policy) -> None:
    assert 130e6 < policy.parameters < 140e6
    (prompt,) = policy.encode(["What is the capital of France? Answer in one word."])
    output = policy.model.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)
    assert "Paris" in policy.decode(tuple(output[0, len(prompt) :].tolist()))


def test_it_acts_and_its_steps_keep_the_tokens_and_their_probabilities(
    params: Params, policy: Policy, tasks: list[Task]
) -> None:
    agent = acting(params, policy)
    trajectories = Experiment(params).collector(agent).collect(requests(tasks[:1], 2, params.seed, "test"))
    for step in (step for trajectory in trajectories for step in trajectory.steps):
        with torch.no_grad():
            logprobs, _ = ResponseScorer(policy.model)(
                pack_responses([(step.prompt_ids, step.response_ids)]), 1.0
            )
        np.testing.assert_allclose(logprobs.numpy(), step.logprobs, atol=2e-3)


@pytest.mark.thorough  # small models are updated in every suite; here it is the size that counts
@pytest.mark.parametrize("trained", ["all weights", "low-rank changes"])
def test_an_update_makes_the_better_of_two_rollouts_likelier(
    trained: str, params: Params, policy: Policy, tasks: list[Task], folder: Path
) -> None:
    agent = acting(params, policy)
    pair = Experiment(params).collector(agent).collect(requests(tasks[:1], 2, params.seed, "pair"))
    judged = np.repeat([1.0, -1.0], [len(trajectory.steps) for trajectory in pair])
    samples = Batch.of_steps(sampled_steps(pair), judged)
    lengths = samples.tokens
    weights = token_weights(lengths, "token_mean", float(lengths.sum()), float(len(samples)))
    join_ranks(Ranks(), free_port())
    model = load_policy(folder / "start").model
    adapter = LoraAdapter(model, 8, 16, seed=0) if trained == "low-rank changes" else None
    parts = [PolicyLoss(clipped(0.2, 0.2, 0.01)), Reference(model, adapter)]
    learner = Learner(model, parts, AdamW(1e-5), Passing(1.0, 1024), Ranks(), adapter)
    (samples,) = learner.prepare([replace(samples, weights=weights)])
    first, second = (mean_metrics([learner.update(samples)]) for _ in range(2))
    assert second["loss"] < first["loss"]
    assert first["reference_kl"] < second["reference_kl"]


@pytest.mark.thorough
def test_the_training_loop_runs_with_a_kl_term(policy: Policy, tasks: list[Task], folder: Path) -> None:
    """The model is not trained for this task, so all rollouts may fail; the test above covers learning."""
    program = PROGRAMS / "training_program.py"
    command = [sys.executable, str(program), str(folder), "trained"]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=540, env=importing()
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "curve 1 2" in finished.stdout.splitlines()
    trained = load_policy(folder / "trained").model.state_dict()
    assert all(bool(torch.isfinite(value).all()) for value in trained.values())
