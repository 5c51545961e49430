"""One request to a sandbox, until its answer, its deadline or the sandbox's end."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.rollouts.sandbox.limits import MOST_WAITED, Limits, SandboxLostError
from skillpress.rollouts.sandbox.messages import Answer, Call, FrameError, Message, Piece, Said
from skillpress.rollouts.sandbox.output import cut_in_the_middle
from skillpress.rollouts.sandbox.process import SandboxProcess
from skillpress.rollouts.sandbox.processes import kernel_kills
from skillpress.rollouts.sandbox.tools import Tools
from skillpress.rollouts.sandbox.watchdog import watchdog

NUMBER_BYTES = 16
"""Length of a request's number, which its answer must repeat. No process can guess it."""
KILLED_BY_KERNEL = (
    "the kernel killed a process of the sandbox, as the machine or its cgroup had no memory left"
)
LONG_SECONDS = 1.0
"""Calls that take longer are not charged for the time in which they waited for a processor."""
COMMAND_KILLED = tuple(
    f"the command ended with exit code {code}" for code in (128 + signal.SIGKILL, -signal.SIGKILL)
)
"""The runner's errors for a killed command, by the shell's report or because the shell was killed."""
STATE_LOST = "The sandbox was ended: its variables, files and processes are lost."


@dataclass(frozen=True)
class Execution:
    """The result of one call. All texts are in the form that an agent may be shown."""

    stdout: str
    stderr: str
    result: str | None
    """The value of the last expression as text; None if it has none."""
    error: str | None
    """A short traceback, or what ended the call; None if the call succeeded."""
    truncated: bool
    """Whether anything was left out of the texts."""
    timed_out: bool = False
    """Whether the call was stopped because its time was over."""


