"""The processes of one sandbox as the host sees them: how they are started, checked, interrupted and
ended."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from select import poll

from skillpress.rollouts.sandbox.bubblewrap import Bubblewrap
from skillpress.rollouts.sandbox.channel import Channel
from skillpress.rollouts.sandbox.gvisor import GVisor
from skillpress.rollouts.sandbox.held import Held
from skillpress.rollouts.sandbox.limits import (
    Limits,
    SandboxEndedError,
    SandboxLostError,
    SandboxUnavailableError,
)
from skillpress.rollouts.sandbox.messages import MAX_BYTES, FrameError, Report
from skillpress.rollouts.sandbox.processes import children_of_all, tree, waits

DESCRIPTORS = 128
"""Maximum number of open files of one process inside. Pipes and sockets hold memory that belongs to no
process."""
END_SECONDS = 30.0
"""Maximum time until killed processes have ended on a busy machine; it usually takes about 10 ms."""


class SandboxProcess:
    """A sandbox's outermost process, the processes that end last, and the one that sends its messages, whose
    isolation has been checked.

    The descriptor of a process never refers to another process, unlike its number.
    """

    def __init__(self, limits: Limits, isolation: Bubblewrap | GVisor) -> None:
        """Start the interpreter in this isolation and wait for its first message.

        Raises:
            SandboxUnavailableError: the isolation cannot be built, or is incomplete.
            SandboxEndedError: the interpreter did not answer in time, or was killed from outside.
        """
        self._isolation = isolation
        self._ending = threading.Lock()
        self._closed = False
        self.reason = ""
        """Why the host has ended it; empty if it has not."""
        self.end_is_told = False
        """Whether an answer has reported its end."""
        self.waited = 0.0
        """Seconds of its calls that did not count, because it waited for a processor."""
        self._waits: dict[int, float] = {}
        here, there = socket.socketpair()
        here.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # earlier messages would have no sender
        try:
            with there:
                self._outer = isolation.start(_setting(limits), there)
        except BaseException:
            here.close()
            isolation.close()
            raise
        self.pid = self._outer.pid
        assert self._outer.stdout is not None and self._outer.stderr is not None
        self._outer_fd = os.pidfd_open(self.pid)
        self._last_fds: list[int] = []
        self._sender_fd: int | None = None
        self.first_pid = 0
        """Pid on the host of the process with whose end the kernel ends all processes inside."""
        self.channel = Channel(here, self._outer.stdout.fileno(), self._outer.stderr.fileno(), self._outer_fd)
        try:
            self._await_isolation(limits.start_seconds)
        except BaseException:
            self.end("it did not start")
            self.close()
            raise

    @property
    def returncode(self) -> int | None:
        """The outermost process's exit code, negative for a signal; None while it runs."""
        return self._outer.poll()

    def held(self, inside: Sequence[int]) -> Held:
        """See ``watchdog.Watched``."""
        return self._isolation.held(self.first_pid, inside)

    def waited_since(self) -> float:
        """The longest wait of any of its threads for a processor since the last call, in seconds."""
        before, self._waits = self._waits, waits(tree(self.pid, children_of_all()))
        grown = (seconds - before.get(thread, 0.0) for thread, seconds in self._waits.items())
        return max(grown, default=0.0)

    def interrupt(self) -> None:
        """Do what Ctrl-C does, to the interpreter only."""
        if self._sender_fd is not None:
            self._isolation.interrupt(self._sender_fd)

    def kill(self, reason: str) -> None:
        """Kill all its processes without waiting. If it is called several times, the first reason counts."""
        with self._ending:
            if self._closed:
                return
            if self._outer.poll() is None:
                self.reason = self.reason or reason
            for descriptor in (self._outer_fd, *self._last_fds):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def end(self, reason: str) -> None:
        """Kill all its processes and wait for their end; ``RuntimeError`` after half a minute."""
        self.kill(reason)
        self._outer.wait(END_SECONDS)
        self._await_end()

    def close(self) -> None:
        """Close the descriptors; call it only after ``end``."""
        with self._ending:
            self._closed = True
            self.channel.close()
            for stream in (self._outer.stdout, self._outer.stderr):
                assert stream is not None
                stream.close()
            for descriptor in (self._outer_fd, self._sender_fd, *self._last_fds):
                if descriptor is not None:
                    os.close(descriptor)
            self._isolation.close()

    def _await_end(self) -> None:
        """Wait for the end of the processes that end last."""
        for descriptor in self._last_fds:
            waiting = poll()
            waiting.register(descriptor)
            if not waiting.poll(END_SECONDS * 1000):
                raise RuntimeError(
                    f"sandbox process {self.first_pid} still runs {END_SECONDS:g} s after SIGKILL"
                )

    def _await_isolation(self, seconds: float) -> None:
        _, errors = self.channel.capture(10_000)
        until = time.monotonic() + seconds
        while (report := self._report(until)) is None:
            if self.returncode is not None:
                if self.returncode < 0:
                    raise SandboxLostError("the sandbox was killed from outside while it started")
                self.channel.drain()
                raise SandboxUnavailableError(self._isolation.explain(errors.shown()[0]))
            if time.monotonic() >= until:
                raise SandboxEndedError(
                    f"the interpreter of a sandbox did not answer within {seconds:g} seconds: "
                    f"{errors.shown()[0] or 'it said nothing'}"
                )
        if wrong := gaps(report.isolation, self._isolation.seen):
            raise SandboxUnavailableError(f"the sandbox's isolation check failed: {wrong}. No code was run")
        sender = self.channel.sender
        try:
            lasts = self._isolation.lasts(self.pid, sender)
            self.first_pid = lasts[0]
            self._sender_fd = os.pidfd_open(sender)
            self._last_fds += map(os.pidfd_open, lasts)
            self._waits = waits([sender])  # from its start, which is not a call
        except (FileNotFoundError, ProcessLookupError) as error:
            raise SandboxLostError("the sandbox was killed from outside while it started") from error

    def _report(self, until: float) -> Report | None:
        """The first message; None if none has arrived."""
        try:
            said = self.channel.receive(until)
        except FrameError as error:
            raise SandboxUnavailableError(f"the sandbox's first message cannot be read: {error}") from error
        if said is None or isinstance(said, Report):
            return said
        raise SandboxUnavailableError("the sandbox's first message does not say what isolation it sees")


def gaps(seen: Mapping[str, object], right: Mapping[str, object]) -> str:
    """What is missing in the isolation that the interpreter reports; empty if it is complete."""
    return ", ".join(
        f"{name} is {seen.get(name)!r} and not {value!r}"
        for name, value in right.items()
        if seen.get(name) != value
    )


def _setting(limits: Limits) -> dict[str, object]:
    return {
        "most_bytes": MAX_BYTES,
        "shown_characters": limits.shown_characters,
        "address_space": 4 * limits.memory_mb << 20,
        "file_bytes": limits.disk_mb << 20,
        "descriptors": DESCRIPTORS,
        "processes": limits.processes,
    }
