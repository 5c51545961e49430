"""The episodes of one connection, one after the other, and the tasks it may play.

Our environments return no reward, but the protocol has one, so the session makes it: the judgement that our
agent makes of its own step (``reward`` in params.yaml), summed over its parts. Parts about a response's
format are left out, since the server sees no responses.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from skillpress.core.interface import AgentState, StepReward
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Task
from skillpress.integrations.serving import messages
from skillpress.integrations.serving.host import EnvironmentHost
from skillpress.integrations.serving.messages import ClientMessage, EpisodeState, RefusedMessageError
from skillpress.rollouts.collection import BrokenEnvironmentError, StepResult


class TaskBook:
    """Tasks by seed, by name, or in turn."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._by_name = {task.task_id: task for task in tasks}
        self._turn = itertools.count()

    def __len__(self) -> int:
        return len(self._tasks)

    def choose(self, seed: int | None, task_id: str | None) -> Task:
        """The named task; else task number ``seed``, modulo the number of tasks; else the next task in turn
        over all requests without seed and name.

        Raises:
            RefusedError: no task has this name, or both were given.
        """
        if task_id is None:
            return self._tasks[(next(self._turn) if seed is None else seed) % len(self._tasks)]
        if seed is not None:
            raise RefusedMessageError(
                "VALIDATION_ERROR", "reset: seed and task_id both choose a task; give one"
            )
        if task_id not in self._by_name:
            raise RefusedMessageError(
                "VALIDATION_ERROR",
                f"reset: there is no task {task_id[: messages.SHOWN]!r}; one is {self._tasks[0].task_id!r}",
            )
        return self._by_name[task_id]


@dataclass(frozen=True)
class SessionSettings:
    """The settings that all sessions share."""

    environment: str
    tasks: TaskBook
    reward: StepReward


class ServedSession:
    """Answers the messages of one connection. Its environment lives in one slot of the host."""

    def __init__(self, offer: SessionSettings, host: EnvironmentHost, slot: int) -> None:
        self._offer, self._host, self._slot = offer, host, slot
        self.state = EpisodeState(environment=offer.environment)
        """The answer to ``state``."""
        self._agent: AgentState | None = None
        """The state from which an agent would judge its next step; None between episodes."""
        self._asked: asyncio.Future[StepResult] | None = None
        """The last request to the environment."""

    async def answer(self, message: ClientMessage) -> str | None:
        """The answer to a message; None for ``close``.

        Raises:
            RefusedError: the message cannot be answered. The session continues.
        """
        match message.kind:
            case "reset":
                wanted = messages.reset_arguments(message.data)
                return messages.written("observation", await self.reset(wanted))
            case "step":
                action = messages.action_text(message.data)
                return messages.written("observation", await self.step(action))
            case "state":
                return messages.written("state", self.state)
            case "close":
                return None

    async def close(self) -> None:
        """Give the slot back once its environment has answered, because a running step cannot be ended."""
        if self._asked is not None:
            with suppress(BrokenEnvironmentError):
                await self._asked
        self._host.forget(self._slot)

    async def reset(self, wanted: messages.ResetArguments) -> messages.AnswerMessage:
        """Start an episode; returns the first observation.

        Raises:
            RefusedError: there is no such task, or the environment has failed.
        """
        task = self._offer.tasks.choose(wanted.seed, wanted.task_id)
        self._agent = None
        answer = await self._ask(task)
        self._agent = AgentState(task=task, observation=answer.observation, info=answer.info)
        self.state = EpisodeState(
            episode_id=wanted.episode_id or uuid.uuid4().hex,
            environment=self._offer.environment,
            task_id=task.task_id,
        )
        return messages.answer_of(task, answer, None)

    async def step(self, action: str) -> messages.AnswerMessage:
        """Act; returns the observation, with the reward.

        Raises:
            RefusedError: no episode is running, or the environment has failed.
        """
        before, self._agent = self._agent, None
        if before is None:
            raise RefusedMessageError("EXECUTION_ERROR", "no episode is running; send a reset first")
        answer = await self._ask(action)
        parts = self._offer.reward(before, ParsedAction("", action), answer.observation, answer.info)
        reward = sum(part.value for part in parts)
        done = answer.terminated or answer.truncated
        if not done:
            self._agent = AgentState(task=before.task, observation=answer.observation, info=answer.info)
        self.state = self.state.model_copy(
            update={
                "step_count": self.state.step_count + 1,
                "done": done,
                "total_reward": self.state.total_reward + reward,
            }
        )
        return messages.answer_of(before.task, answer, reward)

    async def _ask(self, what: Task | str) -> StepResult:
        self._asked = asyncio.wrap_future(self._host.ask(self._slot, what))
        try:
            return await asyncio.shield(self._asked)
        except BrokenEnvironmentError as error:
            raise RefusedMessageError("EXECUTION_ERROR", str(error)) from error
