"""How much of a corpus a projection labels.

An alphabet that leaves out many actions makes sequences look more compressible than the behaviour really is.
The paper's own table leaves some out (``close``, ``inventory``, ``help`` in ALFWorld). So the share of
labelled steps is reported, with the actions that were left out, most frequent first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.bundle import Projection


@dataclass(frozen=True)
class Coverage:
    """Statistics of a projection on a corpus."""

    steps: int
    labelled: int
    unlabelled: tuple[tuple[str, int], ...]
    """(action, number of occurrences), most frequent first, then in alphabetical order."""

    @property
    def share(self) -> float | None:
        """Labelled steps divided by steps; None for an empty corpus."""
        return self.labelled / self.steps if self.steps else None


def coverage(projection: Projection, episodes: Iterable[tuple[Task, Trajectory]]) -> Coverage:
    """Count the steps of these episodes that get a label, and the actions that do not."""
    steps = 0
    missing: Counter[str] = Counter()
    for task, trajectory in episodes:
        labels = projection(task, trajectory)
        steps += len(labels)
        pairs = zip(trajectory.steps, labels, strict=True)
        missing.update(step.action for step, label in pairs if label is None)
    by_count = sorted(missing.items(), key=lambda item: (-item[1], item[0]))
    return Coverage(steps, steps - missing.total(), tuple(by_count))
