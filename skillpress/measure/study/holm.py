"""Holm's correction for the number of claims (Holm 1979).

The smallest of m p-values is multiplied by m, the next by m - 1, and so on; each is at least the one before
it. Whatever the dependence between the claims, the chance of a single false one among them stays at 5%.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(values: Sequence[float]) -> list[float]:
    """Corrected p-values, in the order given."""
    corrected = [0.0] * len(values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = largest
    return corrected
