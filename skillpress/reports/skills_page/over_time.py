"""How an agent's routines change from the first traces to the last.

The traces that the dictionary is fitted to are cut into windows of equal size. Each window gets its own
dictionary, and neighbours are compared in the same way as training steps (``analysis/drift.py``). Two windows
of one agent differ by chance too; the same overlap with the order drawn at random shows by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.seeds import generator
from skillpress.evaluation.analysis.drift import drift, lifetimes
from skillpress.skills.dictionary import SkillDictionary, Skills

MOST_WINDOWS = 10
SMALLEST_WINDOW = 50
"""The fewest traces of a window; fewer say little about a dictionary."""
SHUFFLES = 3

Fit = Callable[[Sequence[Skills]], SkillDictionary]


@dataclass(frozen=True)
class OverTime:
    """A log in windows."""

    traces: tuple[int, ...]
    """Number of traces per window, in the order of time."""
    changes: pl.DataFrame
    """The table of ``drift.drift``; ``step`` is the window, from 1 on."""
    lives: pl.DataFrame
    """The table of ``drift.lifetimes``."""
    overlap: float
    """Mean of ``previous``: the share of phrases that neighbouring windows have in common."""
    by_chance: float
    """The same with the order drawn at random, on average."""


def over_time(sequences: Sequence[Skills], fit: Fit, seed: int) -> OverTime | None:
    """Windows of sequences in the order of time; None if there are too few for two windows."""
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
