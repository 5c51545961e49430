"""Describes and starts a job in which ranks imitate: the warm start of a policy.

``imitation_job.py`` has the work of one rank and is imported only there, so the process that waits for the
ranks starts without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillpress.core.long_work import importing, long_work
from skillpress.core.resume import ResumeStore
from skillpress.experiment.params import Params
from skillpress.rollouts.workers.ranks import Report, free_port, run_ranks

if TYPE_CHECKING:  # the process that waits needs no torch
    from skillpress.training.imitation.episodes import Counts, Gathered


@dataclass(frozen=True)
class ImitationJob:
    """The warm start of a policy."""

    params: Params
    tasks: Path
    """The tasks that are demonstrated."""
    output: Path
    """The imitating policy's folder."""
    store: ResumeStore
    """Store from which an interrupted job resumes."""
    episodes: Gathered | None = None
    """What ``imitation.episodes`` names; None if it names nothing."""


@dataclass(frozen=True)
class ImitationResult:
    """The figures of an imitation."""

    losses: list[float]
    """Loss of every update, in nats per token."""
    parameters: int
    """Number of the policy's weights."""
    thoughts: int = 0
    """Number of imitated samples from ``imitation.thoughts``."""
    episodes: Counts | None = None
    """What became of the recorded episodes; None without recorded episodes."""
    peak_rate: float = 0.0
    """The largest learning rate of an update."""

    def metrics(self) -> dict[str, float]:
        """``loss`` is the mean over the last tenth of the updates; figures that are unknown are left out."""
        found = {"parameters": float(self.parameters)}
        if self.losses:
            last = self.losses[-(len(self.losses) // 10 + 1) :]
            found |= {
                "loss": sum(last) / len(last),
                "updates": float(len(self.losses)),
                "peak_learning_rate": self.peak_rate,
            }
        if self.thoughts:
            found["thoughts"] = float(self.thoughts)
        if self.episodes is not None:
            found |= {f"recorded_{name}": float(count) for name, count in asdict(self.episodes).items()}
        return found


@dataclass(frozen=True)
class ImitationProgress:
    """Progress of one rank."""

    done: int
    """Number of its finished demonstrations, or of updates."""
    total: int
    loss: float | None = None
    """Loss of the last update; None while demonstrations are made."""


def imitate_demonstrations(
    job: ImitationJob, on_progress: Callable[[int, ImitationProgress], None]
) -> ImitationResult:
    """Run the job to its end. Progress is reported with its rank; only rank 0 reports updates."""
    return run_ranks(partial(_imitate, job, free_port()), job.params.processes, on_progress)[0]


def without_demonstrations(params: Params, output: Path) -> ImitationResult:
    """Save the starting policy as it is."""
    from skillpress.experiment.experiment import Experiment
    from skillpress.models.policy import save_policy

    policy = Experiment(params).starting_policy()
    save_policy(policy, output)
    return ImitationResult([], policy.parameters)


def _imitate(job: ImitationJob, port: int, rank: int, size: int, report: Report) -> ImitationResult:
    with importing("torch and transformers"):
        from skillpress.experiment.imitation_job import imitate_rank

    with long_work():
        return imitate_rank(job, port, rank, size, report)
