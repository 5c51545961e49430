"""What the learner's updates are made of: a list of parts, each one class in its own file.

    PolicyLoss    the algorithm's loss of the samples                              policy_loss.py
    Reference     the start policy's log-probabilities, for a KL term              reference.py
    StateValues   the values of states, from a head beside the policy              state_values.py
    Lessons       the loss of what further attempts teach                          lessons.py

A part with a loss brings passes through the model, and its loss is a sum over them. A part without one brings
columns that the algorithm's loss reads. The methods below are in the order of a training step. A part defines
those that it needs; the others do nothing. The list's order is that of the passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray

from skillpress.core.columns import Indices
from skillpress.training.algorithms.batch import Batch, SumOverRanks
from skillpress.training.loop.model_pass import Pass
from skillpress.training.loop.scoring_passes import ScoringPasses
from skillpress.training.loop.value_head import ValueHead

Terms = tuple[torch.Tensor, dict[str, torch.Tensor]]
"""The loss of a pass, and metrics; all are weighted sums over tokens."""


@dataclass
class Update:
    """This process's share of one optimizer step."""

    samples: Batch
    lessons: Batch | None = None
    scored: list[tuple[Pass, torch.Tensor]] = field(default_factory=list)
    """The passes of samples made so far, with [tokens] log-probabilities under the weights before the
    update."""


class UpdatePart:
    """A part of the learner's updates."""

    head: ValueHead | None = None
    """A module that is trained with the policy, by the same optimizer and in the same checkpoints."""
    columns: Mapping[str, NDArray[Any]] = {}
    """The columns that it adds to samples, with the values that a weightless pass of one token has."""

    def judge(self, batch: Batch, rows: Indices, scoring: ScoringPasses, add: SumOverRanks) -> Batch:
        """The batch with the columns that its advantages need; all ranks call this.

        Args:
            rows: the steps at which something was sampled.
            scoring: scores samples under the current weights.
            add: sums values over all ranks.
        """
        return batch

    def prepare(self, shares: Sequence[Batch], scoring: ScoringPasses) -> Sequence[Batch]:
        """The samples of a step's updates with what must be computed before the first of them; all ranks call
        this with equally many."""
        return shares

    def passes(self, update: Update, scoring: ScoringPasses) -> list[Pass]:
        """Its passes through the model; empty if it has nothing to do in this update. All ranks call this."""
        return []

    def loss(self, each: Pass, update: Update, scoring: ScoringPasses) -> Terms:
        """The loss of one of its passes. The learner may have added passes without weight."""
        raise NotImplementedError(f"{type(self).__name__} defines no loss, but has passes; define loss")
