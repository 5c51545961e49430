"""What every environment's folder offers to the rest of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from skillpress.interface import Environment, Info, Rendering, ScratchVocabulary
from skillpress.trajectory import Task, Trajectory


class EnvironmentParameters(BaseModel):
    """The ``environment`` section of params.yaml; an environment adds its own keys to these."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    max_steps: Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class SplitSizes:
    """How many tasks of each split to make, after filtering."""

    train: int
    validation: int
    test: int


class Projection(Protocol):
    """φ: a trajectory's actions to atomic skills, at most one each."""

    alphabet: tuple[str, ...]
    """Σ, in a fixed order; K = len(alphabet)."""

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[str | None, ...]:
        """One label per step; None where the rules leave the action unmapped."""
        ...


class Oracle(Protocol):
    """Demonstrates how a task is solved."""

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Actions (in the wording of the compact rendering's responses) that win the task."""
        ...


Hosting = Literal["in_process", "workers", "threads"]
"""Steps of microseconds: in the process that plays. Engines that compute, leak, crash or cannot be pickled:
in worker processes. Environments that wait for something outside (a sandbox, a server): one thread each."""


@dataclass(frozen=True)
class EnvironmentBundle:
    """One environment, whole."""

    parameters: type[EnvironmentParameters]
    make: Callable[[Any], Environment]
    """From the ``environment`` section to an environment that can be reset to any task."""
    make_tasks: Callable[[Any, SplitSizes, int], Iterator[Task]]
    """(section, sizes, seed) to the tasks of all splits, lazily, so that progress can be shown."""
    check_tasks: Callable[[Sequence[Task]], None]
    """Raises ``TaskError`` naming what is wrong: foreign tasks, splits that overlap."""
    projection: Projection
    renderings: Mapping[str, Callable[[Any, int], Rendering]]
    """Name in params.yaml to (section, past turns shown) to the rendering."""
    vocabulary: Callable[[Any, int], ScratchVocabulary] | None
    """(section, past turns shown) to the words of the compact rendering; None where there is none."""
    oracle: Callable[[Any], Oracle]
    """From the ``environment`` section to a demonstrator."""
    explorer_actions: Callable[[Info], Sequence[str]]
    """What the random explorer draws from: the admissible actions that do not undo progress, and
    those that do only where nothing else is left."""
    hosting: Hosting = "in_process"
    """Where its environments live."""
