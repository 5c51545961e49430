"""The training loop: step after step, with checkpoints, to the weights that a run leaves.

Every part is handed in. A checkpoint holds the learner's own state, the curve so far and what each part with
a state says of itself (``TrainingStep.stateful``). Where groups are replayed, those of the last steps lie
beside it. All else is a function of (seed, step).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillpress.core.errors import StorageError
from skillpress.core.trajectory import Task
from skillpress.learn.training.describing.probes import Probe
from skillpress.learn.training.keeping.checkpoint import Checkpoints, TrainingState
from skillpress.learn.training.keeping.selected_checkpoint import VALIDATION, select_checkpoint
from skillpress.learn.training.keeping.validation import copy_policy, validate
from skillpress.learn.training.step import TrainingStep
from skillpress.models.policy import Policy, save_policy
from skillpress.skills.library.library import FILE, write_library

OnStep = Callable[[int, dict[str, float]], None]
"""Told (step, metrics) after every training step; of a resumed run, only the steps still to do. Of step 0,
the start, it is told where that is probed."""


@dataclass
class TrainingLoop:
    """One rank's part of a training run."""

    step: TrainingStep
    policy: Policy
    checkpoints: Checkpoints
    validation: Sequence[Task]
    """The tasks by which the best step is found; played where ``keep`` is ``best``."""
    steps: int
    """Training steps in all."""
    checkpoint_every: int
    keep: Literal["last", "best"]
    """Which step's weights the run leaves."""
    lag: Literal[0, 1]
    """Whether the next step's rollouts are played beside a step's updates, see ``ahead.py``."""
    probe: Probe | None = None
    """Looks at the policy every few steps; None where nobody asked for that."""

    def run(self, output: Path, on_step: OnStep) -> list[dict[str, float]]:
        """Train to the end, from the last checkpoint if there is one.

        Args:
            output: the trained model's folder.

        Returns:
            One row of metrics per step, those before a resumption included.
        """
        ranks = self.step.ranks
        curve = self._resume()
        if not curve:
            self._probe(0, {}, on_step)
        for number in range(len(curve) + 1, self.steps + 1):
            due = number % self.checkpoint_every == 0
            metrics = self.step(number, ahead=bool(self.lag) and not due and number < self.steps)
            if self.keep == "best" and (due or number == self.steps):
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
        ranks.barrier()
        return curve

    def _probe(self, step: int, metrics: dict[str, float], on_step: OnStep) -> None:
        """Probe the policy where that is due, and tell of the step and of that. The curve has nothing of it.

        What a lag had played beside the step is all played by now, so that the engine is free.
        """
        probed = self.probe(step) if self.probe is not None else {}
        if self.step.ranks.rank == 0 and (metrics or probed):
            on_step(step, {**metrics, **probed})

    def _resume(self) -> list[dict[str, float]]:
        """Load the last checkpoint, if any; returns the curve so far."""
        step = self.step
        # One rank looks: a checkpoint that is only just becoming visible must not divide them.
        found: tuple[TrainingState, Path] | None
        (found,) = step.ranks.gather([self.checkpoints.latest()] if step.ranks.rank == 0 else [])
        if found is None:
            return []
        state, folder = found
        if not folder.is_dir():
            raise StorageError(
                f"{folder}: rank {step.ranks.rank} does not see the checkpoint that rank 0 goes on from; "
                "checkpoints/ must be on a disk that all machines share"
            )
        step.learner.load(folder)
        step.engine.update_weights(step.learner.weights(), state.step)
        for name, part in step.stateful.items():
            part.load_state_dict(state.parts[name])
        return state.curve

    def _save(self, number: int, curve: list[dict[str, float]]) -> None:
        ranks, folder = self.step.ranks, self.checkpoints.step_folder(number)
        if ranks.rank == 0:
            self.checkpoints.prepare(number)
        ranks.barrier()
        self.step.learner.save(folder)
        ranks.barrier()
        if ranks.rank == 0:
            parts = {name: part.state_dict() for name, part in self.step.stateful.items()}
            self.checkpoints.commit(TrainingState(number, parts, curve))
        if self.step.replay is not None:
            ranks.barrier()  # no rank forgets what a run may need that goes on from the checkpoint before
            self.step.replay.forget(number)

    def _save_policy(self, output: Path) -> None:
        learner = self.step.learner
        weights, adapter = learner.weights(), learner.saved_adapter()  # of all ranks
        if self.step.ranks.rank == 0:
            save_policy(self.policy, output, weights, adapter)
            if self.step.evolution is not None:  # its prompts show these skills, wherever it plays
                write_library(output / FILE, self.step.evolution.library)
