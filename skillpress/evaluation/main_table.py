"""Table 1: Pass@1, or SC@k where an evaluation asks for k votes, per split of the test tasks."""

from __future__ import annotations

from statistics import stdev

from skillpress.evaluation.behavior import BehaviorFigure
from skillpress.evaluation.play import Play
from skillpress.evaluation.strata import within
from skillpress.evaluation.success import pass_at_1, self_consistency

WHOLE = "all"
"""Key of the one column of an environment whose test tasks are not split."""


def table_1(play: Play) -> tuple[BehaviorFigure, ...]:
    """One figure per split (``iid``, ``ood``: the first part of a stratum that has two), else one."""
    splits = sorted({task.stratum.split("/")[0] for task in play.tasks.values() if "/" in task.stratum})
    if not splits:
        return (success(WHOLE, metric(play), play),)
    return tuple(
        success(
            split,
            f"{split.upper()} ({metric(play)})",
            play.where(lambda task, split=split: within(task.stratum, split)),  # type: ignore[misc]
        )
        for split in splits
    )


def metric(play: Play) -> str:
    """What is counted."""
    return f"SC@{play.votes}" if play.votes > 1 else "Pass@1"


def success(key: str, label: str, play: Play) -> BehaviorFigure:
    """The success rate; its deviation is over training seeds, or over runs where there is one seed."""
    rate = self_consistency(play.episodes, play.votes) if play.votes > 1 else pass_at_1(play.episodes)
    runs = play.episodes["group_id"].unique().sort().to_list()
    of_seed: dict[str, list[float]] = {}
    for run, share in zip(runs, rate.per_run, strict=True):
        of_seed.setdefault(run.split("/")[0], []).append(share)
    means = [sum(shares) / len(shares) for shares in of_seed.values()]
    deviation = stdev(means) if len(means) > 1 else rate.std
    return BehaviorFigure(
        key, label, rate.mean, "share", rate.episodes, "Table 1", rate.low, rate.high, deviation
    )
