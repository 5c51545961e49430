"""Episodes on an OpenEnv server, over connections that may break.

An episode consists of its reset arguments and the actions so far. If the connection is lost, a new one is
opened, all of them are sent again, and the episode continues with the interrupted action. The replay must
give the same answers. If it does not, the server draws at random what its reset arguments do not determine,
and the agent's observations would not belong to the episode that it acts in. Such a replay is refused.

The reward of the protocol is a fact (``Info.measures``): an agent may weigh it (``reward.measures``). An
episode that the server calls done is won if its last reward is at least ``won_at``, and otherwise lost as
``done``. A text that the server refuses, or that is not JSON although an action must be JSON, costs a step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gymnasium.spaces import Space, Text

from skillpress.core.errors import TaskError
from skillpress.core.http_clients import route_to
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.openenv.connection import (
    Answer,
    Connection,
    ForeignProtocolError,
    Kind,
    LostConnectionError,
    RefusedError,
)
from skillpress.environments.openenv.parameters import REWARD, OpenEnvParameters
from skillpress.environments.openenv.reading import admissible, seen, shortened, told
from skillpress.environments.openenv.tools import FORM, LIST, call, error_of, shown_by_tools
from skillpress.environments.text.words import encodable

LOST = "done"
"""``Info.lost`` of an episode that the server ended and that was not won."""
REFUSED, NO_JSON = "refused", "no_json"
"""Why an action changed nothing: the server answered with an error, or the action is not a JSON object."""
PATIENCE = 3
"""A start or a step may take this multiple of ``seconds``, all attempts and replays together."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""The pause before the second attempt, and the longest pause, in seconds; pauses double with every
attempt."""


class UnansweredServerError(RuntimeError):
    """The server is unreachable, or has no free session, for longer than the deadline."""


class DifferentReplayError(RuntimeError):
    """The same reset and actions gave a different result."""


@dataclass(frozen=True)
class OpenEnvState:
    """What a rendering may show."""

    first: str
    """O_0, the first observation."""
    steps: int
    """Number of steps taken so far."""
    tools: str = ""
    """The server's tools, a line of JSON each; empty unless the section asks for them."""


@dataclass(frozen=True)
class _Said:
    """The answer that the agent received, which a replay must give again."""

    text: str
    reward: float | None
    done: bool


@dataclass(frozen=True)
class _Exchange:
    """One question that was answered."""

    kind: Kind
    data: Mapping[str, Any]
    said: _Said


