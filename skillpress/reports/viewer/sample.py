"""The choice of episodes for a page that cannot show all: losses, wins, and groups that differ most.

Each kind gets a third of the room if it has enough episodes: the first losses of every policy; wins of every
policy, drawn at random; and whole groups, starting with those whose rewards vary most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from skillpress.core.seeds import generator

MOST = 300
"""The most episodes of a sample."""

Groups = list[list[int]]
"""Places of episodes; an inner list is taken as a whole."""


@dataclass(frozen=True)
class Sample:
    """The episodes that were chosen."""

    groups: Groups
    """Places of episodes, the most important groups first."""
    note: str
    """How they were chosen, in a sentence or two."""


def sample(episodes: pl.DataFrame, seed: int, most: int = MOST) -> Sample:
    """Choose some episodes of a table with ``place`` and columns of ``EpisodeRow``, in the order of the
    files. The same table and seed give the same choice."""
    if episodes.height <= most:
        return Sample([[place] for place in episodes["place"]], f"All {episodes.height:,} episodes.")
    draw = generator(seed, "episodes")
    shuffled = episodes[draw.permutation(episodes.height)]
    queues = [
        _by_turns(episodes.filter(~pl.col("won"))),
        _by_turns(shuffled.filter("won")),
        _most_varied(episodes, draw),
    ]
    groups, taken = _chosen(queues, most)
    note = (
        f"A sample of {len(taken):,} of {episodes.height:,} episodes: the first losses of every policy, wins "
        f"of every policy drawn with seed {seed}, and whole groups, those whose rewards vary most."
    )
    return Sample(groups, note)


def _chosen(queues: Sequence[Groups], most: int) -> tuple[Groups, set[int]]:
    """Take from each queue in turn, so that all get the same number as long as they can."""
    waiting: list[Iterator[list[int]]] = [iter(queue) for queue in queues]
    counts, groups, taken = [0] * len(queues), [], set[int]()
    open_queues = set(range(len(queues)))
    while open_queues and len(taken) < most:
        least = min(open_queues, key=lambda number: (counts[number], number))
        group = next(waiting[least], None)
        if group is None:
            open_queues.discard(least)
            continue
        new = [place for place in group if place not in taken]
        if new and len(taken) + len(new) <= most:
            groups.append(new)
            taken.update(new)
            counts[least] += len(new)
    return groups, taken


def _by_turns(episodes: pl.DataFrame) -> Groups:
    """Single episodes, alternating between policies."""
    turns = episodes.with_columns(turn=pl.int_range(pl.len()).over("source", "policy"))
    return [[place] for place in turns.sort("turn", maintain_order=True)["place"]]


def _most_varied(episodes: pl.DataFrame, draw: np.random.Generator) -> Groups:
    """Groups whose rewards vary, the most varied first; ties are in random order."""
    groups = episodes.group_by("source", "policy", "group", maintain_order=True).agg(
        "place", variance=pl.col("reward").var(ddof=0)
    )
    varied = groups[draw.permutation(groups.height)].filter(pl.col("variance") > 0)
    return [list(places) for places in varied.sort("variance", descending=True, maintain_order=True)["place"]]
