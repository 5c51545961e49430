"""The answer to a comparison of two sides: how often each succeeds, and the difference, later minus earlier.

Only traces whose outcome is known count. Intervals hold at 95%: Wilson's for a share, Newcombe's for the
difference, both over tasks if tasks have several traces (``comparison.py`` says how).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skillpress.core.distributions import normal_quantile, student_quantile
from skillpress.reports.skills_page.comparison import ERROR, clusters_of, design_effect, newcombe, wilson


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    won: int
    known: int
    """Traces whose outcome is known."""
    low: float
    """Lower end of the interval of the success rate."""
    high: float

    @property
    def share(self) -> float:
        """The success rate."""
        return self.won / self.known


@dataclass(frozen=True)
class SuccessRates:
    """How often two sides succeed."""

    earlier: Side
    later: Side
    low: float
    """Lower end of the interval of the difference, later minus earlier."""
    high: float
    tasks: int
    """Number of different tasks of both sides together."""

    @property
    def difference(self) -> float:
        """The later side's success rate minus the earlier side's."""
        return self.later.share - self.earlier.share

    @property
    def verdict(self) -> Literal["better", "worse", "not told apart"]:
        """What the later side is; not told apart if the interval holds 0."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "not told apart"

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        low, high = (f"{100 * end:+.1f}" for end in (self.low, self.high))
        return (
            f"success: {_side(self.earlier)}, {_side(self.later)}; {self.later.name} - {self.earlier.name}: "
            f"{100 * self.difference:+.1f} points ({low} to {high}), {self.verdict}"
        )


def answer(
    success: Sequence[bool | None],
    earlier: NDArray[np.bool_],
    later: NDArray[np.bool_],
    tasks: Sequence[str],
    names: tuple[str, str],
) -> SuccessRates | None:
    """The answer to a comparison; None if no outcome of a side is known.

    Args:
        success: (traces,) whether each trace succeeded; None if unknown.
        earlier: (traces,) whether each trace belongs to the earlier side.
        later: (traces,) whether each trace belongs to the later side.
        tasks: (traces,) the task of each trace; empty for a trace that stands alone.
        names: the earlier side and the later one.
    """
    known = np.array([found is not None for found in success])
    won = np.array([found is True for found in success])
    earlier, later = earlier & known, later & known
    if not earlier.any() or not later.any():
        return None
    taking_part = earlier | later
    clusters = clusters_of(tasks, taking_part)
    distinct = int(clusters.max()) + 1
    clustered = 1 < distinct < taking_part.sum()
    chance = 1 - ERROR / 2
    quantile = student_quantile(distinct - 1, chance) if clustered else normal_quantile(chance)
    sides = []
    for group, name in zip((earlier, later), names, strict=True):
        effect = (
            design_effect(won, group, np.zeros_like(group), clusters_of(tasks, group)) if clustered else 1.0
        )
        share, count = float(won[group].mean()), int(group.sum())
        low, high = wilson(share, count / effect, quantile)
        sides.append(Side(name, int(won[group].sum()), known=count, low=low, high=high))
    effect = design_effect(won, later, earlier, clusters) if clustered else 1.0
    low, high = newcombe(
        (sides[1].share, sides[0].share), (sides[1].known / effect, sides[0].known / effect), quantile
    )
    return SuccessRates(sides[0], sides[1], low=low, high=high, tasks=distinct)


def _side(side: Side) -> str:
    return (
        f"{side.name} {100 * side.share:.1f}% ({100 * side.low:.1f} to {100 * side.high:.1f}, "
        f"{side.won:,} of {side.known:,})"
    )
