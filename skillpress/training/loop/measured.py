"""Measurements of updates, and their means over several updates.

A mean over tokens divides by the weights of the tokens in its sum. Samples without advantage are left out of
the model's passes, so their tokens must not be in a denominator either. If no rank has a sample for an
update, there is no optimizer step and no gradient norm. Only the loss is a mean over *all* tokens of the
step: left-out tokens contribute exactly 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import torch

LESSON = "lesson/"
"""Prefix of the names of sums over lessons' tokens."""


@dataclass(frozen=True)
class Measured:
    """One update's sums over the tokens that passed through the model, on all ranks."""

    loss: float = 0.0
    """The weighted sum that the update minimised."""
    weight: float = 0.0
    """Sum of the weights of those tokens; 0 if no rank had a sample."""
    sums: dict[str, float] = field(default_factory=dict)
    """Metric to its sum of weight times value over those tokens."""
    gradient_norm: float | None = None
    """Norm before clipping; None without an optimizer step, or if DeepSpeed does not report it."""
    lessons: dict[str, float] = field(default_factory=dict)
    """Like ``sums``, over lessons' tokens, with ``weight`` and ``tokens``; empty if no rank had lessons."""
    optimized: bool = False
    """Whether the optimizer changed weights."""
    reference_weight: float = 0.0
    """Sum of the weights of the KL term, of the tokens that the reference scored; 0 without such a term."""

    @classmethod
    def of(cls, sums: dict[str, float], norm: float | None) -> Measured:
        """The measurements of an optimizer step.

        Args:
            sums: each metric's sum over all passes and ranks, with ``loss`` and the sums of weights.
            norm: the gradient's, before clipping.
        """
        own = {name: value for name, value in sums.items() if not name.startswith(LESSON)}
        taught = {name.removeprefix(LESSON): value for name, value in sums.items() if name not in own}
        return cls(
            loss=own.pop("loss"),
            weight=own.pop("weight", 0.0),
            reference_weight=own.pop("reference_weight", 0.0),
            sums=own,
            lessons=taught,
            gradient_norm=norm,
            optimized=True,
        )


class Totals:
    """Sums of metrics over passes. They stay on the device until the end of an update, so that the host can
    start one pass after another without waiting."""

    def __init__(self) -> None:
        self._passes: list[tuple[list[str], torch.Tensor]] = []

    def add(self, metrics: Mapping[str, torch.Tensor]) -> None:
        """Add the metrics of a pass, which are scalars."""
        values = [value.detach().to(torch.float64) for value in metrics.values()]
        self._passes.append(([*metrics], torch.stack(values)))

    def read(self, norm: torch.Tensor | float | None) -> tuple[dict[str, float], float | None]:
        """The sums, and the gradient's norm as a number. It is the only read of the device in an update."""
        rows = [values for _, values in self._passes]
        if isinstance(norm, torch.Tensor):
            rows.append(norm.detach().to(rows[0]).reshape(1))
        numbers = torch.cat(rows).tolist()
        if isinstance(norm, torch.Tensor):
            norm = numbers.pop()
        sums: dict[str, float] = defaultdict(float)
        names = [name for names, _ in self._passes for name in names]
        for name, number in zip(names, numbers, strict=True):
            sums[name] += number
        return dict(sums), None if norm is None else float(norm)


def mean_metrics(updates: Sequence[Measured]) -> dict[str, float]:
    """The metrics of a training step, without those for which no update had a token.

    Args:
        updates: one per minibatch. The weights of a minibatch's tokens, including those left out, sum to
            about 1.
    """
    metrics = {"loss": fmean(update.loss for update in updates)}
    counted = [update for update in updates if update.weight]
    total = sum(update.weight for update in counted)
    drawn = sum(update.reference_weight for update in counted)  # differs from the total if kl_share < 1
    for name in counted[0].sums if counted else ():
        weight = drawn if drawn and name == "reference_kl" else total
        metrics[name] = sum(update.sums[name] for update in counted) / weight
    taught = [update.lessons for update in updates if update.lessons.get("weight")]
    for name in taught[0] if taught else ():
        summed = sum(lessons[name] for lessons in taught)
        if name == "tokens":
            metrics["experience/tokens"] = summed
        elif name != "weight":
            metrics[f"experience/{name}"] = summed / sum(lessons["weight"] for lessons in taught)
    norms = [update.gradient_norm for update in updates if update.gradient_norm is not None]
    return {**metrics, "gradient_norm": fmean(norms)} if norms else metrics
