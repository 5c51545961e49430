"""What one sandbox may use, and what is told when it cannot be had or is over."""

from __future__ import annotations

from dataclasses import dataclass, fields

from skillpress.core.errors import UserError

MOST_SHOWN = 40_000
"""Characters that fit into one message from inside, whatever they are."""


class SandboxUnavailableError(UserError):
    """This machine lets nobody build the walls; the message names the cause and the cure."""


class SandboxEndedError(RuntimeError):
    """The sandbox is over; the message says why."""


class SandboxLostError(SandboxEndedError):
    """It was killed from outside, or by the kernel for want of memory, and not by the code that ran in it."""


class ToolError(Exception):
    """Raised by a tool on the host; its message is what the code inside gets as an exception."""


@dataclass(frozen=True)
class Limits:
    """What a sandbox may use.

    Raises:
        UserError: a limit is not positive, or more is to be shown than a message holds.
    """

    seconds: float = 30.0
    """For one call; the host's tools that it calls count."""
    grace_seconds: float = 1.0
    """Between the interrupt at the deadline and the end of the sandbox."""
    start_seconds: float = 30.0
    """Until the interpreter answers for the first time."""
    memory_mb: int = 512
    """Of all its processes and their sockets together; each process may reserve four times as much address
    space."""
    processes: int = 64
    """Processes and threads together."""
    disk_mb: int = 64
    """In the working folder, as much again in /tmp, and for any one file."""
    inodes: int = 20_000
    """Files and folders, empty ones too, in all writable places together."""
    output_mb: int = 16
    """What one call may print before it is interrupted."""
    messages_mb: int = 16
    """What one call may send to the host, its calls of tools with their arguments, before it is interrupted.
    An archive is bounded by the disk instead."""
    tool_calls: int = 10_000
    """Calls of the host's tools within one call before it is interrupted."""
    shown_characters: int = 10_000
    """Of each of stdout, stderr, result and error; what is in the middle of a longer one is left out."""
    ip_sockets: bool = False
    """Whether code may make sockets of IPv4 and IPv6. They reach nothing but its own loopback, and what they
    hold in the kernel is not counted."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool) and not value > 0:
                raise UserError(f"sandbox limits: {field.name} is {value}; it must be above 0")
        if self.shown_characters > MOST_SHOWN:
            raise UserError(
                f"sandbox limits: shown_characters is {self.shown_characters}; at most {MOST_SHOWN} fit"
            )
