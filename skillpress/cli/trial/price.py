"""What a trial will cost and what it can show, printed before it is played."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from skillpress.experiment.params import Params


@dataclass(frozen=True)
class TrialSize:
    """The size of a trial."""

    tasks: int
    rollouts: int
    arms: int

    @property
    def episodes(self) -> int:
        """The number of episodes in the plan."""
        return self.tasks * self.rollouts * self.arms


def price(size: TrialSize, params: Params, given: int, played: pl.DataFrame) -> Iterator[str]:
    """Lines that state the price.

    Args:
        given: number of characters of skills in an episode with all skills.
        played: ``calls``, ``tokens`` and ``seconds`` of the episodes that are played already.
    """
    most = size.episodes * params.environment.max_steps
    longest = params.sampling.max_new_tokens
    yield (
        f"price: {size.episodes:,} episodes ({size.tasks} tasks x {size.rollouts} rollouts x {size.arms} "
        f"arms), at most {most:,} calls of at most {longest:,} response tokens; the skills have "
        f"{given:,} characters"
    )
    if played.height:
        left = size.episodes - played.height
        yield (
            f"{left:,} of {size.episodes:,} episodes are missing: they take about {_rest(played, left)}; the "
            "verdict follows when they are played"
        )


def _rest(played: pl.DataFrame, left: int) -> str:
    means = {name: played[name].mean() for name in ("calls", "tokens")}
    told = [f"{left * float(str(mean)):,.0f} {name}" for name, mean in means.items() if mean is not None]
    return ", ".join(told)
