"""The host's end of one sandbox: its messages, its output, and whether it is alive."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import time
from collections import deque
from contextlib import suppress

from skillpress.rollouts.sandbox.messages import FrameReader, Message, Said, encode, understood
from skillpress.rollouts.sandbox.output import Captured

READ_BYTES = 1 << 16
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a message's sender, as reported by the kernel."""


class Channel:
    """Reads messages and output concurrently, so that neither can block the other."""

    def __init__(self, connection: socket.socket, stdout: int, stderr: int, process: int) -> None:
        """``connection`` must report senders' credentials since before a process could write to it.
        ``process`` is a descriptor that becomes readable when the sandbox has ended. The others are the
        descriptors of its output."""
        self._connection = connection
        self._frames = FrameReader()
        self._waiting: deque[Said] = deque()
        self._outputs: dict[int, Captured] = {}
        self._stdout, self._stderr = stdout, stderr
        self._selector = selectors.DefaultSelector()
        for descriptor in (connection.fileno(), stdout, stderr, process):
            self._selector.register(descriptor, selectors.EVENT_READ)
        for descriptor in (stdout, stderr):
            os.set_blocking(descriptor, False)
        self._process = process
        self.taken = 0
        """Bytes of messages since ``capture``."""
        self.sender = 0
        """Pid, as seen by this process, of the process that wrote the first message."""

    @property
    def printed(self) -> int:
        """Bytes of output since ``capture``."""
        return sum(output.total for output in self._outputs.values())

    def capture(self, characters: int) -> tuple[Captured, Captured]:
        """Collect stdout and stderr in the returned objects, which show ``characters`` of each."""
        stdout, stderr = Captured(characters), Captured(characters)
        self._outputs = {self._stdout: stdout, self._stderr: stderr}
        self.taken = 0
        return stdout, stderr

    def send(self, message: Message, seconds: float) -> bool:
        """Whether the sandbox accepted the full message in time; one that has ended accepts everything."""
        self._connection.settimeout(max(seconds, 0.001))
        try:
            self._connection.sendall(encode(message))
        except TimeoutError:
            return False
        except OSError:
            pass  # it has ended
        return True

    def receive(self, until: float) -> Said | None:
        """Return the next message. None if the sandbox has ended, the time ``until`` is reached, or output
        arrived.

        A sandbox that never stops sending produces a message for every call, whatever the time is. So the
        caller checks its limits after each call.

        Raises:
            FrameError: the bytes received are not a message.
        """
        if self._waiting:
            return self._waiting.popleft()
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            if key.fd == self._connection.fileno():
                self._read_messages()
            elif key.fd != self._process:
                self._read_output(key.fd)
        return self._waiting.popleft() if self._waiting else None

    def drain(self) -> None:
        """Read the output printed so far, but not output that keeps being printed without end."""
        for descriptor in self._outputs:
            for _ in range(4):  # a pipe holds no more
                if not self._read_output(descriptor):
                    break

    def close(self) -> None:
        """Close the descriptors that belong to this object."""
        self._selector.close()
        self._connection.close()

    def _read_messages(self) -> None:
        try:
            data = self._connection.recv(READ_BYTES, socket.MSG_DONTWAIT) if self.sender else self._first()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(self._connection.fileno())
        self.taken += len(data)
        self._waiting.extend(map(understood, self._frames.feed(data)))

    def _first(self) -> bytes:
        """Read the first bytes and who sent them; later reads leave no room for descriptors."""
        space = socket.CMSG_SPACE(CREDENTIALS.size)
        data, ancillary, _, _ = self._connection.recvmsg(READ_BYTES, space, socket.MSG_DONTWAIT)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.sender = CREDENTIALS.unpack(content)[0]
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        return data

    def _read_output(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._forget(descriptor)
            return False
        if descriptor in self._outputs:
            self._outputs[descriptor].add(data)
        return True

    def _forget(self, descriptor: int) -> None:
        """Stop watching a descriptor whose other end is closed: it would be readable forever."""
        with suppress(KeyError):
            self._selector.unregister(descriptor)
