"""A learned memory in training: advantages reach it, and a killed run resumes and ends with the same
weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.training import train
from skillpress.models.policy import Policy, load_policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.collection import requests
from skillpress.rollouts.workers.distributed import Ranks, free_port, join_ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.learner import Learner, Passing
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.policy_loss import PolicyLoss
from tests.support.experiment.small_training import prepared
from tests.support.programs import PROGRAMS, importing
from tests.support.programs.training_program import job, parameters
from tests.support.training.batches import clipped

OVERLAY = """
environment: {max_steps: 8, max_numbers: 3}
policy: {state_update: learned, memory: {length: 2, alphabet: 4}, history: 0}
training: {steps: 2, learning_rate: 0.003}
"""


folder = prepared(OVERLAY, demonstrations=3000)


def played(folder: Path, policy: Policy) -> list[Trajectory]:
    experiment = Experiment(parameters(folder, smoke=True))
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    with experiment.collector(agent) as collector:
        return collector.collect(requests(read_tasks(folder / "train.parquet")[:8], 2, 0, "test"))


def test_what_a_policy_writes_stands_in_its_next_prompt(folder: Path) -> None:
    policy, written = load_policy(folder / "start"), set()
    for episode in played(folder, policy):
        kept = ["m0", "m0"]
        for step in episode.steps:
            shown = policy.decode(step.prompt_ids).split()
            assert len(shown) == 1 + 3 + 2 and shown[-2:] == kept
            kept = [*kept, *step.thought.split()][-2:]
            written.add(tuple(kept))
    assert len(written) > 4


def test_an_advantage_moves_the_memory_that_was_written(folder: Path) -> None:
    """Words with a positive advantage become likelier and words with a negative one less likely, each in its
    own prompt."""
    policy = load_policy(folder / "start")
    steps = [step for episode in played(folder, policy) for step in episode.steps]
    step = next(step for step in steps if len(step.thought.split()) == 2 and not step.invalid)
    assert len(step.response_ids) == 3, "two words of memory and an action"

    def memory_logprob(policy: Policy) -> float:
        with torch.no_grad():
            logprobs, _ = ResponseScorer(policy.model)(
                pack_responses([(step.prompt_ids, step.response_ids)]), 1.0
            )
        return float(logprobs[:2].sum())

    before = memory_logprob(policy)
    assert before == pytest.approx(sum(step.logprobs[:2]), abs=1e-4)
    join_ranks(Ranks(), free_port())
    for judged in (1.0, -1.0):
        fresh = load_policy(folder / "start")
        parts = [PolicyLoss(clipped(0.2, 0.2, 0.0))]
        learner = Learner(fresh.model, parts, AdamW(1e-4), Passing(1.0, 1024), Ranks())
        learner.update(Batch.of_steps([step], advantages=np.array([judged]), weights=np.array([1 / 3])))
        assert np.sign(memory_logprob(fresh) - before) == judged


@pytest.mark.kills
@pytest.mark.thorough
def test_a_training_that_is_killed_ends_with_the_weights_of_an_undisturbed_one(folder: Path) -> None:
    rows = train(job(folder, "whole"))
    assert [int(row["step"]) for row in rows] == [1, 2] and rows[-1]["mismatch/largest"] < 1e-3
    program = [sys.executable, str(PROGRAMS / "training_program.py"), str(folder), "cut", "--smoke"]
    with subprocess.Popen(
        [*program, "--pause-after", "2"], stdout=subprocess.PIPE, text=True, env=importing()
    ) as first:
        assert first.stdout is not None
        for line in first.stdout:
            if line.startswith("step 2"):
                break
        first.kill()
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=importing())
    assert done.returncode == 0 and "step 1 " not in done.stdout, done.stderr[-2000:]
    whole, cut = (load_policy(folder / name).model.state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
