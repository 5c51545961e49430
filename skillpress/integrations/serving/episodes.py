"""Episodes of callers without a connection: each has a name, which every call contains.

MCP's newer protocol has no sessions, so the name of its episode is all that a caller holds. An episode is
removed when it is over, when its caller leaves it, or when it has been silent too long.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from skillpress.integrations.serving.host import EnvironmentHost
from skillpress.integrations.serving.messages import SHOWN, AnswerMessage, RefusedMessageError, ResetArguments
from skillpress.integrations.serving.server import ServingLimits
from skillpress.integrations.serving.session import ServedSession, SessionSettings

Found = TypeVar("Found")


class SeenStep(BaseModel):
    """What a caller sees after a start or an action."""

    episode: str
    """The episode's name, which every further call gives."""
    task: str
    observation: str
    admissible: list[str] = Field(default_factory=list)
    """Every action that would be carried out now; empty if the environment does not list them."""
    invalid: str | None = None
    """Why the last action changed nothing; null if it was carried out."""
    reward: float = 0.0
    """The reward of the last action."""
    total_reward: float = 0.0
    done: bool = False
    outcome: Literal["won", "lost", "truncated"] | None = None
    """How the episode ended; null while it runs. Truncated means that the steps ran out."""
    lost: str | None = None
    """Why the episode was lost; null otherwise."""
    measures: dict[str, float] = Field(default_factory=dict)
    """Numbers about the last step, by name."""


@dataclass
class _Episode:
    session: ServedSession
    slot: int
    due: float
    """When its next action may be taken, on the monotonic clock."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while an action is carried out; a second one waits."""
    silence: asyncio.TimerHandle | None = None
    """A timer that ends the episode; it runs only while the server waits for the caller."""

    def heard(self) -> None:
        """Note that the caller has acted."""
        if self.silence is not None:
            self.silence.cancel()


class Episodes:
    """All running episodes by name."""

    def __init__(self, offer: SessionSettings, host: EnvironmentHost, limits: ServingLimits) -> None:
        self._offer, self.host, self._limits = offer, host, limits
        self._running: dict[str, _Episode] = {}
        self._free = list(range(limits.sessions))
        """Free slots as a heap: low numbers are reused first, and their environments with them."""
        heapify(self._free)
        self._ending: set[asyncio.Future[None]] = set()
        """Tasks that end silent episodes; kept here because the event loop holds only weak references."""

    async def start(self, wanted: ResetArguments) -> SeenStep:
        """Start an episode.

        Raises:
            RefusedError: there is no such task, no place for it, or its environment fails.
        """
        return await _to_its_end(self._start(wanted))

    async def act(self, name: str, action: str) -> SeenStep:
        """Act in an episode, which is gone if it is done.

        Raises:
            RefusedError: no such episode is running, or its environment fails.
        """
        return await _to_its_end(self._act(name, action))

    async def leave(self, name: str) -> None:
        """End an episode.

        Raises:
            RefusedError: no such episode is running.
        """
        await _to_its_end(self._end(name, self._named(name)))

    async def _start(self, wanted: ResetArguments) -> SeenStep:
        if not self._free:
            raise RefusedMessageError(
                "CAPACITY_REACHED",
                f"all {self._limits.sessions} places are in use; leave an episode, or try again later: "
                f"{self._silent_ones_end}",
            )
        name, slot = secrets.token_hex(6), heappop(self._free)
        session = ServedSession(self._offer, self.host, slot)
        episode = _Episode(session=session, slot=slot, due=time.monotonic())
        self._running[name] = episode
        async with episode.turn:
            return await self._answered(name, episode, episode.session.reset(wanted))

    async def _act(self, name: str, action: str) -> SeenStep:
        episode = self._named(name)
        async with episode.turn:
            self._named(name)  # it may have ended while this call waited for its turn
            episode.heard()
            await self._pace(episode)
            return await self._answered(name, episode, episode.session.step(action))

    async def _answered(self, name: str, episode: _Episode, asked: Awaitable[AnswerMessage]) -> SeenStep:
        """The content of an answer. It ends the episode if it is done or has failed."""
        try:
            answer = await asked
        except RefusedMessageError:
            await self._end(name, episode)
            raise
        if answer.done:
            await self._end(name, episode)
        elif name in self._running:
            loop = asyncio.get_running_loop()
            episode.silence = loop.call_later(self._limits.idle_seconds, self._forsake, name, episode)
        return _seen(name, episode.session, answer)

    async def _pace(self, episode: _Episode) -> None:
        """Wait if the caller is faster than the limit; a second's worth of actions may come at once."""
        now = time.monotonic()
        episode.due = max(episode.due, now - 1) + 1 / self._limits.messages_per_second
        await asyncio.sleep(max(0.0, episode.due - now))

    async def _end(self, name: str, episode: _Episode) -> None:
        if self._running.pop(name, None) is not None:
            episode.heard()
            await self._free_place(episode)

    def _forsake(self, name: str, episode: _Episode) -> None:
        """End an episode that is silent. Its name is gone at once, so that no call can come between."""
        del self._running[name]
        ending = asyncio.ensure_future(self._free_place(episode))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _free_place(self, episode: _Episode) -> None:
        await episode.session.close()
        heappush(self._free, episode.slot)

    def _named(self, name: str) -> _Episode:
        if name not in self._running:
            raise RefusedMessageError(
                "SESSION_ERROR",
                f"no episode {name[:SHOWN]!r} is running ({self._silent_ones_end}); `start` begins one and "
                "returns its name",
            )
        return self._running[name]

    @property
    def _silent_ones_end(self) -> str:
        return f"one that is silent for {self._limits.idle_seconds:g} seconds ends"


async def _to_its_end(work: Awaitable[Found]) -> Found:
    """The result; a caller that goes away does not leave the work half done."""
    return await asyncio.shield(asyncio.ensure_future(work))


def _seen(name: str, session: ServedSession, answer: AnswerMessage) -> SeenStep:
    observation, done = answer.observation, answer.done
    outcome: Literal["won", "lost", "truncated"] | None = None
    if done:
        ended_otherwise: Literal["lost", "truncated"] = "truncated" if observation.truncated else "lost"
        outcome = "won" if observation.won else ended_otherwise
    return SeenStep(
        episode=name,
        task=str(session.state.task_id),
        observation=observation.text,
        admissible=[] if done else observation.admissible,
        invalid=observation.invalid,
        reward=answer.reward or 0.0,
        total_reward=session.state.total_reward,
        done=done,
        outcome=outcome,
        lost=observation.lost if done else None,
        measures=observation.measures,
    )
