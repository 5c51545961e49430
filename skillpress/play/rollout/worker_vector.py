"""Environments that live in worker processes: engines that are slow, leak, crash or cannot be pickled.

Each worker holds many environments, and the steps of all that wait for it travel in one message. What an
episode is stands here, in the parent: its task and its actions so far. When a worker has to be replaced,
each of its episodes is replayed from them in the successor, just before its next step, and goes on: none is
lost, none begun twice. The replay must end at the observation that the agent saw.

An action at which ``Limits.attempts`` workers fail (they die, hang, grow without bound, raise an
exception or answer with garbage) ends its episode: the step is invalid and the episode lost, both by
the name ``engine_failed``, and a warning says what happened. A task that cannot even be started is an
error, since its episodes would be missing from every table.

How many processes there are changes nothing but the time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.play.rollout.vector import BrokenEnvironmentError, StepResult
from skillpress.play.workers.pool import WorkerPool, cores
from skillpress.play.workers.worker import Failure, Limits

ENGINE_FAILED = "engine_failed"
"""Outcome of an episode, and reason of a step, at which engines fail again and again."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker has to do in one slot: begin or replay an episode if need be, then act."""

    slot: int
    task: Task | None
    """To start; None where the slot's environment has it already."""
    past: tuple[str, ...] = ()
    """The actions to replay after the start."""
    seen: str | None = None
    """What the environment said last; None at the first start."""
    action: str | None = None
    """The action to take then; None only at the first start."""


@dataclass
class _Episode:
    """What can be replayed."""

    task: Task
    seen: str | None = None
    actions: list[str] = field(default_factory=list)
    """Those that were answered."""
    next: str | None = None
    """The action that is to be answered; None while there is none."""
    home: int | None = None
    """The generation of the worker that holds its environment; None where none does."""


class WorkerVectorEnv:
    """``VectorEnvironment`` in worker processes."""

    def __init__(
        self,
        make: Callable[[], Environment],
        processes: int | None = None,
        limits: Limits = Limits(),  # noqa: B008  frozen
    ) -> None:
        """``make`` is pickled and called in the workers; as many as cores where none are asked for."""
        self._size = processes or cores()
        self.pool = WorkerPool(partial(_HostedEnvironments, make), self._size, limits)
        self._episodes: dict[int, _Episode] = {}
        self._unheard: list[tuple[int, StepResult | Failure]] = []
        """What workers have answered and nobody was told; an error that is raised first leaves it here."""

    def start(self, tasks: Mapping[int, Task]) -> None:
        """See ``VectorEnvironment``."""
        self._episodes |= {slot: _Episode(task) for slot, task in tasks.items()}
        self._submit(tasks, self._first)

    def step(self, actions: Mapping[int, str]) -> None:
        """See ``VectorEnvironment``."""
        for slot, action in actions.items():
            self._episodes[slot].next = action
        self._submit(actions, self._next)

    def completed(self, wait: float) -> list[tuple[int, StepResult]]:
        """See ``VectorEnvironment``."""
        self._unheard += self.pool.completed(0.0 if self._unheard else wait)
        for place, (slot, answer) in enumerate(self._unheard):
            episode = self._episodes[slot]
            if isinstance(answer, Failure) and episode.next is None:
                del self._unheard[place]
                raise cannot("be started", episode.task, answer, slot)
        answers, self._unheard = self._unheard, []
        return [(slot, self._heard(slot, answer)) for slot, answer in answers]

    def abort(self) -> None:
        """Replace the workers that are at work."""
        self._unheard.clear()
        self.pool.abort()

    def forget(self, slot: int) -> None:
        """See ``SeparateEnvironments``. Its environment stays in its worker, for the slot's next episode."""
        self._episodes.pop(slot, None)

    def close(self) -> None:
        """End the worker processes."""
        self.pool.close()

    def _submit(self, slots: Iterable[int], job: Callable[[int], Job]) -> None:
        """Give each worker its slots' jobs, from another place on than the other workers.

        A task's episodes stand side by side. Workers that all began with the first task would each make
        what its first start leaves on the disk for the others (a translated game, a compiled one).
        """
        work: dict[int, list[int]] = {}
        for slot in slots:
            work.setdefault(slot % self._size, []).append(slot)
        for worker, mine in work.items():
            first = len(mine) * worker // self._size
            self.pool.submit(worker, {slot: partial(job, slot) for slot in (*mine[first:], *mine[:first])})

    def _heard(self, slot: int, answer: StepResult | Failure) -> StepResult:
        """Take down what an episode's environment has said."""
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

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make
        self._environments: dict[int, Environment] = {}

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
    """The answer itself, if it is one that a trajectory can hold.

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


def _given_up(episode: _Episode, action: str, failure: Failure) -> StepResult:
    warnings.warn(
        f"task {episode.task.task_id}: its episode ends after {len(episode.actions)} steps, since the "
        f"engine failed at {action!r} again and again: {failure.detail}\n{failure.traceback}",
        RuntimeWarning,
        stacklevel=2,
    )
    episode.home = None
    return StepResult(
        "The environment has ended: its engine failed.",
        True,
        False,
        Info(lost=ENGINE_FAILED, invalid=ENGINE_FAILED),
    )
