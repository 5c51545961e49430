"""What updates measured, and how several of them are averaged.

A mean over tokens divides by the weights of the tokens it was taken over. Samples without advantage
are left out of the model's passes, so their tokens are in no sum and must be in no denominator; an
update for which no rank had a sample makes no optimizer step and has no gradient norm. The loss
alone is a mean over *all* tokens of the step: those left out enter it with exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean


@dataclass(frozen=True)
class Measured:
    """One update's sums over the tokens that passed through the model, on all ranks."""

    loss: float = 0.0
    """The weighted sum that was minimised."""
    weight: float = 0.0
    """The weights of those tokens; 0 where no rank had a sample."""
    sums: dict[str, float] = field(default_factory=dict)
    """Metric to the sum over those tokens of weight times value."""
    gradient_norm: float | None = None
    """Before clipping; None without an optimizer step, or where DeepSpeed does not tell it."""
    lessons: dict[str, float] = field(default_factory=dict)
    """As ``sums``, over the tokens of lessons, with their ``weight`` and how many ``tokens`` they were; empty
    where no rank had any."""


def mean_metrics(updates: Sequence[Measured]) -> dict[str, float]:
    """The metrics of a training step; one that nothing was counted for is left out.

    Args:
        updates: one per minibatch; the weights of a minibatch's tokens, with those that were left
            out, sum to about 1.
    """
    metrics = {"loss": fmean(update.loss for update in updates)}
    counted = [update for update in updates if update.weight]
    total = sum(update.weight for update in counted)
    for name in counted[0].sums if counted else ():
        metrics[name] = sum(update.sums[name] for update in counted) / total
    taught = [update.lessons for update in updates if update.lessons.get("weight")]
    for name in taught[0] if taught else ():
        summed = sum(lessons[name] for lessons in taught)
        if name == "tokens":
            metrics["experience/tokens"] = summed
        elif name != "weight":
            metrics[f"experience/{name}"] = summed / sum(lessons["weight"] for lessons in taught)
    norms = [update.gradient_norm for update in updates if update.gradient_norm is not None]
    return {**metrics, "gradient_norm": fmean(norms)} if norms else metrics
