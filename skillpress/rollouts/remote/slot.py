"""One slot of another machine: a connection over which one episode at a time is played.

The machine speaks first: it sends its offer (``Offer``), or says that all its slots are taken. Then each
question (a task to start, an action) gets one answer within its deadline. Pings show within seconds that a
machine has stopped, however long its answers may take.

The key travels with the request for the connection. It is neither in parameters nor in messages. ``https``
encrypts everything; with ``http`` everyone on the network path can read all messages and the key.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from skillpress.core.errors import UserError
from skillpress.core.http_clients import direct_to
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection.vector import BrokenEnvironmentError, StepResult
from skillpress.rollouts.collection.worker_vector import checked
from skillpress.rollouts.remote.values import ForeignMessageError, read, written

_SILENT = logging.getLogger(f"{__name__}.connection")
_SILENT.setLevel(logging.CRITICAL)  # websockets prints a traceback for each loss; the pool reports losses

KEY_VARIABLE = "SKILLPRESS_WORKERS_KEY"
"""The environment variable with the key, on both sides."""
SHORTEST_KEY = 16
PATH = "/slot"
UNAUTHORIZED = 401
MESSAGE_BYTES = 16 << 20
"""The largest message in either direction."""
CONNECT_SECONDS = 10.0
"""Time for a connection and the machine's first message."""
PING_SECONDS, PONG_SECONDS = 5.0, 15.0
"""Interval of pings, and how long a machine may leave one unanswered."""
CLOSE_SECONDS = 1.0
OWN = (
    "skillpress.core.interface",
    "skillpress.rollouts.collection.vector",
    "skillpress.rollouts.remote.slot",
)
"""Modules whose dataclasses may occur in every answer."""


class LostError(Exception):
    """The connection is lost: no further message arrives."""


class FullError(Exception):
    """All slots of the machine are taken."""

    def __init__(self, offer: Offer) -> None:
        super().__init__(f"has {offer.slots} slots, and all are taken")
        self.offer = offer


class FailedError(RuntimeError):
    """The environment failed on the machine, as it would have failed here."""


@dataclass(frozen=True)
class Offer:
    """A machine's description of itself."""

    played: Mapping[str, Any]
    """The facts that determine the contents of its episodes: the keys of ``environment``, data, libraries,
    code."""
    slots: int
    seconds: float
    """Maximum time of one answer, even if it includes a full replay."""
    machine: str
    log: str
    """Path of its server's log."""

    @property
    def told(self) -> str:
        """The machine's name and log, for messages."""
        return f"machine {self.machine}, whose log is {self.log}"


@dataclass(frozen=True)
class Full:
    """The message of a machine whose slots are all taken."""

    offer: Offer


@dataclass(frozen=True)
class EnvironmentFailed:
    """The answer of a machine on which the environment failed."""

    why: str


def key_of_workers() -> str:
    """The key that a machine and its trainers share.

    Raises:
        UserError: the variable is not set, or its value cannot be a key.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError(
            f"{KEY_VARIABLE}: {'holds no key' if key else 'is not set'}; give every machine and the trainer "
            f"the same {SHORTEST_KEY} or more letters and digits, such as `openssl rand -hex 32` prints"
        )
    return key


class Slot:
    """An open connection, for one thread at a time."""

    def __init__(self, url: str, key: str, packages: Collection[str]) -> None:
        """Connect.

        Args:
            url: ``http://HOST:PORT`` or ``https://HOST:PORT``.
            packages: packages whose dataclasses the environment's states consist of.

        Raises:
            LostError: no server of this kind answers there in time.
            FullError: all slots are taken.
            UserError: the machine refuses the key.
        """
        self.url, self._packages = url, (*OWN, *packages)
        try:
            self._socket: ClientConnection = connect(
                url.replace("http", "ws", 1) + PATH,
                additional_headers={"Authorization": f"Bearer {key}"},
                proxy=None,
                ssl=direct_to([url]).certificates if url.startswith("https:") else None,
                open_timeout=CONNECT_SECONDS,
                close_timeout=CLOSE_SECONDS,
                ping_interval=PING_SECONDS,
                ping_timeout=PONG_SECONDS,
                max_size=MESSAGE_BYTES,
                compression=None,
                logger=_SILENT,
            )
        except InvalidStatus as error:
            if error.response.status_code == UNAUTHORIZED:
                raise UserError(
                    f"{KEY_VARIABLE}: {url} refuses this key; give the same key to the machine and to the "
                    f"trainer"
                ) from None
            raise LostError(f"answers with status {error.response.status_code}") from error
        except (OSError, InvalidHandshake, WebSocketException) as error:
            raise LostError(f"cannot be reached ({type(error).__name__}: {error})") from error
        try:
            self.offer = self._offer()
        except BaseException:
            self.close()
            raise

    def start(self, task: Task, seconds: float) -> StepResult:
        """Begin an episode, whatever the slot held before.

        Raises:
            LostError: no readable answer arrives within ``seconds``.
            FailedError: the environment has failed.
        """
        return self._ask(task, seconds)

    def act(self, action: str, seconds: float) -> StepResult:
        """Act in the episode; raises like :meth:`start`."""
        return self._ask(action, seconds)

    def close(self) -> None:
        """Give the slot back to its machine."""
        with suppress(OSError, WebSocketException):
            self._socket.close()

    def drop(self) -> None:
        """End the connection without waiting for a machine that may be gone."""
        with suppress(OSError):
            self._socket.socket.shutdown(socket.SHUT_RDWR)

    def _offer(self) -> Offer:
        said = self._hear(CONNECT_SECONDS)
        if isinstance(said, Full):
            raise FullError(said.offer)
        if not isinstance(said, Offer):
            raise LostError(f"makes no offer; it says {str(said)[:200]}")
        return said

    def _ask(self, what: Task | str, seconds: float) -> StepResult:
        with suppress(ConnectionClosed):  # the reason is read below
            self._socket.send(written(what))
        said = self._hear(min(seconds, self.offer.seconds))
        if isinstance(said, EnvironmentFailed):
            raise FailedError(f"{self.url} ({self.offer.told}): {said.why}")
        if not isinstance(said, StepResult):
            raise LostError(f"answers with {str(said)[:200]}")
        try:
            return checked(said)
        except BrokenEnvironmentError as error:
            raise FailedError(f"{self.url} ({self.offer.told}): {error}") from error

    def _hear(self, seconds: float) -> Any:
        try:
            return read(self._socket.recv(max(0.0, seconds)), self._packages)
        except TimeoutError:
            raise LostError(f"has not answered within {seconds:.0f} seconds") from None
        except ForeignMessageError as error:
            raise LostError(f"its answer cannot be read: {error}") from error
        except (OSError, ConnectionClosed) as error:
            raise LostError(f"the connection has ended ({error})") from error
