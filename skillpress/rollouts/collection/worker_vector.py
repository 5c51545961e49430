"""Environments in worker processes, for engines that are slow, leak, crash or cannot be pickled.

Each worker holds many environments, and one message carries the steps of all environments that wait for it.
This parent process keeps what defines an episode: its task and its actions so far. When a worker is replaced,
its successor replays each of its episodes just before the episode's next step and then continues it. No
episode is lost and none is begun twice. The replay must end at the observation that the agent saw.

An action at which ``WorkerLimits.attempts`` workers fail (they die, hang, grow without bound, raise an
exception or return an unusable answer) ends its episode. The step is recorded as invalid and the episode as
lost, both with the name ``engine_failed``, and a warning says what happened. A task that cannot be started
at all is an error, since its episodes would be missing from every table.

The number of processes affects only the time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection.vector import BrokenEnvironmentError, StepResult
from skillpress.rollouts.workers.pool import WorkerPool, cores
from skillpress.rollouts.workers.worker import Failure, WorkerLimits

_LOG = logging.getLogger(__name__)

ENGINE_FAILED = "engine_failed"
"""The outcome of an episode, and the reason of a step, at which engines fail again and again."""


@dataclass(frozen=True, slots=True)
class Job:
    """A worker's job in one slot: begin or replay an episode if needed, then act."""

    slot: int
    task: Task | None
    """The task to start; None if the slot's environment already plays it."""
    past: tuple[object, ...] = ()
    """The actions to replay after the start."""
    seen: str | None = None
    """The environment's last observation; None at the first start."""
    action: object | None = None
    """The action to take next; None only at the first start."""


@dataclass
class _Episode:
    """The record from which an episode can be replayed."""

    task: Task
    seen: str | None = None
    actions: list[object] = field(default_factory=list)
    """The actions that were answered."""
    next: object | None = None
    """The action that is waiting for its answer; None if there is none."""
    home: int | None = None
    """The generation of the worker that holds the episode's environment; None if no worker holds it."""


class WorkerVectorEnv:
    """``VectorEnvironment`` in worker processes."""

    def __init__(
        self,
        make: Callable[[], Environment[Any]],
        processes: int | None = None,
        limits: WorkerLimits = WorkerLimits(),  # noqa: B008  frozen
    ) -> None:
        """``make`` is pickled and called in the workers. The number of processes defaults to the number of
        cores."""
        self._size = processes or cores()
        self.pool = WorkerPool(partial(_HostedEnvironments, make), self._size, limits)
        self._episodes: dict[int, _Episode] = {}
        self._unheard: list[tuple[int, StepResult | Failure]] = []
        """Workers' answers that have not been returned yet. If an error is raised first, they stay here."""

    def start(self, tasks: Mapping[int, Task]) -> None:
        """See ``VectorEnvironment``."""
        self._episodes |= {slot: _Episode(task) for slot, task in tasks.items()}
        self._submit(tasks, self._first)

    def step(self, actions: Mapping[int, object]) -> None:
        """See ``VectorEnvironment``."""
        for slot, action in actions.items():
            self._episodes[slot].next = action
        self._submit(actions, self._next)

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """See ``VectorEnvironment``."""
        # With answers at hand, look for more but do not wait.
        self._unheard += self.pool.completed(0.0 if self._unheard else wait)
        for place, (slot, answer) in enumerate(self._unheard):
            episode = self._episodes[slot]
            if isinstance(answer, Failure) and episode.next is None:
                del self._unheard[place]
                raise cannot("be started", episode.task, answer, slot)
        answers, self._unheard = self._unheard, []
        return [(slot, self._heard(slot, answer)) for slot, answer in answers]

    def abort(self) -> None:
        """Replace the busy workers."""
        self._unheard.clear()
        self.pool.abort()

    def forget(self, slot: int) -> None:
        """See ``SeparateEnvironments``. The environment stays in its worker for the slot's next episode."""
        self._episodes.pop(slot, None)

    def close(self) -> None:
        """End the worker processes."""
        self.pool.close()

    def _submit(self, slots: Iterable[int], job: Callable[[int], Job]) -> None:
        """Give each worker its slots' jobs, each worker beginning at a different place in the list.

        A task's episodes are next to each other. If all workers began with the first task, each would produce
        the files that the task's first start leaves on disk for the others (a translated game, a compiled
        game).
        """
        work: dict[int, list[int]] = {}
        for slot in slots:
            # A slot stays with its worker, whose environment it uses again.
            work.setdefault(slot % self._size, []).append(slot)
        for worker, mine in work.items():
            first = len(mine) * worker // self._size
            self.pool.submit(worker, {slot: partial(job, slot) for slot in (*mine[first:], *mine[:first])})

    def _heard(self, slot: int, answer: StepResult | Failure) -> StepResult:
        """Record an environment's answer in its episode."""
        episode = self._episodes[slot]
        if isinstance(answer, Failure):
            assert episode.next is not None, "a task that cannot be started is an error"
            answer = _given_up(episode, episode.next, answer)
        if episode.next is not None:
            episode.actions.append(episode.next)
            episode.next = None
        episode.seen = answer.observation
        return answer

    def _first(self, slot: int) -> Job:
        episode = self._episodes[slot]
        episode.home = self.pool.generation(slot % self._size)
        return Job(slot, episode.task)

    def _next(self, slot: int) -> Job:
        episode, generation = self._episodes[slot], self.pool.generation(slot % self._size)
        if episode.home == generation:
            return Job(slot, None, action=episode.next)
        episode.home = generation
        return Job(
            slot=slot, task=episode.task, past=tuple(episode.actions), seen=episode.seen, action=episode.next
        )


