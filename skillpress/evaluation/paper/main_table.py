"""Table 1: Pass@1, or SC@k if an evaluation asks for k votes, per split of the test tasks."""

from __future__ import annotations

from statistics import stdev

from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.statistics.behavior import BehaviorFigure
from skillpress.evaluation.statistics.episodes import RUN_KEY
from skillpress.evaluation.statistics.strata import halves, within
from skillpress.evaluation.statistics.success import pass_at_1, self_consistency

WHOLE = "all"
"""The key of the single column of an environment whose test tasks are not split."""


def table_1(played: MethodEpisodes) -> tuple[BehaviorFigure, ...]:
    """One figure per split (``iid``, ``ood``: the first part of a stratum that has two), else one."""
    splits = halves(played.tasks.values())
    if not splits:
        return (success(WHOLE, metric(played), played),)
    return tuple(
        success(
            split,
            f"{split.upper()} ({metric(played)})",
            played.where(lambda task, split=split: within(task.stratum, split)),  # type: ignore[misc]
        )
        for split in splits
    )


def metric(played: MethodEpisodes) -> str:
    """The name of the measure."""
    return f"SC@{played.votes}" if played.votes > 1 else "Pass@1"


def success(key: str, label: str, played: MethodEpisodes) -> BehaviorFigure:
    """The success rate. Its deviation is over training seeds, or over runs if there is one seed."""
    rate = self_consistency(played.episodes, played.votes) if played.votes > 1 else pass_at_1(played.episodes)
    runs = played.episodes.select(RUN_KEY).unique().sort(RUN_KEY)
    of_seed: dict[int, list[float]] = {}
    for seed, share in zip(runs["training_seed"], rate.per_run, strict=True):
        of_seed.setdefault(seed, []).append(share)
    means = [sum(shares) / len(shares) for shares in of_seed.values()]
    deviation = stdev(means) if len(means) > 1 else rate.std
    return BehaviorFigure(
        key=key,
        label=label,
        value=rate.mean,
        unit="share",
        episodes=rate.episodes,
        table="Table 1",
        low=rate.low,
        high=rate.high,
        std=deviation,
    )
