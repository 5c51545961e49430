"""Holm's correction for the number of claims (Holm 1979).

The smallest of m p-values is multiplied by m, the next by m - 1, and so on; each result is at least the one
before. The chance of one or more false claims stays at 5%, however the claims depend on each other.
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
