"""Train and evaluate in a notebook, with the same parts that the stages of ``dvc.yaml`` run.

The same parameters and seed give the same weights and the same episodes as the stages. All files are in a
temporary folder that is removed with the returned object: nothing is written into a lab, and no run of MLflow
is recorded.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from skillpress.cli import layers
from skillpress.cli.parameter_options import named_layers
from skillpress.core.lab import lab_file, overlay
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import TAKEN, scan_rollouts
from skillpress.core.sequence_files import write_sequences
from skillpress.core.task_files import write_tasks
from skillpress.core.temporary import TemporaryFolder
from skillpress.core.trajectory import Task
from skillpress.evaluation.statistics import EvaluationSummary, evaluate, evaluation_steps
from skillpress.evaluation.statistics.unplayed import refuse_unread
from skillpress.experiment import imitation, training
from skillpress.experiment.collection import CollectionJob, play_episodes, play_of
from skillpress.experiment.kept_tasks import kept_tasks, read_pass_rates, write_pass_rates
from skillpress.experiment.layers import Layer
from skillpress.experiment.params import Params, check_params, merged, sources
from skillpress.experiment.start_job import start_job
from skillpress.experiment.start_rollouts import projected, start_successes
from skillpress.skills.start import write_start
from skillpress.training.loop.keeping.selected_checkpoint import select_checkpoint

if TYPE_CHECKING:
    from skillpress.models.policy import Policy

Player = Literal["explorer", "start", "trained"]
"""Who plays the test tasks: random actions, the policy before training, or the one after it."""


@dataclass(frozen=True)
class Trained:
    """A trained policy, with the tasks and metrics that show how good it is."""

    params: Params
    tasks: Mapping[str, list[Task]]
    """The tasks of each split."""
    steps: pl.DataFrame
    """One row of metrics per training step, as in ``results/training.csv`` of an experiment."""
    folder: Path
    """The temporary folder; it has the model folders ``start`` and ``policy``."""

    @cached_property
    def policy(self) -> Policy:
        """The policy after training; ``save_policy`` writes it to a permanent folder."""
        return self._load("policy")

    @cached_property
    def start(self) -> Policy:
        """The policy before training."""
        return self._load("start")

    def evaluate(self, player: Player = "trained") -> EvaluationSummary:
        """How good a player is on the test tasks, computed as in the stage ``evaluate_policy``.

        Raises:
            UserError: no answer of the trained policy could be read.
        """
        section, longest = self.params.evaluation, self.params.environment.max_steps
        rollouts = self.rollouts(player)
        if player == "trained":
            refuse_unread(rollouts, section.accept_unread)
        return evaluate(
            evaluation_steps(rollouts),
            self.tasks["test"],
            runs=section.runs,
            votes=section.votes,
            max_steps=longest,
        )

    def rollouts(self, player: Player = "trained") -> pl.LazyFrame:
        """The steps of a player's episodes on the test tasks: ``evaluation.votes`` episodes of each task in
        each of ``evaluation.runs`` runs. They are played only once.
        """
        output = self.folder / f"{player}.parquet"
        if not output.exists():
            models = {"explorer": None, "start": self.folder / "start", "trained": self.folder / "policy"}
            version = select_checkpoint(self.params.training.keep, self.steps.to_dicts()).step
            play = play_of(
                self.params, self.tasks["test"], player, models[player], version * (player == "trained")
            )
            store = ResumeStore(self.folder / "unfinished", player)
            with _as_a_stage():
                play_episodes(
                    CollectionJob(params=self.params, sampling="evaluation", plays=[play], store=store),
                    output,
                    lambda count: None,
                )
            store.clear()
        return scan_rollouts(output)

    def _load(self, name: str) -> Policy:
        from skillpress.models.policy import load_policy

        return load_policy(self.folder / name, self.params.policy.dtype)


def train(
    environment: str | Mapping[str, Any],
    *overlays: str | Path,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
    **sections: Any,
) -> Trained:
    """Make tasks, let a policy imitate demonstrations, and train it, as ``make run`` does, in this process.

    The parameters are those of params.yaml with ``processes: 1``, then the overlays (without any, the
    environment's own, as ``params/alfworld.yaml``), then the keywords:
    ``train("countdown", "params/smoke.yaml", seed=1, training={"steps": 8})``.

    Args:
        environment: its name, or a whole section with ``name``.
        overlays: files of parameters: of the working directory, the lab, or skillpress itself.
        on_step: receives (step, metrics) after every training step.
        sections: keys of params.yaml with their new values.

    Raises:
        ParamsError: a file, a key or a value is wrong.
        UserError: the layer ``train`` is not installed.
    """
    layers.need(["train"])
    section = {"name": environment} if isinstance(environment, str) else dict(environment)
    below, *above = named_layers(section.get("name"), [_file(str(name)) for name in overlays])
    found = [
        below,
        Layer("the default of train", {"processes": 1}),
        *above,
        Layer("the arguments of train", {"environment": section, **sections}),
    ]
    params = check_params(merged(found), sources([below, *above]), found)
    temporary = TemporaryFolder("training")
    try:
        with _as_a_stage():
            trained = _train(params, temporary.path, on_step)
    except BaseException:
        temporary.remove()
        raise
    weakref.finalize(trained, temporary.remove)
    return trained


def _file(name: str) -> Path:
    """An overlay in the working directory, the lab, or the reference lab."""
    here = overlay(name)
    return here if here.is_file() else next(filter(Path.is_file, [lab_file(name)]), here)


def _train(params: Params, folder: Path, on_step: Callable[[int, dict[str, float]], None]) -> Trained:
    tasks = params.environment.splits(params.tasks.make(), params.seed)
    for split, made in tasks.items():
        write_tasks(folder / f"{split}.parquet", made)
    if params.imitation.wanted:
        store = ResumeStore(folder / "unfinished", "imitation")
        job = imitation.ImitationJob(
            params=params,
            tasks=folder / "train.parquet",
            output=folder / "start",
            store=store,
            episodes=params.imitation.gather(store.folder),
        )
        imitation.imitate_demonstrations(job, lambda rank, progress: None)
        store.clear()
    else:
        imitation.without_demonstrations(params, folder / "start")
    learning = training.job_in(folder, params, folder, validation="validation.parquet")
    if params.training.steps and (params.tasks.keep is not None or params.skills.start == "rollouts"):
        learning = _after_rollouts(learning, tasks["train"], folder)
    curve = training.train(learning, on_step)
    learning.checkpoints.clear()
    return Trained(params, tasks, pl.DataFrame(curve, infer_schema_length=None), folder)


def _after_rollouts(learning: training.TrainingJob, tasks: list[Task], folder: Path) -> training.TrainingJob:
    """The training after the start policy's episodes, which decide the kept tasks and the first successes."""
    params, store = learning.params, ResumeStore(folder / "unfinished", "rollouts")
    rollouts, rates, sequences = (folder / f"{name}.parquet" for name in ("base", "rates", "sequences"))
    play_episodes(start_job(params, tasks, folder / "start", store), rollouts, lambda count: None)
    store.clear()
    write_pass_rates(rates, scan_rollouts(rollouts).filter(TAKEN))
    kept, _ = kept_tasks(tasks, read_pass_rates(rates), params.tasks.keep)
    learning = replace(learning, tasks=folder / "kept.parquet", beginning=folder / "start.json")
    write_tasks(learning.tasks, kept)
    projection = params.environment.make_projection()
    write_sequences(sequences, projected(projection, tasks, rollouts, lambda count: None))
    successes = start_successes(params, tasks, sequences)
    write_start(folder / "start.json", params.skills, successes, projection.alphabet, params.seed)
    return learning


@contextmanager
def _as_a_stage() -> Iterator[None]:
    """One thread, whose sums have one order, and this Python's programs, of which DeepSpeed starts ``ninja``.
    Afterwards threads and environment variables are what they were: a training sets those of a launcher."""
    import torch

    before, threads = dict(os.environ), torch.get_num_threads()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # for processes that are started here
    if not torch.cuda.is_available():
        os.environ["DS_ACCELERATOR"] = "cpu"  # or DeepSpeed prints that it looks for one
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", "")])
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        os.environ.clear()
        os.environ.update(before)