class Conversation:
    """Sends a request, carries out the tools called meanwhile, and returns the result."""

    def __init__(self, process: SandboxProcess, limits: Limits, tools: Tools, ends_at: float) -> None:
        """The sandbox is ended at ``ends_at`` (monotonic time)."""
        self._process, self._limits, self._tools = process, limits, tools
        self._number = secrets.token_hex(NUMBER_BYTES)
        self._ends_at = ends_at
        self._began = time.monotonic()
        self._until = min(self._began + limits.seconds, ends_at)
        self._may_wait = MOST_WAITED * limits.seconds
        self._timed_out = False
        self._interrupted = ""
        """Why the code was interrupted; empty if it was not."""
        self._calls = 0
        """Number of tool calls so far."""
        self._archive: bytearray | None = None
        self._kernel_kills = watchdog().kernel_kills

    def hold(self, messages: Sequence[Message], archive: bytearray | None = None) -> Execution:
        """Send messages and wait for their one answer; ``archive`` collects the pieces of one, if requested.

        Raises:
            SandboxLostError: the sandbox was killed from outside.
        """
        channel, self._archive = self._process.channel, archive
        stdout, stderr = channel.capture(self._limits.shown_characters)
        answer: Answer | None = None
        try:
            if all(self._say({**message, "number": self._number}, self._until) for message in messages):
                answer = self._await_answer()
        except FrameError as error_inside:
            self._process.end(f"What came out of the sandbox was not understood: {error_inside}.")
        except BaseException:  # an exception of a tool, or Ctrl-C: the code inside still waits for a reply
            self._process.end("The host gave up its call.")
            raise
        if answer is not None and answer.error in COMMAND_KILLED and self._kernel_has_killed():
            self._process.end(KILLED_BY_KERNEL)
            raise SandboxLostError(KILLED_BY_KERNEL)
        if answer is None or self._process.reason:
            answer = Answer(self._number, None, self._epitaph())
            self._process.end_is_told = True
        if time.monotonic() - self._began >= LONG_SECONDS:
            self._prolong()
        channel.drain()
        return self._execution(stdout.shown(), stderr.shown(), answer.result, answer.error)

    def _execution(
        self, stdout: tuple[str, bool], stderr: tuple[str, bool], result: str | None, error: str | None
    ) -> Execution:
        most = self._limits.shown_characters
        shown_result, cut_result = cut_in_the_middle(result or "", most)
        shown_error, cut_error = cut_in_the_middle(error or "", most)
        if self._interrupted and not self._process.reason:
            shown_error = (
                f"{self._interrupted} It was interrupted; variables are kept.\n{shown_error}".rstrip()
            )
        return Execution(
            stdout=stdout[0],
            stderr=stderr[0],
            result=None if result is None else shown_result,
            error=shown_error or None,
            truncated=stdout[1] or stderr[1] or cut_result or cut_error,
            timed_out=self._timed_out,
        )

    def _say(self, message: Message, until: float) -> bool:
        """Send a message, and return whether the sandbox took it in time.

        If not, part of it may already be sent, so nothing could follow it, and the sandbox is ended.
        """
        taken = self._process.channel.send(message, until - time.monotonic())
        if not taken:
            self._process.end("The interpreter did not read what the host sent.")
        return taken

    def _await_answer(self) -> Answer | None:
        """The answer; None if the sandbox has ended. ``FrameError`` for a forbidden message."""
        while True:
            said = self._process.channel.receive(self._until)
            if isinstance(said, Answer):
                if said.number != self._number:
                    raise FrameError("an answer does not belong to any request of the host")
                return said
            if said is None and self._process.returncode is not None:
                return None
            if (said is not None and not self._take(said)) or self._ended_by_limits():
                return None

    def _take(self, said: Said) -> bool:
        """Whether the sandbox lives after a message other than an answer; ``FrameError`` if forbidden."""
        match said:
            case Call():
                self._calls += 1
                until = min(self._until + self._limits.grace_seconds, self._ends_at)
                return self._say(self._tools.carry_out(said), until)
            case Piece() if self._archive is not None:
                self._archive += said.data
                if len(self._archive) > self._most_in_archive():
                    raise FrameError("an archive is larger than the folder may be")
                return True
            case _:
                raise FrameError(f"a {type(said).__name__.lower()} was not asked for")

    def _most_in_archive(self) -> int:
        """Maximum size in bytes: the contents of one folder and a header for each of its files."""
        return (self._limits.disk_mb << 20) + 2048 * self._limits.inodes

    def _ended_by_limits(self) -> bool:
        """Interrupt code beyond its limits, or end the sandbox if that did not help; whether it did."""
        now, reason = time.monotonic(), ""
        if now >= min(self._until, self._ends_at):
            self._prolong()
        if now >= self._ends_at:
            self._timed_out = True
            reason = "The time for this task is over."
        elif self._interrupted and now >= self._until:
            reason = f"{self._interrupted} It did not stop when interrupted."
        if reason:
            self._process.end(reason)
            return True
        if not self._interrupted and (excess := self._excess(now)):
            self._interrupted = excess
            self._until = min(now + self._limits.grace_seconds, self._ends_at)
            self._process.interrupt()
        return False

    def _prolong(self) -> None:
        """Move the deadlines by the time in which the sandbox waited for a processor. A time limit must not
        depend on how busy the machine is.
        """
        waited = min(self._process.waited_since(), self._may_wait)
        self._may_wait -= waited
        self._until += waited
        self._ends_at += waited
        self._process.waited += waited

    def _excess(self, now: float) -> str:
        """The limit that is exceeded, in words; empty if there is none."""
        limits, channel = self._limits, self._process.channel
        if channel.printed > limits.output_mb << 20:
            return f"The code printed more than {limits.output_mb} MB."
        if self._archive is None and channel.taken > limits.messages_mb << 20:
            return f"The code sent more than {limits.messages_mb} MB to the host."
        if self._calls > limits.tool_calls:
            return f"The code called the host's tools more than {limits.tool_calls} times."
        if now >= self._until:
            self._timed_out = True
            return f"The code ran longer than {limits.seconds:g} seconds."
        return ""

    def _epitaph(self) -> str:
        """Why there is no answer; ``SandboxLostError`` if the sandbox was killed from outside."""
        if self._process.reason:
            return f"{self._process.reason} {STATE_LOST}"
        code = self._process.returncode
        if code == 128 + signal.SIGKILL and self._kernel_has_killed():
            raise SandboxLostError(KILLED_BY_KERNEL)
        if code is None or code < 0:
            raise SandboxLostError(f"the sandbox was killed from outside (exit code {code})")
        named = (
            f"signal {signal.Signals(code - 128).name}"
            if code - 128 in [*signal.Signals]
            else f"exit code {code}"
        )
        return f"The interpreter ended with {named}. {STATE_LOST}"

    def _kernel_has_killed(self) -> bool:
        """Whether the kernel has killed a process anywhere on the machine, for lack of memory, since this
        conversation began.

        The sender of a SIGKILL cannot be determined. If the code killed itself after all, it will do so again
        when its episode is replayed.
        """
        return kernel_kills() != self._kernel_kills
