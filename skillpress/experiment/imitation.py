"""The warm start of a policy as a job for ranks: described and started.

What a rank does stands in ``imitation_job.py``, which is imported in the ranks: the process that only waits
for them starts without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillpress.core.resume import ResumeStore
from skillpress.experiment.params import Params
from skillpress.play.workers.ranks import Report, free_port, run_ranks


@dataclass(frozen=True)
class ImitationJob:
    """The warm start of a policy."""

    params: Params
    tasks: Path
    """The tasks that are demonstrated."""
    output: Path
    """The imitating policy's folder."""
    store: ResumeStore
    """Where an interrupted job goes on from."""


@dataclass(frozen=True)
class ImitationResult:
    """What an imitation leaves beside the policy."""

    losses: list[float]
    """Nats per token, of every update."""
    parameters: int
    """Weights of the policy."""
    thoughts: int = 0
    """Samples of ``imitation.thoughts`` among those that were imitated."""
    peak_rate: float = 0.0
    """The largest learning rate of an update."""

    def metrics(self) -> dict[str, float]:
        """``loss`` is the mean over the last tenth of the updates; what an imitation lacks is left out."""
        found = {"parameters": float(self.parameters)}
        if self.losses:
            last = self.losses[-(len(self.losses) // 10 + 1) :]
            found |= {
                "loss": sum(last) / len(last),
                "updates": float(len(self.losses)),
                "peak_learning_rate": self.peak_rate,
            }
        return found | ({"thoughts": float(self.thoughts)} if self.thoughts else {})


@dataclass(frozen=True)
class ImitationProgress:
    """How far one rank has come."""

    done: int
    """Demonstrations of its own, or updates."""
    total: int
    loss: float | None = None
    """Of the last update; None while demonstrations are made."""


def imitate_demonstrations(
    job: ImitationJob, on_progress: Callable[[int, ImitationProgress], None]
) -> ImitationResult:
    """Run the job to its end; progress is told with the rank that it is of, updates by rank 0."""
    return run_ranks(partial(_imitate, job, free_port()), job.params.processes, on_progress)[0]


def _imitate(job: ImitationJob, port: int, rank: int, size: int, report: Report) -> ImitationResult:
    from skillpress.experiment.imitation_job import imitate_rank

    return imitate_rank(job, port, rank, size, report)
