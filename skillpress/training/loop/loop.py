"""The training loop: runs all steps, saves checkpoints, and writes the weights that a run leaves.

Every part is an argument. A checkpoint holds the learner's own state, the curve so far and the state of each
stateful part (``TrainingStep.stateful``). If groups are replayed, files of the last steps are next to it.
Everything else is a function of (seed, step).

If ``training.keep`` is ``best``, the candidates are the steps after which a checkpoint is due, and the last
step. After each of them every validation task is played once, sampled as in training and with the same seeds
each time. The test tasks are not used.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillpress.core.errors import StorageError
from skillpress.core.storage import atomic_directory
from skillpress.core.trajectory import Task
from skillpress.models.policy import Policy, save_policy
from skillpress.rollouts.collection import Collector, requests
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.library.library import FILE, write_library
from skillpress.training.loop.describing.probes import Probe
from skillpress.training.loop.keeping.checkpoint import Checkpoints, TrainingState
from skillpress.training.loop.keeping.selected_checkpoint import VALIDATION, select_checkpoint
from skillpress.training.loop.step import TrainingStep

OnStep = Callable[[int, dict[str, float]], None]
"""Receives (step, metrics) after every step that this process trains, and of step 0 if it is probed."""


@dataclass
class TrainingLoop:
    """One rank of a training run."""

    step: TrainingStep
    policy: Policy
    checkpoints: Checkpoints
    validation: Sequence[Task]
    """The tasks that decide the best step; played only if ``keep`` is ``best``."""
    steps: int
    """Number of training steps."""
    checkpoint_every: int
    keep: Literal["last", "best"]
    """Which step's weights the run leaves."""
    lag: int
    """Number of later steps whose rollouts are begun before a step's updates, see ``ahead.py``."""
    probe: Probe | None = None
    """Probes the policy every few steps; None without probes."""

    def run(self, output: Path, on_step: OnStep) -> list[dict[str, float]]:
        """Train to the end, starting from the last checkpoint if there is one.

        Returns:
            One row of metrics per step, including steps before a resumption.
        """
        ranks = self.step.ranks
        curve = self._resume()
        if not curve:
            self._probe(0, {}, on_step)
        for number in range(len(curve) + 1, self.steps + 1):
            due = number % self.checkpoint_every == 0
            metrics = self.step(number, until=self._begun_by(number))
            if self.keep == "best" and (due or number == self.steps):
                # The collector plays for one caller at a time, and the engine may still have older weights.
                self.step.rollouts.rest()
                collector, seed = self.step.rollouts.collect.collector, self.step.seed
                metrics[VALIDATION] = validate(collector, self.validation, seed, number, ranks)
            curve.append({"step": float(number), **metrics})
            self._probe(number, metrics, on_step)
            if VALIDATION in metrics and select_checkpoint("best", curve).step == number:
                self._save_policy(self.checkpoints.best)
            if due and number < self.steps:
                self._save(number, curve)
        if self.keep == "last" or not curve:
            self._save_policy(output)
        elif ranks.rank == 0:
            copy_policy(self.checkpoints.best, output)
        # No rank may return before rank 0 has written the weights.
        ranks.barrier()
        return curve

    def _begun_by(self, number: int) -> int:
        """The last step whose rollouts are begun before the updates of step ``number``; no rollout is begun
        before a checkpoint that its step follows."""
        # The next checkpoint at or after this step: division rounds down, so its negative rounds up.
        checkpoint = -(-number // self.checkpoint_every) * self.checkpoint_every
        return min(number + self.lag, checkpoint, self.steps)

    def _probe(self, step: int, metrics: dict[str, float], on_step: OnStep) -> None:
        """If a probe is due, probe the policy; then report the step and the probe. The curve has no columns
        of probes.
        """
        probed = {}
        if self.probe is not None and self.probe.due(step):
            self.step.rollouts.rest()
            probed = self.probe(step)
        if self.step.ranks.rank == 0 and (metrics or probed):
            on_step(step, {**metrics, **probed})

    def _resume(self) -> list[dict[str, float]]:
        """Load the last checkpoint, if any; returns the curve so far."""
        step = self.step
        # Only one rank looks: if a checkpoint is just becoming visible, ranks could disagree.
        found: tuple[TrainingState, Path] | None
        (found,) = step.ranks.gather([self.checkpoints.latest()] if step.ranks.rank == 0 else [])
        if found is None:
            return []
        state, folder = found
        if not folder.is_dir():
            raise StorageError(
                f"{folder}: rank {step.ranks.rank} does not see the checkpoint from which rank 0 resumes; "
                "put checkpoints/ on a disk that all machines share"
            )
        step.learner.load(folder)
        # Engines begin with the start policy's weights.
        step.rollouts.update_weights(step.learner.weights(), state.step)
        for name, part in step.stateful.items():
            part.load_state_dict(state.parts[name])
        return state.curve

    def _save(self, number: int, curve: list[dict[str, float]]) -> None:
        ranks, folder = self.step.ranks, self.checkpoints.step_folder(number)
        if ranks.rank == 0:
            self.checkpoints.prepare(number)
        # No rank may write before rank 0 has emptied the folder.
        ranks.barrier()
        self.step.learner.save(folder)
        # ``commit`` names this checkpoint as the one to resume from, so all parts must be on disk before it.
        ranks.barrier()
        if ranks.rank == 0:
            parts = {name: part.state_dict() for name, part in self.step.stateful.items()}
            self.checkpoints.commit(TrainingState(number, parts, curve))
        if self.step.replay is not None:
            ranks.barrier()  # no rank deletes files that a run from the previous checkpoint may need
            self.step.replay.forget(number)

    def _save_policy(self, output: Path) -> None:
        learner = self.step.learner
        weights, adapter = learner.weights(), learner.saved_adapter()  # of all ranks
        if self.step.ranks.rank == 0:
            save_policy(self.policy, output, weights, adapter)
            if self.step.evolution is not None:  # the policy's prompts show these skills wherever it plays
                write_library(output / FILE, self.step.evolution.library)


def validate(collector: Collector, tasks: Sequence[Task], seed: int, step: int, ranks: Ranks) -> float:
    """The share of the tasks that the policy after ``step`` wins. Each rank plays some of them."""
    wanted = requests(tasks[ranks.rank :: ranks.size], 1, seed, "validation")
    won = sum(trajectory.won for trajectory in collector.collect(wanted, step))
    return ranks.sum({"won": float(won)})["won"] / len(tasks)


def copy_policy(source: Path, destination: Path) -> None:
    """Copy a model folder atomically.

    Raises:
        StorageError: the source does not exist.
    """
    if not source.is_dir():
        raise StorageError(f"{source}: missing, but the checkpoint needs it; delete {source.parent}")
    with atomic_directory(destination) as temporary:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
