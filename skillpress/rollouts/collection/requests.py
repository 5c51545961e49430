"""Episodes to play: which policy plays which task, from which seed.

A plan of a hundred thousand episodes is stored as the tasks and a few numbers. Each request is created when
it is looked up, so a plan's memory does not grow with its length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import overload

from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.skills.library.files import SkillFolder


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """One episode to play."""

    task: Task
    group_id: str
    rollout_index: int
    seed: int
    """The seed from which every sample of the episode derives, together with the number of its step."""
    policy: str = ""
    """The experiment's name for the policy that plays."""
    run: int = 0
    """The number of the independent run, in an evaluation with several."""
    knowledge: str = ""
    """The knowledge that the agent is given for this episode, see ``AgentState``."""
    skills: tuple[SkillFolder, ...] | None = None
    """Skills that the agent reads in place of those of ``environment.skills``; None keeps the latter."""
    attempt: str = ""
    """The record of an earlier attempt that the agent reflects on before it acts, see ``AgentState``."""


@dataclass(frozen=True)
class _Block:
    """``per_task`` episodes of each task, seeded from one place."""

    tasks: tuple[Task, ...]
    per_task: int
    place: tuple[int | str, ...]
    first: int
    policy: str
    run: int

    def __len__(self) -> int:
        return len(self.tasks) * self.per_task

    def request(self, number: int) -> EpisodeRequest:
        task, index = self.tasks[number // self.per_task], self.first + number % self.per_task
        prefix = "/".join(str(part) for part in self.place[1:])
        return EpisodeRequest(
            task=task,
            group_id=f"{prefix}/{task.task_id}",
            rollout_index=index,
            seed=derive(*self.place, task.task_id, index),
            policy=self.policy,
            run=self.run,
        )


@dataclass(frozen=True)
class Requests(Sequence[EpisodeRequest]):
    """A sequence of requests in which a task's episodes follow each other; ``+`` concatenates two of them."""

    blocks: tuple[_Block, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, self.blocks))]

    def __len__(self) -> int:
        return self._starts[-1]

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.blocks + other.blocks)

    @overload
    def __getitem__(self, number: int) -> EpisodeRequest: ...
    @overload
    def __getitem__(self, number: slice) -> list[EpisodeRequest]: ...
    def __getitem__(self, number: int | slice) -> EpisodeRequest | list[EpisodeRequest]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        index = number + len(self) if number < 0 else number
        if not 0 <= index < len(self):
            raise IndexError(f"request {number} does not exist; there are {len(self)}")
        block = bisect_right(self._starts, index) - 1
        return self.blocks[block].request(index - self._starts[block])


def requests(
    tasks: Sequence[Task],
    per_task: int,
    *place: int | str,
    first: int = 0,
    policy: str = "",
    run: int = 0,
) -> Requests:
    """``per_task`` episodes of each task, seeded from the place in the experiment where they are played.

    Args:
        place: the arguments that :func:`skillpress.core.seeds.derive` gets before the task and rollout index.
            A group's id consists of all of them except the first, the experiment's seed, and of the task.
        first: the index of each task's first rollout, if earlier ones were played at this place.
    """
    return Requests(
        (_Block(tasks=tuple(tasks), per_task=per_task, place=place, first=first, policy=policy, run=run),)
    )
