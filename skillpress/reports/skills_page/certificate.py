"""The half-sample certificate of a log: an upper bound on the bits of a future trace (``skills/bounds.py``).

A dictionary is fitted to one half of the traces and judged on the other half. A trace's task draws its half,
so that traces of one task stay together and a drift over time is in both halves. The bound holds for a trace
drawn like these, up to its first T skills. It takes the tools' names and T as known in advance. With several
traces per task it is a little too low, because they are not independent draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

from skillpress.core.seeds import derive
from skillpress.skills.bounds import half_sample
from skillpress.skills.dictionary import SkillDictionary, Skills

DELTA = 0.05

Fit = Callable[[Sequence[Skills], str], SkillDictionary]
"""Fits a dictionary to (sequences, search); an empty search means the one in the user's settings."""


@dataclass(frozen=True)
class Certified:
    """The bits per trace with one dictionary."""

    seen: float
    """Bits on the half on which it was judged, including the dictionary's own bits."""
    bound: float
    """Upper bound on the mean bits of a future trace, which holds with probability 1 - δ."""


@dataclass(frozen=True)
class PageCertificate:
    """The result with routines and with single skills alone."""

    learned: Certified
    singles: Certified
    halves: tuple[int, int]
    """Number of traces that were learned from, and judged on."""
    longest: int
    """T."""

    @property
    def saves(self) -> float:
        """The certain saving by the routines, as a share of the single skills' bits on the judged half."""
        return 1 - self.learned.bound / self.singles.seen if self.singles.seen else 0.0


def certify(
    sequences: Sequence[Skills], tasks: Sequence[str], fit: Fit, longest: int | None, seed: int
) -> PageCertificate | None:
    """The certificate; None if there are fewer than two tasks.

    Args:
        tasks: the task of each sequence; empty for a sequence that stands alone.
        longest: T; None means the length of the longest sequence.
    """
    drawn = [derive(seed, "half", task or f"trace {place}") for place, task in enumerate(tasks)]
    order = sorted(range(len(drawn)), key=lambda place: (drawn[place], place))
    steps = longest or max(map(len, sequences), default=0)
    cut = [sequences[place][:steps] for place in order]
    middle = (len(cut) + 1) // 2
    while 0 < middle < len(cut) and drawn[order[middle]] == drawn[order[middle - 1]]:
        middle += 1
    if not steps or not 0 < middle < len(cut):
        return None

    def judged(search: str) -> Certified:
        dictionary = fit(cut[:middle], search)
        held_out = cut[middle:]
        bound = half_sample(dictionary, held_out, steps, len(cut), DELTA)
        share, index = dictionary.dictionary_bits / len(cut), log2(len(dictionary.phrases))
        return Certified(share + sum(dictionary.costs(held_out)) / len(held_out) * index, bound.bits)

    return PageCertificate(
        judged(""), judged("singletons"), halves=(middle, len(cut) - middle), longest=steps
    )
