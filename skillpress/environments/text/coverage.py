"""How much of a corpus a projection labels.

An alphabet that leaves many actions out makes sequences look more compressible than the behaviour
behind them is. The paper's own table leaves some (``close``, ``inventory``, ``help`` in ALFWorld),
so the share is reported, with the actions that were left out, commonest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.bundle import Projection


@dataclass(frozen=True)
class Coverage:
    """What a projection did with a corpus."""

    steps: int
    labelled: int
    unlabelled: tuple[tuple[str, int], ...]
    """(action, how often), commonest first, then in alphabetical order."""

    @property
    def share(self) -> float | None:
        """Labelled steps by steps; None of an empty corpus."""
        return self.labelled / self.steps if self.steps else None


def coverage(projection: Projection, episodes: Iterable[tuple[Task, Trajectory]]) -> Coverage:
    """How many steps of these episodes get a label, and which do not."""
    steps = 0
    missing: Counter[str] = Counter()
    for task, trajectory in episodes:
        labels = projection(task, trajectory)
        steps += len(labels)
        pairs = zip(trajectory.steps, labels, strict=True)
        missing.update(step.action for step, label in pairs if label is None)
    by_count = sorted(missing.items(), key=lambda item: (-item[1], item[0]))
    return Coverage(steps, steps - missing.total(), tuple(by_count))
