"""An isolated stateful Python interpreter, reached only by messages.

The agent, its model and its keys stay on the host; only the interpreter is inside. Every call has a deadline,
at which the code is interrupted, as by Ctrl-C. If that does not help, the sandbox is ended with everything
that runs in it. In both cases the call's ``error`` tells the agent.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox import bubblewrap, gvisor
from skillpress.rollouts.sandbox.bubblewrap import Bubblewrap
from skillpress.rollouts.sandbox.conversation import Conversation, Execution
from skillpress.rollouts.sandbox.gvisor import GVisor
from skillpress.rollouts.sandbox.interpreter import HOME
from skillpress.rollouts.sandbox.isolation import Kind
from skillpress.rollouts.sandbox.limits import Limits, SandboxEndedError
from skillpress.rollouts.sandbox.packages import installed
from skillpress.rollouts.sandbox.process import SandboxProcess
from skillpress.rollouts.sandbox.tools import Tool, Tools
from skillpress.rollouts.sandbox.watchdog import watchdog

PIECE_BYTES = 256 << 10
"""Size of an archive's piece in one message."""


ISOLATION: dict[str, type[Bubblewrap | GVisor]] = {"bubblewrap": Bubblewrap, "gvisor": GVisor}
PROBES = {"bubblewrap": bubblewrap.probe, "gvisor": gvisor.probe}


def check_isolation(isolation: Kind) -> None:
    """Test whether this isolation can be built here.

    Raises:
        SandboxUnavailableError: it cannot; the message names the cause and the remedy.
        UserError: there is no such isolation.
    """
    _known(isolation)
    PROBES[isolation]()


def _known(isolation: str) -> None:
    if isolation not in ISOLATION:
        raise UserError(f"sandbox isolation: {isolation!r} is not one of {', '.join(ISOLATION)}")


class Sandbox:
    """One interpreter, for one thread and one episode; a context manager that ends it."""

    def __init__(self, limits: Limits, process: SandboxProcess) -> None:
        """Use ``start`` instead."""
        self._limits, self._process = limits, process
        self._tools = Tools()
        self._closed = False
        self.ends_at = float("inf")
        """``time.monotonic()`` at which it is ended, whatever it does; infinite for never."""

    @classmethod
    def start(
        cls,
        limits: Limits | None = None,
        tools: Mapping[str, Tool] | None = None,
        *,
        isolation: Kind = "bubblewrap",
        wheels: Path | None = None,
    ) -> Sandbox:
        """Return a sandbox that is ready to execute code.

        Args:
            limits: None for the default ones.
            tools: maps names to functions of the host, which code inside calls by these names; None for none.
            isolation: what isolates it. ``gvisor`` has a kernel of its own and needs gVisor's ``runsc``.
            wheels: a folder of wheels that code inside can import, installed once and without a network;
                None for only the standard library.

        Raises:
            SandboxUnavailableError: this machine cannot isolate; the message names cause and remedy.
            UserError: the wheels cannot be installed, or there is no such isolation.
            SandboxEndedError: the interpreter did not answer in time.
        """
        limits = limits or Limits()
        _known(isolation)
        built = ISOLATION[isolation](limits, None if wheels is None else installed(wheels))
        sandbox = cls(limits, SandboxProcess(limits, built))
        watchdog().watch(sandbox._process, limits)
        if tools:
            sandbox.use_tools(tools)
        return sandbox

    @property
    def reason(self) -> str:
        """Why the host has ended it; empty if it has not."""
        return self._process.reason

    @property
    def waited(self) -> float:
        """Seconds of its calls that did not count, because it waited for a processor of a busy machine."""
        return self._process.waited

    @property
    def end_is_told(self) -> bool:
        """Whether an answer has reported its end; not if it was killed just after an answer."""
        return self._process.end_is_told

    @property
    def pid(self) -> int:
        """Pid of its outermost process."""
        return self._process.pid

    @property
    def first_pid(self) -> int:
        """Pid of the process with whose end the kernel ends all the others."""
        return self._process.first_pid

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return not self._closed and self._process.returncode is None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def use_tools(self, tools: Mapping[str, Tool]) -> None:
        """Let code inside call these functions too; earlier ones with other names remain.

        Raises:
            UserError: a name is not an identifier.
            SandboxEndedError: the sandbox has ended.
        """
        self._tools.add(tools)
        self._succeed(self._conversation().hold([{"do": "tools", "names": list(tools)}]))

    def execute(self, code: str) -> Execution:
        """Run Python code in the interpreter; variables persist.

        Raises:
            SandboxEndedError: the sandbox had ended before this call; as SandboxLostError, it was killed from
                outside.
        """
        return self._conversation().hold([{"do": "execute", "code": code}])

    def bash(self, command: str) -> Execution:
        """Run a command with bash in the working folder. An exit code other than 0 is reported as the error.

        Raises:
            SandboxEndedError: as for ``execute``.
        """
        return self._conversation().hold([{"do": "bash", "command": command}])

    def snapshot(self) -> bytes:
        """Return the working folder as an archive for ``reset``; the host never opens it.

        Code that ran inside controls its contents, so unpack it only in a new sandbox.

        Raises:
            SandboxEndedError: the sandbox has ended, or did not answer.
        """
        archive = bytearray()
        request = {"do": "snapshot", "folder": HOME}
        self._succeed(self._conversation().hold([request], archive))
        return bytes(archive)

    def reset(self, archive: bytes) -> None:
        """Replace the working folder's contents by those of a snapshot, of this sandbox or another one.

        Raises:
            SandboxEndedError: the sandbox has ended, or did not answer.
        """
        pieces = [archive[start : start + PIECE_BYTES] for start in range(0, len(archive), PIECE_BYTES)]
        messages = [{"piece": base64.b64encode(piece).decode()} for piece in [*pieces, b""]]
        self._succeed(self._conversation().hold([{"do": "reset", "folder": HOME}, *messages]))

    def close(self) -> None:
        """End it with all its processes; return when none of them is left."""
        if not self._closed:
            self._closed = True
            self._process.end("It was closed.")
            watchdog().forget(self._process)
            self._process.close()

    def _succeed(self, execution: Execution) -> None:
        """Raise if the host's own call failed: code inside has damaged the interpreter."""
        if execution.error is not None:
            self.close()
            raise SandboxEndedError(f"the sandbox did not carry out its orders: {execution.error}")

    def _conversation(self) -> Conversation:
        if self.alive and time.monotonic() >= self.ends_at:
            self._process.end("The time for this task is over.")
        if not self.alive:
            reason = self._process.reason
            raise SandboxEndedError(f"the sandbox has ended: {reason or 'its interpreter had ended'}")
        return Conversation(self._process, self._limits, self._tools, self.ends_at)
