"""The limits of one sandbox, and the errors raised when it cannot be built or has ended."""

from __future__ import annotations

from dataclasses import dataclass, fields

from skillpress.core.errors import UserError

MOST_SHOWN = 40_000
"""Any text of this many characters fits into one message from inside."""

MOST_WAITED = 3.0
"""A call may wait for a processor for this multiple of its time. There has to be a bound, since code that
starts many processes makes itself wait."""


class SandboxUnavailableError(UserError):
    """This machine does not allow isolation; the message names the cause and the remedy."""


class SandboxEndedError(RuntimeError):
    """The sandbox has ended; the message says why."""


class SandboxLostError(SandboxEndedError):
    """The sandbox was killed from outside, or by the kernel for lack of memory, not by its code."""


class ToolError(Exception):
    """Raised by a tool on the host. The code inside gets the message as an exception."""


@dataclass(frozen=True)
class Limits:
    """The limits of one sandbox.

    Raises:
        UserError: a limit is not positive, or ``shown_characters`` is more than a message holds.
    """

    seconds: float = 30.0
    """Maximum time for one call, including the host's tools that it calls, but not the time in which it waits
    for a processor of a busy machine."""
    grace_seconds: float = 1.0
    """Time between the interrupt at the deadline and the end of the sandbox."""
    start_seconds: float = 30.0
    """Maximum time until the interpreter answers for the first time."""
    memory_mb: int = 512
    """Memory of all processes and sockets together. Each process may reserve four times as much."""
    processes: int = 64
    """Number of processes and threads together."""
    disk_mb: int = 64
    """Size of the working folder, of /tmp, and of any single file."""
    inodes: int = 20_000
    """Number of files and folders, including empty ones, in all writable places together."""
    output_mb: int = 16
    """Maximum output of one call before it is interrupted."""
    messages_mb: int = 16
    """Maximum size of the messages that one call sends to the host, which are its tool calls with their
    arguments, before it is interrupted. The size of an archive is bounded by ``disk_mb`` instead."""
    tool_calls: int = 10_000
    """Maximum number of tool calls within one call before it is interrupted."""
    shown_characters: int = 10_000
    """Maximum length of each of stdout, stderr, result and error. Longer texts are cut in the middle."""
    ip_sockets: bool = False
    """Whether code may make IPv4 and IPv6 sockets: on its own loopback, with uncounted memory."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool) and not value > 0:
                raise UserError(f"sandbox limits: {field.name} is {value}; must be above 0")
        if self.shown_characters > MOST_SHOWN:
            raise UserError(
                f"sandbox limits: shown_characters is {self.shown_characters}, must be at most {MOST_SHOWN}"
            )
