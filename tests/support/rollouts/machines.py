"""Machines of ``skillpress serve-workers`` in threads of this process, which play a game of counting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from gymnasium.spaces import Text

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.environment import CountdownState
from skillpress.integrations.serving import EnvironmentHost, ServingLimits, listen, server_of
from skillpress.integrations.serving.workers import slots_app
from skillpress.rollouts.collection import ThreadVectorEnv
from skillpress.rollouts.remote.pool import WorkersPool
from skillpress.rollouts.remote.slot import MESSAGE_BYTES, Offer
from tests.support.integrations.running import running
from tests.support.integrations.served import Served

KEY = "a-key-of-many-letters"
PLAYED = {"environment.max_steps": 3}
STEPS = 3


class Counting(Environment[str]):
    """Adds its actions up; the third one ends the episode. ``wait 0.1`` takes so long, ``break`` fails."""

    action_space = observation_space = Text(max_length=64)
    at_once: ClassVar[int] = 0
    most_at_once: ClassVar[int] = 0
    actions: ClassVar[list[str]] = []
    """All actions of all episodes, replayed ones included."""
    lock = threading.Lock()

    def __init__(self) -> None:
        self.total, self.steps, self.running = 0, 0, False

    @classmethod
    def forget(cls) -> None:
        """Set the counts to zero."""
        cls.at_once, cls.most_at_once, cls.actions = 0, 0, []

    def reset(self, task: Task) -> tuple[str, Info]:
        self._running(True)
        self.total, self.steps = task.seed, 0
        return str(self.total), self._info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        with self.lock:
            Counting.actions.append(action)
        if action == "break":
            raise ConnectionError("the room fell down")
        if action.startswith("wait"):
            time.sleep(float(action.split()[1]))
        self.total += len(action)
        self.steps += 1
        over = self.steps == STEPS
        if over:
            self._running(False)
        return str(self.total), False, over, self._info()

    def close(self) -> None:
        self._running(False)

    def _running(self, running: bool) -> None:
        with self.lock:
            Counting.at_once += running - self.running
            Counting.most_at_once = max(Counting.most_at_once, Counting.at_once)
            self.running = running

    def _info(self) -> Info:
        state = CountdownState(target=9, pool=(self.total,), steps=self.steps)
        return Info(admissible=("add", "wait 0.01"), measures={"total": float(self.total)}, state=state)


@contextmanager
def machine(
    slots: int = 2,
    make: Callable[[], Environment[str]] = Counting,
    played: Mapping[str, Any] = PLAYED,
    port: int = 0,
    idle_seconds: float = 60.0,
) -> Iterator[Served]:
    """A running machine."""
    host = EnvironmentHost(ThreadVectorEnv(make, 60.0), 60.0)
    offer = Offer(played=played, slots=slots, seconds=60.0, machine="toy", log="/var/log/toy.log")
    with listen("127.0.0.1", port) as listening:
        server = server_of(
            slots_app(offer, host, KEY, idle_seconds),
            ServingLimits(sessions=slots, message_bytes=MESSAGE_BYTES),
        )
        try:
            with running(server, listening, kill=True) as address:
                yield Served(address, server)
        finally:
            host.close()


def pool_of(*urls: str, **settings: Any) -> WorkersPool:
    """A trainer's side of these machines."""
    defaults: dict[str, Any] = {
        "key": KEY,
        "played": PLAYED,
        "packages": ("skillpress.environments",),
        "processes": 1,
        "lockstep": False,
        "strict": True,
        "wait_seconds": 20.0,
    }
    return WorkersPool(urls, **defaults | settings)
