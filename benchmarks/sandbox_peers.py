"""What sandboxes are compared with, both without isolation: an interpreter in a loop, and Jupyter."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

from skillpress.rollouts.sandbox import Limits

PATIENT = Limits(seconds=300, start_seconds=300)
"""Long limits, for a machine with other work."""
LOOP = (
    "import json, sys\nspace = {}\nfor line in sys.stdin:\n"
    "    print(json.dumps(repr(eval(json.loads(line), space))), flush=True)"
)


class Peer(Protocol):
    """A started interpreter that has given its first reply."""

    @property
    def pid(self) -> int:
        """Its process, whose memory is measured."""

    def execute(self, code: str) -> Any:
        """Evaluate an expression and wait for its value."""

    def close(self) -> None:
        """End the interpreter."""


class BareLoop:
    """An interpreter that reads from a pipe: no isolation, no limits, no deadline."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", "-B", "-c", LOOP]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.execute("1")

    def execute(self, code: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        with self._process as process:
            process.kill()


class BareKernel:
    """ipykernel over ipc, with Jupyter's own client; no isolation."""

    def __init__(self) -> None:
        from jupyter_client.manager import KernelManager

        self._folder = tempfile.TemporaryDirectory()
        connection = str(Path(self._folder.name, "kernel.json"))  # sockets lie beside it
        self._manager = KernelManager(transport="ipc", connection_file=connection)
        self._manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENT.start_seconds)
        self.pid = self._manager.provisioner.pid

    def execute(self, code: str) -> str:
        number, shown = self._client.execute(code), ""
        while True:  # Jupyter's execute_interactive polls with its own delay
            message = self._client.get_iopub_msg(timeout=PATIENT.seconds)
            if message["parent_header"].get("msg_id") != number:
                continue
            if message["msg_type"] == "execute_result":
                shown = message["content"]["data"]["text/plain"]
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                self._client.get_shell_msg(timeout=PATIENT.seconds)
                return str(shown)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._folder.cleanup()
