"""Weights by collectives: the learner and the workers of one server in a group of their own.

The manifest of ``parts.py`` travels over HTTP as always. Its parts then come as broadcasts from the learner
(rank 0), from GPU to GPU with NCCL or from CPU to CPU with gloo, and are verified in the same way before
anything is applied. Each server has its own group, so a server that dies does not stop the others' transfers.

vLLM's own NCCL transfer is not used: it writes into the model while the weights arrive, so a transfer that
breaks off leaves a server without weights; it waits for a lost server without a deadline; and the learner
would need vLLM. **NCCL itself was never run here**, for want of GPUs. Everything else was, with gloo.

Both sides import this module: the learner, and vLLM's worker processes, in which skillpress need not be
installed. So it imports only torch and the standard library.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from skillpress.models.engines.parts import PART_BYTES, TransferManifest, refuse_damage

POLL_SECONDS = 0.0005
"""Interval between two checks whether a broadcast is finished."""
WATCHDOG_SECONDS = 86400.0
"""NCCL's own deadline. It must never be reached, because NCCL's watchdog would end the process."""

GRACE_SECONDS = 5.0
"""How long a broadcast may be late in ending at its own deadline."""

Fill = Callable[[range, torch.Tensor], None]
"""Writes the wanted bytes into a tensor [bytes], of uint8."""


class LinkError(OSError):
    """The group was not made, or a broadcast did not arrive; the message says which."""


class Meeting:
    """The place at which a server's workers meet the learner, in the learner's process."""

    def __init__(self, address: str, seconds: float) -> None:
        """Listen on ``address``, an address of this machine, for ``seconds`` seconds."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, 0), family=family) as listening:
            self.host, self.port = address, int(listening.getsockname()[1])
            self.store = torch.distributed.TCPStore(  # type: ignore[attr-defined]
                self.host,
                self.port,
                is_master=True,
                timeout=timedelta(seconds=seconds),
                wait_for_workers=False,
                master_listen_fd=listening.detach(),
                use_libuv=False,  # the only kind that takes a socket
            )
        self._seconds, self._given_up = seconds, threading.Event()

    def give_up(self) -> None:
        """Make :meth:`join`, in another thread, end with ``LinkError``."""
        self._given_up.set()

    def join(self, size: int, device: torch.device) -> Link:
        """The learner's end of the link, when all workers have joined; ``LinkError`` if they do not join.

        Args:
            size: number of processes, the learner included.
        """
        until = time.monotonic() + self._seconds
        # torch itself waits for ranks without a way to stop, and would keep a process from ending.
        while not self.store.check([_here(rank) for rank in range(1, size)]):
            if self._given_up.is_set():
                raise LinkError(f"a group of {size} was not complete when the wait was ended")
            if time.monotonic() > until:
                raise LinkError(f"a group of {size} was not complete after {self._seconds:g} seconds")
            time.sleep(POLL_SECONDS)
        return Link(self.store, 0, size, device, self._seconds)


class Link:
    """A group of the learner, rank 0, and the workers of one server."""

    def __init__(self, store: Any, rank: int, size: int, device: torch.device, seconds: float) -> None:
        """Meet the others; ``LinkError`` if they do not join within ``seconds``.

        A first small broadcast proves that the group works, before an update depends on it.
        """
        self.patience = seconds
        """How long one broadcast may take, in seconds."""
        self._device, self._ended = device, threading.Event()
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        try:
            self._group = _group(store, rank, size, device, seconds)
        except RuntimeError as error:  # torch's way to say that a rank did not come
            raise LinkError(f"no group of {size} processes after {seconds:g} seconds: {error}") from error
        with self._own_stream():
            self._broadcast(torch.zeros(1, dtype=torch.uint8, device=device), "a first byte")

    @classmethod
    def to(cls, host: str, port: int, rank: int, size: int, device: torch.device, seconds: float) -> Link:
        """A worker's end of the link, met at the learner's :class:`Meeting`."""
        try:
            store = torch.distributed.TCPStore(  # type: ignore[attr-defined]
                host, port, is_master=False, timeout=timedelta(seconds=seconds), use_libuv=False
            )
            store.set(_here(rank), "")
        except RuntimeError as error:
            raise LinkError(f"no learner answers at {host}:{port}: {error}") from error
        return cls(store, rank, size, device, seconds)

    def send(self, manifest: TransferManifest, fill: Fill) -> None:
        """Broadcast all parts, which ``fill`` writes; ``LinkError`` if one does not arrive in time."""
        with self._own_stream():
            room = torch.empty(min(PART_BYTES, manifest.size), dtype=torch.uint8, device=self._device)
            for number, part in enumerate(manifest.parts):
                fill(part, room[: len(part)])
                self._broadcast(room[: len(part)], f"part {number} of the weights")

    def receive(self, manifest: TransferManifest) -> dict[str, torch.Tensor]:
        """The tensors, whole and verified, on this link's device.

        Raises:
            LinkError: a part does not arrive in time.
            ValueError: a part is not what the manifest says.
        """
        with self._own_stream():
            buffer = torch.empty(manifest.size, dtype=torch.uint8, device=self._device)
            for number, part in enumerate(manifest.parts):
                own = buffer[part.start : part.stop]
                self._broadcast(own, f"part {number} of the weights")
                refuse_damage(manifest, number, own)
        return manifest.tensors(buffer)

    def end(self) -> None:
        """Leave the group; a transfer in another thread, or at the other end, ends with ``LinkError``."""
        self._ended.set()
        group, self._group = self._group, None
        if group is not None:
            with suppress(RuntimeError):  # it has failed already
                group.abort()

    def _broadcast(self, data: torch.Tensor, what: str) -> None:
        """Wait for one broadcast from rank 0, never without a deadline."""
        options = torch.distributed.BroadcastOptions()
        options.rootRank = options.rootTensor = 0
        options.timeout = timedelta(seconds=self.patience)  # gloo's; NCCL has no deadline for one broadcast
        until = time.monotonic() + self.patience
        try:
            if self._group is None:
                raise LinkError(f"{what} did not arrive: the group has ended")
            work = self._group.broadcast([data], options)
            while not work.is_completed():
                if self._ended.is_set():
                    raise LinkError(f"{what} did not arrive: the group has ended")
                if time.monotonic() > until + GRACE_SECONDS:
                    raise LinkError(f"{what} did not arrive within {self.patience:g} seconds")
                time.sleep(POLL_SECONDS)
            work.wait()
        except RuntimeError as error:
            raise LinkError(f"{what} did not arrive: {error}") from error

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        """GPU work within the block runs parallel to other work, after the work that was begun before."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            yield
        torch.cuda.current_stream(self._device).wait_stream(self._stream)


def _here(rank: int) -> str:
    """The store's key for a rank that has joined."""
    return f"here/{rank}"


def _group(store: Any, rank: int, size: int, device: torch.device, seconds: float) -> Any:
    """A process group that is independent of torch's default group."""
    if device.type != "cuda":
        return torch.distributed.ProcessGroupGloo(store, rank, size, timedelta(seconds=seconds))
    options = torch.distributed.ProcessGroupNCCL.Options()
    options._timeout = timedelta(seconds=WATCHDOG_SECONDS)
    return torch.distributed.ProcessGroupNCCL(store, rank, size, options)
