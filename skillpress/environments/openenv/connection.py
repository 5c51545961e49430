"""One WebSocket to an OpenEnv server: a question, its answer within a deadline, and the next question.

Three things can go wrong. First, the connection is lost, or an answer is late. A late answer would be taken
for the answer to the next question, so the connection is closed. A new connection may work. Second, the
server answers with an error: it refused the action or the reset. Third, its messages are not OpenEnv's
protocol; then another attempt does not help.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from skillpress.core.http_clients import route_to

LARGEST_ANSWER = 64 << 20
"""Maximum number of bytes of an answer."""
CLOSE_SECONDS = 2.0
"""Maximum time for a server to close the connection."""
SESSION_ENDED = frozenset({"CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR"})
"""Errors after which this connection has no session; a later connection may have one."""
Kind = Literal["reset", "step", "mcp"]
"""What a message asks for."""
SHOWN = 200
"""Maximum number of characters of a foreign message that an error repeats."""


class LostConnectionError(Exception):
    """No further answers come over this connection."""


class RefusedError(Exception):
    """The server answered with an error and continues; the message is the server's."""


class ForeignProtocolError(RuntimeError):
    """The server's messages are not OpenEnv's protocol, or do not match the section."""


@dataclass(frozen=True)
class Answer:
    """The server's answer to a reset, a step or a request of MCP."""

    observation: Mapping[str, Any]
    reward: float | None
    done: bool


class Connection:
    """A session of a server; it ends with ``close``."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float) -> None:
        """Open the connection.

        Raises:
            LostConnectionError: no server answers there now.
            ForeignProtocolError: a server answers, but it has no WebSocket there.
            UserError: an environment variable that concerns this server cannot be used.
        """
        self._url, route = url, route_to(url)
        try:
            self._socket: ClientConnection = connect(
                url,
                additional_headers=dict(headers),
                proxy=route.proxy,
                ssl=route.certificates if url.startswith("wss:") else None,
                open_timeout=seconds,
                close_timeout=CLOSE_SECONDS,
                ping_interval=None,  # the deadline of a question shows whether the server is alive
                max_size=LARGEST_ANSWER,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            if status >= 500:
                raise LostConnectionError(f"{url} answers with status {status}") from error
            raise ForeignProtocolError(
                f"{url} answers with status {status}: either no OpenEnv server is there, or it requires a key"
            ) from error
        except (OSError, InvalidHandshake, ConnectionClosed) as error:
            raise LostConnectionError(f"{url}: {type(error).__name__}: {error}{route.told}") from error

    def ask(self, kind: Kind, data: Mapping[str, Any], seconds: float) -> Answer:
        """Return the answer to a reset, a step or a request of MCP, whose result is the observation.

        Raises:
            LostConnectionError: there is no answer within ``seconds``, or the session has ended.
            RefusedError: the server refuses the arguments or the action.
            ForeignProtocolError: the answer is not an observation.
        """
        with suppress(ConnectionClosed):  # a server that refused us has sent the reason before it closed
            self._socket.send(json.dumps({"type": kind, "data": data}))
        try:
            said = self._socket.recv(max(0.0, seconds))
        except TimeoutError:
            raise LostConnectionError(f"{self._url} did not answer within {seconds:g} seconds") from None
        except ConnectionClosed as error:
            raise LostConnectionError(f"{self._url}: the connection was closed ({error})") from error
        return self._read(said)

    def close(self) -> None:
        """Close the session and the connection, if the server is still connected."""
        with suppress(ConnectionClosed):
            self._socket.send('{"type": "close"}')
        self._socket.close()

    def _read(self, said: str | bytes) -> Answer:
        try:
            message = json.loads(said)
            kind, data = message["type"], message["data"]
            if kind == "error":
                raise self._error(str(data.get("code", "")), str(data.get("message", "")))
            if kind == "mcp":
                kind, data = "observation", self._result(data)
            observation, reward, done = data["observation"], data.get("reward"), data.get("done", False)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._foreign(said) from error
        if kind != "observation" or not isinstance(observation, dict) or not isinstance(done, bool):
            raise self._foreign(said)
        if reward is not None and not _is_finite(reward):
            raise self._foreign(said)
        return Answer(observation, None if reward is None else float(reward), done)

    def _result(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a JSON-RPC answer as the data of an observation."""
        if error := data.get("error"):
            raise RefusedError(str(error.get("message", "")))
        return {"observation": data["result"]}

    def _error(self, code: str, message: str) -> Exception:
        if code in SESSION_ENDED:
            return LostConnectionError(f"{self._url} says {code}: {message[:SHOWN]}")
        return RefusedError(message)

    def _foreign(self, said: str | bytes) -> ForeignProtocolError:
        return ForeignProtocolError(
            f"{self._url}: {said[:SHOWN]!r} is not an observation of OpenEnv's protocol"
        )


def _is_finite(value: object) -> bool:
    """Whether it is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
