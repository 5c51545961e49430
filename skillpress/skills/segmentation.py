"""seg(s, 𝒞): the fewest dictionary phrases that a sequence can be cut into, and one such cut.

Let cost(i) be the fewest phrases that cover s[i:]. Then cost(n) = 0 and cost(i) = 1 + min cost(i + |p|) over
the phrases p that s[i:] starts with. Filling it from the end is exact and takes n * L lookups. Several cuts
may need equally few phrases. Reading them off from the left, *longest phrase first*, picks one of them
independently of the dictionary's order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

Symbol = TypeVar("Symbol", bound=Hashable)

UNREACHABLE = float("inf")


def segment(
    sequence: Sequence[Symbol], phrases: AbstractSet[tuple[Symbol, ...]], longest: int
) -> list[tuple[Symbol, ...]]:
    """One minimal segmentation: phrases that concatenate to ``sequence``, as few as possible.

    Args:
        sequence: skills, or their numbers; an empty sequence gives no phrases.
        phrases: 𝒞.
        longest: L, the length of the longest phrase.

    Raises:
        ValueError: no phrases of ``phrases`` concatenate to ``sequence``.
    """
    skills = tuple(sequence)
    cost = costs_from_each_start(skills, phrases, longest)
    cut: list[tuple[Symbol, ...]] = []
    start = 0
    while start < len(skills):
        end = next(
            end
            for end in range(min(start + longest, len(skills)), start, -1)
            # Costs are whole numbers, which floats hold exactly; they are floats because of infinity.
            if skills[start:end] in phrases and cost[end] == cost[start] - 1
        )
        cut.append(skills[start:end])
        start = end
    return cut


def segmentation_cost(
    sequence: Sequence[Symbol], phrases: AbstractSet[tuple[Symbol, ...]], longest: int
) -> int:
    """seg(s, 𝒞), the number of phrases of :func:`segment`; 0 for an empty sequence."""
    return int(costs_from_each_start(tuple(sequence), phrases, longest)[0])


def costs_from_each_start(
    skills: tuple[Symbol, ...], phrases: AbstractSet[tuple[Symbol, ...]], longest: int
) -> list[float]:
    """cost(0), ..., cost(n): the fewest phrases that cover each suffix.

    Raises:
        ValueError: no phrases of ``phrases`` concatenate to ``skills``.
    """
    cost = [UNREACHABLE] * len(skills) + [0.0]
    for start in range(len(skills) - 1, -1, -1):
        for end in range(start + 1, min(start + longest, len(skills)) + 1):
            # Costs are compared first, because slicing and hashing takes longer.
            if cost[end] + 1 < cost[start] and skills[start:end] in phrases:
                cost[start] = cost[end] + 1
    if cost[0] == UNREACHABLE:
        missing = sorted({repr(skill) for skill in skills if (skill,) not in phrases})
        raise ValueError(f"no phrases cover the sequence; skills without a phrase: {', '.join(missing)}")
    return cost
