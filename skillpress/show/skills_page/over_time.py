"""How an agent's routines change from the first traces to the last.

The traces that the dictionary is fitted to are cut into windows of equal size. Each window gets a dictionary
of its own, and neighbours are compared as those of training steps are (``analysis/drift.py``). Two windows of
one agent differ by chance too: the same overlap with the order drawn at random says by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.seeds import generator
from skillpress.measure.analysis.drift import drift, lifetimes
from skillpress.skills.dictionary import SkillDictionary, Skills

MOST_WINDOWS = 10
SMALLEST_WINDOW = 50
"""Traces; fewer say little about a dictionary."""
SHUFFLES = 3

Fit = Callable[[Sequence[Skills]], SkillDictionary]


@dataclass(frozen=True)
class OverTime:
    """A log in windows."""

    traces: tuple[int, ...]
    """Per window, in the order of time."""
    changes: pl.DataFrame
    """See ``drift.drift``; ``step`` is the window, from 1 on."""
    lives: pl.DataFrame
    """See ``drift.lifetimes``."""
    overlap: float
    """Mean of ``previous``: the share of phrases that neighbouring windows have in common."""
    by_chance: float
    """The same with the order drawn at random, on average."""


def over_time(sequences: Sequence[Skills], fit: Fit, seed: int) -> OverTime | None:
    """Windows of sequences that stand in the order of time; None where there are too few for two."""
    count = min(MOST_WINDOWS, len(sequences) // SMALLEST_WINDOW)
    if count < 2:
        return None
    history = _history(sequences, count, fit)
    changes = drift(history)
    chances = []
    for shuffle in range(SHUFFLES):
        order = generator(seed, "windows", shuffle).permutation(len(sequences))
        shuffled = _history([sequences[place] for place in order], count, fit)
        chances.append(_mean_overlap(drift(shuffled)))
    return OverTime(
        tuple(np.diff(_bounds(len(sequences), count)).tolist()),
        changes,
        lives=lifetimes(history),
        overlap=_mean_overlap(changes),
        by_chance=float(np.mean(chances)),
    )


def _history(sequences: Sequence[Skills], count: int, fit: Fit) -> dict[int, dict[Skills, int]]:
    bounds = _bounds(len(sequences), count).tolist()
    windows = (sequences[start:end] for start, end in pairwise(bounds))
    return {number: fit(window).learned_counts for number, window in enumerate(windows, 1)}


def _bounds(size: int, count: int) -> NDArray[np.int64]:
    return np.linspace(0, size, count + 1).round().astype(np.int64)


def _mean_overlap(changes: pl.DataFrame) -> float:
    return float(changes["previous"].drop_nulls().to_numpy().mean())
