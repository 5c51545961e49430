"""The section ``tasks``: how many tasks of each split there are, and which training tasks are kept."""

from __future__ import annotations

from pydantic import model_validator

from skillpress.core.sections import Fraction, NonNegativeInt, PositiveInt, Section
from skillpress.environments.section import SplitSizes


class KeepParameters(Section):
    """The pass rates of the start policy at which a training task is kept."""

    at_least: Fraction
    """The smallest pass rate (wins / rollouts) of a task that is kept."""
    at_most: Fraction
    """The largest pass rate of a task that is kept."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> KeepParameters:
        if self.at_least > self.at_most:
            raise ValueError(
                f"at_least is {self.at_least} and at_most {self.at_most}: no pass rate lies between them; "
                "at_least must not be larger"
            )
        return self

    def keeps(self, wins: int, rollouts: int) -> bool:
        """Whether a task with this many wins among this many rollouts is kept."""
        return self.at_least <= wins / rollouts <= self.at_most


class TaskParameters(Section):
    """How many tasks of each split an experiment has, and which training tasks it keeps."""

    train: PositiveInt
    """Training tasks."""
    validation: NonNegativeInt
    """Tasks for choosing a checkpoint or hyperparameters; may be 0 with keep last."""
    test: PositiveInt
    """Held-out tasks for the final evaluation."""
    unseen: NonNegativeInt = 0
    """Tasks of a kind that training never meets (docs/evaluation.md)."""
    keep: KeepParameters | None = None
    """Null, or {at_least, at_most}: trains only on tasks with such a pass rate of the start policy. Tasks
    that the stage collect_rollouts has not played are dropped too; ``rollouts.tasks: all`` plays every one.
    """

    def make(self) -> SplitSizes:
        """The sizes of all splits."""
        return SplitSizes(self.train, self.validation, self.test, self.unseen)
