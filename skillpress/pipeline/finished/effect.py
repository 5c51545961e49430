"""The effect of training on success, in one sentence: the console's last line and the report's first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillpress.measure.evaluation import Comparison
from skillpress.pipeline.files import START, TRAINED
from skillpress.pipeline.finished.results import comparisons

ADVICE = Path("docs/training_made_it_worse.md")
"""The page with advice, in the repository and in every workspace."""


@dataclass(frozen=True)
class Effect:
    """The trained policy against the policy that training started from, on the same held-out tasks."""

    difference: float
    """Difference of the success rates, in [-1, 1]."""
    low: float
    """Lower end of the 95% interval over tasks, for these two policies."""
    high: float

    @property
    def worse(self) -> bool:
        """Whether success fell by more than chance would explain."""
        return self.high < 0

    @property
    def sentence(self) -> str:
        """Text such as ``training changed success by -9.0 points (-14.5 to -3.5)``, with its conclusion."""
        interval = f"({_points(self.low)} to {_points(self.high)})"
        said = f"training changed success by {_points(self.difference)} points {interval}"
        if self.worse:
            return f"{said}: it made the policy worse"
        return said if self.low > 0 else f"{said}: these tasks tell no difference"


def effect(found: Mapping[str, Comparison], training_steps: int) -> Effect | None:
    """The effect by the paired tests of an evaluation; None without training."""
    compared = found.get(f"{TRAINED} against {START}")
    if compared is None or not training_steps:
        return None
    whole = compared.tests[-1]
    return Effect(whole.difference, whole.low, whole.high)


def effect_line(results: Path, training_steps: int) -> str | None:
    """The console's line about a finished experiment; None without training.

    Raises:
        StorageError: evaluation.json is missing or damaged.
    """
    found = effect(comparisons(results), training_steps)
    if found is None:
        return None
    return f"{found.sentence}; {ADVICE} says what to try" if found.worse else found.sentence


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
