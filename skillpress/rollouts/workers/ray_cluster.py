"""A Ray cluster as seen by a program that starts work on it (extra ``ray``; docs/scaling.md).

The address is always passed explicitly: otherwise Ray would attach to any cluster that it finds. With a wrong
token, Ray waits for ever, so the connection is made in a thread that can be abandoned.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skillpress.core.errors import UserError

CONNECT_SECONDS = 60.0
"""Maximum time until the cluster lets this program connect."""
_PROBE_SECONDS = 10.0


class ClusterError(UserError):
    """The cluster cannot be used; the message says what is missing."""


@contextmanager
def connected(address: str, seconds: float = CONNECT_SECONDS) -> Iterator[None]:
    """Act as a driver of the cluster at ``address`` (HOST:PORT) within the block.

    Raises:
        ClusterError: Ray is not installed, the address is invalid, or no cluster answers there in time.
    """
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "a cluster needs Ray: pip install --constraint constraints.txt -e '.[ray]'"
        ) from None
    _probe(address)
    _within(seconds, address, lambda: ray.init(address, log_to_driver=False, logging_level=logging.ERROR))
    try:
        yield
    finally:
        ray.shutdown()


def live_nodes() -> dict[str, str]:
    """Maps the id of every living node of the connected cluster to its name, with its resources."""
    import ray

    return {node["NodeID"]: _named(node) for node in ray.nodes() if node["Alive"]}


def _named(node: dict[str, Any]) -> str:
    kinds = {kind: node["Resources"].get(kind, 0.0) for kind in ("CPU", "GPU")}
    has = ", ".join(f"{amount:g} {kind}" for kind, amount in kinds.items() if amount) or "no CPU"
    return f"{node['NodeName']} ({has})"


def _probe(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise ClusterError(f"cluster: {address!r} is not HOST:PORT, such as node0:6379 of `ray start --head`")
    try:
        socket.create_connection((host, int(port)), _PROBE_SECONDS).close()
    except OSError as error:
        raise ClusterError(f"cluster: no cluster answers at {address} ({error})") from error


def _within(seconds: float, address: str, connect: Any) -> None:
    """Call ``connect`` in a thread; raise its exception, or an error if it takes too long."""
    failed: list[Exception] = []

    def call() -> None:
        try:
            connect()
        except Exception as error:  # noqa: BLE001  raised again below
            failed.append(error)

    thread = threading.Thread(target=call, name="connects to Ray", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise ClusterError(
            f"cluster: {address} answers, but has not let this program in after {seconds:g} seconds; with "
            "RAY_AUTH_MODE=token the token of RAY_AUTH_TOKEN_PATH must be the cluster's own"
        )
    if failed:
        raise ClusterError(f"cluster: {address} cannot be used: {failed[0]}") from failed[0]
