"""Episodes to play: who plays what, from which seed.

A plan of a hundred thousand episodes is the tasks and a few numbers: each request is made when it is looked
at, so that a plan takes no memory for its length.
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


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """One episode to play."""

    task: Task
    group_id: str
    rollout_index: int
    seed: int
    """Every sample of the episode derives from it and from the number of its step."""
    policy: str = ""
    """What the experiment calls the policy that plays."""
    run: int = 0
    """Which of an evaluation's independent runs."""
    knowledge: str = ""
    """What the agent is given to play it with, see ``AgentState``."""
    attempt: str = ""
    """The account of an earlier attempt that it is to reflect on before it acts, see ``AgentState``."""


@dataclass(frozen=True)
class _Block:
    """``per_task`` episodes of each task, at one place."""

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
    """A sequence of requests, a task's episodes one after the other; ``+`` puts one behind another."""

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
            raise IndexError(f"request {number} of {len(self)}")
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
    """``per_task`` episodes of each task, seeded from where in the experiment they are played.

    Args:
        place: what :func:`skillpress.core.seeds.derive` is given before the task and rollout index. A group's
            id is made of all of it but the first part, the experiment's seed, and of the task.
        first: the index of each task's first rollout, where it was played at this place before.
    """
    return Requests(
        (_Block(tasks=tuple(tasks), per_task=per_task, place=place, first=first, policy=policy, run=run),)
    )
