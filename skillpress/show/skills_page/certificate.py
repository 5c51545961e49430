"""The half-sample certificate of a log: how few bits another trace will take (``skills/bounds.py``).

A dictionary is fitted to one half of the traces and judged on the other, which it has not seen. Which half a
trace is in is drawn by its task, so that traces of one task stay together and a drift over time is in both.
The bound holds for a trace drawn as these were, counted up to its first T skills; the tools' names and T are
taken as known before. With several traces a task it is a little too low, as they are no independent draws.
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
"""(sequences, search) to a dictionary; ``""`` is the search that was asked for."""


@dataclass(frozen=True)
class Certified:
    """Bits per trace that one dictionary takes."""

    seen: float
    """On the half that it was judged on, the dictionary's own bits included."""
    bound: float
    """What a future trace takes on average, at most, with probability 1 - δ."""


@dataclass(frozen=True)
class Certificate:
    """With routines and with single skills alone."""

    learned: Certified
    singles: Certified
    halves: tuple[int, int]
    """Traces that were learned from, and judged on."""
    longest: int
    """T."""

    @property
    def saves(self) -> float:
        """The share of the singles' bits on the judged half that the routines save for certain."""
        return 1 - self.learned.bound / self.singles.seen if self.singles.seen else 0.0


def certify(
    sequences: Sequence[Skills], tasks: Sequence[str], fit: Fit, longest: int | None, seed: int
) -> Certificate | None:
    """The certificate; None where there are fewer than two tasks.

    Args:
        tasks: the task of each sequence; empty for one that stands alone.
        longest: T; None is the longest sequence.
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

    return Certificate(judged(""), judged("singletons"), halves=(middle, len(cut) - middle), longest=steps)