class OpenEnv:
    """One episode at a time; ``task.spec`` holds ``url`` and ``reset``. ``close`` ends the session."""

    action_space: Space[str] = Text(max_length=1 << 20)
    observation_space: Space[str] = Text(max_length=1 << 20)

    def __init__(self, parameters: OpenEnvParameters) -> None:
        self._section = parameters
        self._connection: Connection | None = None
        self._past: list[_Exchange] = []
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the task's episode.

        Raises:
            TaskError: the task belongs to another server, or the server refuses its arguments.
            UnansweredServerError: the server does not answer.
        """
        if task.spec.get("url") != self._section.url:
            raise TaskError(
                f"task {task.task_id} is for {task.spec.get('url')!r}, not for {self._section.url!r}"
            )
        self._task, self._past, self._steps, self._over = task, [], 0, False
        try:
            answer, said = self._ask("reset", task.spec["reset"])
        except RefusedError as error:
            raise TaskError(
                f"{self._section.url} refuses the reset {json.dumps(task.spec['reset'])}: {error}"
            ) from error
        self._first = said.text
        self._tools = self._listed() if self._section.tools else ""
        self._admissible = admissible(self._section, answer.observation)
        return said.text, self._info({})

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Send an action.

        Raises:
            RuntimeError: the episode is over, or none was started.
            UnansweredServerError: the server does not answer.
            DifferentReplayError: the connection was lost, and the episode differs when it is replayed.
        """
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        data = self._payload(action)
        if data is None:
            return self._refused(f"The action must be one JSON object{_form(self._section)}.", NO_JSON)
        try:
            answer, said = self._ask("step", data)
        except RefusedError as error:
            return self._refused(f"The action was refused: {error}", REFUSED)
        fields, observation = self._section.fields, answer.observation
        failed = error_of(observation) if self._section.tools else None
        won = said.done and (said.reward or 0.0) >= self._section.won_at
        self._admissible = admissible(self._section, observation)
        info = self._info(
            {REWARD: said.reward or 0.0},
            won=won,
            lost=LOST if said.done and not won else None,
            action=told(observation, fields.action, "action") or action,
            invalid=REFUSED if failed else told(observation, fields.invalid, "invalid"),
        )
        return said.text, said.done, self._truncated(said.done), info

    def close(self) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _payload(self, action: str) -> Mapping[str, Any] | None:
        """The action in the form that the server accepts; None if it must be JSON but is not."""
        if self._section.action and not self._section.tools:
            return {self._section.action: action}
        try:
            found = json.loads(action)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        return call(found) if self._section.tools else found

    def _ask(self, kind: Kind, data: Mapping[str, Any]) -> tuple[Answer, _Said]:
        """Return the server's answer, over a new connection if the existing one is lost.

        Raises:
            RefusedError: the server answered with an error.
        """
        ends, pause = time.monotonic() + PATIENCE * self._section.seconds, FIRST_PAUSE
        while True:
            try:
                connection = self._connection or self._connected(ends)
                answer = connection.ask(kind, data, self._left(ends))
            except RefusedError as error:
                self._past.append(_Exchange(kind, data, _error(error)))
                raise
            except LostConnectionError as error:
                self.close()
                if time.monotonic() + pause >= ends:
                    raise UnansweredServerError(
                        f"{self._section.url} did not answer the {kind} within "
                        f"{PATIENCE * self._section.seconds:g} seconds; its last error: {error}"
                    ) from error
            else:
                said = self._said(kind, answer)
                self._past.append(_Exchange(kind, data, said))
                return answer, said
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _connected(self, ends: float) -> Connection:
        """A new connection on which all earlier exchanges have been replayed."""
        self._connection = Connection(self._section.socket_url, self._section.headers, self._left(ends))
        for number, exchange in enumerate(self._past):
            try:
                answer = self._connection.ask(exchange.kind, exchange.data, self._left(ends))
                said = self._said(exchange.kind, answer)
            except RefusedError as error:
                said = _error(error)
            if said != exchange.said:
                self.close()
                raise DifferentReplayError(
                    f"task {self._task.task_id} on {self._section.url}: the connection was lost, and the "
                    f"episode differs when it is played again, after {number} actions: {exchange.said} "
                    f"became {said}; its reset arguments {json.dumps(self._task.spec['reset'])} do not "
                    "decide it"
                )
        return self._connection

    def _left(self, ends: float) -> float:
        return min(self._section.seconds, max(0.0, ends - time.monotonic()))

    def _said(self, kind: Kind, answer: Answer) -> _Said:
        if self._section.tools:
            text = shown_by_tools(self._section, kind, answer.observation)
        else:
            text = seen(self._section, answer.observation)
        return _Said(text, answer.reward, answer.done)

    def _listed(self) -> str:
        """The server's tools, a line each.

        Raises:
            ForeignProtocolError: the server lists no tools.
        """
        try:
            return self._ask("mcp", LIST)[1].text
        except RefusedError as error:
            raise ForeignProtocolError(
                f"environment.tools: {self._section.url} has no tools: {error}"
            ) from error

    def _refused(self, why: str, invalid: str) -> tuple[str, bool, bool, Info]:
        text = shortened(encodable(why), self._section.observation_characters)
        return text, False, self._truncated(False), self._info({REWARD: 0.0}, invalid=invalid)

    def _truncated(self, done: bool) -> bool:
        truncated = not done and self._steps >= self._section.max_steps
        self._over = done or truncated
        return truncated

    def _info(self, measures: Mapping[str, float], **facts: Any) -> Info:
        state = OpenEnvState(self._first, self._steps, self._tools)
        return Info(admissible=self._admissible, measures=measures, state=state, **facts)


def _form(section: OpenEnvParameters) -> str:
    return f" of the form {FORM}" if section.tools else ""


def _error(error: RefusedError) -> _Said:
    return _Said(f"an error: {error}", None, False)


class Sessions:
    """Environments of one server, each with its own session (``section.SharedEnvironments``)."""

    def __init__(self, parameters: OpenEnvParameters, slots: int) -> None:
        """If the server allows fewer than ``slots`` sessions, the others wait."""
        self._section = parameters
        route_to(parameters.socket_url)  # an unusable proxy is refused here, before any episode
        self.seconds = (PATIENCE + 1) * parameters.seconds
        """More than the maximum time of a start or a step, so that the environment itself reports what is
        wrong."""

    def __call__(self) -> OpenEnv:
        """Make another environment."""
        return OpenEnv(self._section)

    def close(self) -> None:
        """Do nothing: they share no resources."""