class _HostedEnvironments:
    """The environments of one worker process."""

    def __init__(self, make: Callable[[], Environment[Any]]) -> None:
        self._make = make
        self._environments: dict[int, Environment[Any]] = {}

    def __call__(self, job: Job) -> StepResult:
        if job.slot not in self._environments:
            self._environments[job.slot] = self._make()
        environment = self._environments[job.slot]
        if job.task is not None:
            observation, info = environment.reset(job.task)
            answer = StepResult(observation, False, False, info)
            for action in job.past:
                answer = StepResult(*environment.step(action))
            if job.seen is not None and answer.observation != job.seen:
                raise BrokenEnvironmentError(
                    f"task {job.task.task_id} replayed differs after {len(job.past)} actions: "
                    f"{job.seen!r} became {answer.observation!r}"
                )
        if job.action is not None:
            answer = StepResult(*environment.step(job.action))
        return checked(answer)


def checked(answer: StepResult) -> StepResult:
    """Return the answer itself if a trajectory can hold it.

    Raises:
        BrokenEnvironmentError: a field has the wrong type, or a text is not valid Unicode.
    """
    info = answer.info
    if not isinstance(info, Info):
        raise BrokenEnvironmentError(f"the environment's info is {info!r}, must be an Info")
    for name, value in (("terminated", answer.terminated), ("truncated", answer.truncated)):
        if not isinstance(value, bool):
            raise BrokenEnvironmentError(f"the environment's {name} is {value!r}, must be a bool")
    texts = {
        "observation": answer.observation,
        "lost": info.lost,
        "action": info.action,
        "invalid": info.invalid,
    }
    for name, text in texts.items():
        if not isinstance(text, str) and (name == "observation" or text is not None):
            raise BrokenEnvironmentError(f"the environment's {name} is {text!r}, must be a text")
        if text is not None and not text.isascii():
            # A lone surrogate, which no file can store, raises an error here.
            text.encode()
    return answer


def cannot(what: str, task: Task, failure: Failure, slot: int | None = None) -> BrokenEnvironmentError:
    """The error that says which task cannot ``be started``, and why."""
    error = BrokenEnvironmentError(
        f"task {task.task_id} of {task.environment} cannot {what}: {failure.detail}", slot
    )
    if failure.traceback:
        error.add_note(f"In the worker process:\n{failure.traceback}")
    return error


def _given_up(episode: _Episode, action: object, failure: Failure) -> StepResult:
    _LOG.warning(
        f"task {episode.task.task_id}: its episode ends after {len(episode.actions)} steps, since the "
        f"engine failed at {action!r} again and again: {failure.detail}\n{failure.traceback}"
    )
    episode.home = None
    return StepResult(
        "The environment has ended: its engine failed.",
        True,
        False,
        Info(lost=ENGINE_FAILED, invalid=ENGINE_FAILED),
    )
