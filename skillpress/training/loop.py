"""A whole training run: from a start policy and tasks to a trained policy, surviving kill -9.

One process trains in place; several are spawned with one rank each and talk through DeepSpeed's
collectives, rank 0 reporting. A checkpoint is written every few steps, and beside it the policy of
the peak where that one is to be kept; the caller has both forgotten (:func:`forget_checkpoints`) once
all that came out of the run is safely on the disk.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from queue import Empty

import torch
from torch.multiprocessing.spawn import start_processes

from skillpress.assembly import (
    collector_of,
    engine_of,
    environment_of,
    language_agent,
    training_sampling,
)
from skillpress.evaluation.weights import VALIDATION, kept
from skillpress.params import Params
from skillpress.policy import Policy, load_policy, save_policy
from skillpress.skills import SuccessBuffer
from skillpress.skills.drift import read_history, write_history
from skillpress.training.checkpoint import Checkpoints, TrainingState
from skillpress.training.distributed import Ranks, free_port, join_ranks
from skillpress.training.grpo import GRPO
from skillpress.training.learner import Learner
from skillpress.training.losses import ClippedSurrogate
from skillpress.training.selection import copy_policy, validate
from skillpress.training.shaping import RewardShaper
from skillpress.trajectory import read_tasks
from skillpress.unfinished import experiment_key

HISTORY = "dictionaries.json"
"""The history's file in a checkpoint's folder."""

OnStep = Callable[[int, dict[str, float]], None]
"""Told (step, metrics) after every training step; of a resumed run, only the steps still to do."""


@dataclass(frozen=True)
class TrainingJob:
    """What to train on and where everything lies."""

    params: Params
    tasks: Path
    """The training tasks."""
    validation: Path
    """The tasks by which a peak is found; played where ``training.keep`` is ``peak``."""
    start: Path
    """The model folder to start from."""
    output: Path
    """The trained model's folder."""
    history: Path
    """The file for the dictionaries of all steps."""
    checkpoints: Path
    """Where unfinished runs keep their checkpoints."""

    def key(self) -> str:
        """What the result depends on, as a hash."""
        return experiment_key(self.params.model_dump(mode="json"), [self.tasks, self.validation, self.start])


def train(job: TrainingJob, on_step: OnStep = lambda step, metrics: None) -> list[dict[str, float]]:
    """Run the job to its end, from its last checkpoint if it has one.

    Returns:
        The training curve, one row of metrics per step, those before a resumption included.
    """
    processes = job.params.training.processes
    if processes == 1:
        return _train_rank(Ranks(), free_port(), job, on_step)
    return _train_spawned(processes, job, on_step)


def forget_checkpoints(job: TrainingJob) -> None:
    """Remove what an interrupted run would go on from."""
    Checkpoints(job.checkpoints, job.key()).forget()


def _train_rank(ranks: Ranks, port: int, job: TrainingJob, on_step: OnStep) -> list[dict[str, float]]:
    params, section = job.params, job.params.training
    # DeepSpeed 0.19 calls collectives by names that torch 2.13 has renamed.
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
    join_ranks(ranks, port)
    policy = load_policy(job.start, params.policy.dtype)
    torch.nn.Module.to(policy.model, ranks.device)
    engine = engine_of(params, policy)
    learner = Learner(
        policy.model,
        ClippedSurrogate(section.clip, section.kl_coefficient),
        section.deepspeed,
        section.learning_rate,
        params.sampling.temperature,
        section.microbatch_tokens,
        ranks,
    )
    shaper = RewardShaper(
        environment_of(params).projection, params.skills, params.reward, params.environment.max_steps, ranks,
        params.seed,
    )  # fmt: skip
    agent = language_agent(params, policy, engine, training_sampling(params))
    checkpoints = Checkpoints(job.checkpoints, job.key())
    validation = read_tasks(job.validation)
    with collector_of(params, agent, sharing=ranks.size) as collector:
        grpo = GRPO(section, params.seed, read_tasks(job.tasks), collector, engine, learner, shaper, ranks)
        curve = _resume(grpo, checkpoints)
        for step in range(len(curve) + 1, section.steps + 1):
            metrics = grpo.step(step)
            due = step % section.checkpoint_every == 0
            if section.keep == "peak" and (due or step == section.steps):
                metrics[VALIDATION] = validate(collector, validation, params.seed, step, ranks)
            curve.append({"step": float(step), **metrics})
            if ranks.rank == 0:
                on_step(step, metrics)
            if VALIDATION in metrics and kept("peak", curve).step == step:
                _save_policy(policy, learner, checkpoints.peak, ranks)
            if due and step < section.steps:
                _save(grpo, checkpoints, step, curve)
    if ranks.rank == 0:
        write_history(job.history, grpo.history)
    if section.keep == "last" or not curve:
        _save_policy(policy, learner, job.output, ranks)
    elif ranks.rank == 0:
        copy_policy(checkpoints.peak, job.output)
    ranks.barrier()
    return curve


def _resume(grpo: GRPO, checkpoints: Checkpoints) -> list[dict[str, float]]:
    """Load the last checkpoint, if any; returns the curve so far."""
    found = checkpoints.latest()
    if found is None:
        return []
    state, folder = found
    grpo.learner.load(folder)
    grpo.engine.update_weights(grpo.learner.weights(), state.step)
    grpo.shaper.buffer = SuccessBuffer(grpo.shaper.buffer.capacity, state.buffer)
    grpo.history = read_history(folder / HISTORY)
    return state.curve


def _save(grpo: GRPO, checkpoints: Checkpoints, step: int, curve: list[dict[str, float]]) -> None:
    if grpo.ranks.rank == 0:
        checkpoints.prepare(step)
    grpo.ranks.barrier()
    grpo.learner.save(checkpoints.step_folder(step))
    grpo.ranks.barrier()
    if grpo.ranks.rank == 0:
        write_history(checkpoints.step_folder(step) / HISTORY, grpo.history)
        checkpoints.commit(TrainingState(step, grpo.shaper.buffer.state(), curve))


def _save_policy(policy: Policy, learner: Learner, output: Path, ranks: Ranks) -> None:
    weights = learner.weights()  # of all ranks
    if ranks.rank == 0:
        save_policy(policy, output, weights)


def _train_spawned(processes: int, job: TrainingJob, on_step: OnStep) -> list[dict[str, float]]:
    """Spawn the ranks and pass on what rank 0 reports; an error in any rank ends all of them."""
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    spawned = start_processes(
        _spawned_rank,
        (processes, free_port(), job, reports),
        nprocs=processes,
        join=False,
        start_method="spawn",
    )
    curve: list[dict[str, float]] = []
    done = False
    while not done:
        done = spawned.join(timeout=0.05)
        while True:
            try:
                report = reports.get(timeout=0.05)
            except Empty:
                break
            if isinstance(report, list):
                curve = report
            else:
                on_step(*report)
    return curve


def _spawned_rank(rank: int, size: int, port: int, job: TrainingJob, reports: SimpleQueue) -> None:  # type: ignore[type-arg]
    torch.set_num_threads(1)
    curve = _train_rank(Ranks(rank, size), port, job, lambda step, metrics: reports.put((step, metrics)))
    if rank == 0:
        reports.put(curve)
