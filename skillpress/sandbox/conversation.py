"""One request to a sandbox, until its answer, its deadline or its end."""

from __future__ import annotations

import base64
import binascii
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.sandbox.frames import FrameError, Message
from skillpress.sandbox.limits import Limits, SandboxLostError
from skillpress.sandbox.output import cut_in_the_middle
from skillpress.sandbox.process import SandboxProcess
from skillpress.sandbox.tools import Tools

STATE_LOST = "The sandbox was ended: its variables, files and processes are lost."


@dataclass(frozen=True)
class Execution:
    """What one call did. All text is as an agent may be shown it."""

    stdout: str
    stderr: str
    result: str | None
    """The value of the last expression as text; None where it had none."""
    error: str | None
    """A short traceback, or what ended the call; None where nothing went wrong."""
    duration: float
    """Seconds."""
    truncated: bool
    """Whether anything was left out of the texts."""


class Conversation:
    """Sends a request, carries out the tools that are called meanwhile, and tells how it went."""

    def __init__(
        self, process: SandboxProcess, limits: Limits, tools: Tools, number: int, ends_at: float
    ) -> None:
        """``number`` tells this request's answer from one that came late; at ``ends_at`` (monotonic) the
        sandbox is ended."""
        self._process, self._limits, self._tools, self._number = process, limits, tools, number
        self._began = time.monotonic()
        self._ends_at = ends_at
        self._until = min(self._began + limits.seconds, ends_at)
        self._interrupted = ""
        """Why the code was interrupted; empty while it was not."""
        self.archive = bytearray()
        """What came in pieces."""

    def hold(self, messages: Sequence[Message]) -> Execution:
        """Say all this and wait for the one answer.

        Raises:
            SandboxLostError: it was killed from outside.
        """
        channel = self._process.channel
        stdout, stderr = channel.capture(self._limits.shown_characters)
        answer = None
        try:
            for message in messages:
                channel.send({**message, "number": self._number}, self._until - time.monotonic())
            answer = self._await_answer()
            result, error = _text(answer, "result"), _text(answer, "error")
        except FrameError as error_inside:
            self._process.end(f"What came out of the sandbox was not understood: {error_inside}.")
        except BaseException:  # a tool's own, or Ctrl-C: the code inside still waits for a reply
            self._process.end("The host gave up its call.")
            raise
        if answer is None or self._process.reason:
            result, error = None, self._epitaph()
            self._process.end_is_told = True
        channel.drain()
        return self._execution(stdout.shown(), stderr.shown(), result, error)

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
            duration=time.monotonic() - self._began,
            truncated=stdout[1] or stderr[1] or cut_result or cut_error,
        )

    def _await_answer(self) -> Message | None:
        """The answer; None when the sandbox has ended.

        Raises:
            FrameError: what came is no answer, no call and no piece.
        """
        while True:
            message = self._process.channel.receive(self._until)
            if message is None:
                if self._process.returncode is not None:
                    return None
                self._mind_the_limits()
            elif "done" in message:
                if message["done"] == self._number:  # else it is late or forged
                    return message
            elif "piece" in message:
                self._keep(message["piece"])
            else:
                reply = self._tools.carry_out(message)
                self._process.channel.send(reply, self._until + self._limits.grace_seconds - time.monotonic())

    def _mind_the_limits(self) -> None:
        """Interrupt code at its deadline or when it prints too much, and end it where that does not help."""
        now = time.monotonic()
        flooded = self._process.channel.printed > self._limits.output_mb << 20
        if now >= self._ends_at:
            self._process.end("The time for this task is over.")
        elif self._interrupted:
            if now >= self._until:
                self._process.end(f"{self._interrupted} It did not stop when interrupted.")
        elif flooded or now >= self._until:
            self._interrupted = (
                f"The code printed more than {self._limits.output_mb} MB."
                if flooded
                else f"The code ran longer than {self._limits.seconds:g} seconds."
            )
            self._until = min(now + self._limits.grace_seconds, self._ends_at)
            self._process.interrupt()

    def _keep(self, piece: object) -> None:
        """Add to the archive, which holds one folder and some headers."""
        if not isinstance(piece, str):
            raise FrameError("a piece of an archive is no text")
        try:
            self.archive += base64.b64decode(piece, validate=True)
        except (binascii.Error, ValueError):
            raise FrameError("a piece of an archive is not base64") from None
        if len(self.archive) > (self._limits.disk_mb << 20) + 2048 * self._limits.inodes:
            raise FrameError("an archive is larger than the folder can be")

    def _epitaph(self) -> str:
        """Why there is no answer.

        Raises:
            SandboxLostError: it was killed from outside, by nobody here.
        """
        if self._process.reason:
            return f"{self._process.reason} {STATE_LOST}"
        code = self._process.returncode
        if code is None or code < 0:
            raise SandboxLostError(f"the sandbox was killed from outside (exit code {code})")
        named = (
            f"signal {signal.Signals(code - 128).name}"
            if code - 128 in [*signal.Signals]
            else f"exit code {code}"
        )
        return f"The interpreter ended with {named}. {STATE_LOST}"


def _text(message: Message | None, field: str) -> str | None:
    """A field from inside that is text or null, without what no file could hold.

    Raises:
        FrameError: it is neither.
    """
    value = None if message is None else message.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise FrameError(f"an answer's {field} is no text")
    return value.encode(errors="replace").decode()  # half a surrogate pair
