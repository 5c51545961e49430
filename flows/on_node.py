"""The work of a Ray node in an ablation: one command in the node's own checkout.

Ray copies this function to the node, whose checkout may have another revision of this project. So it imports
only the standard library; the command checks the revision.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = "SKILLPRESS_ROOT"
"""The environment variable, set when Ray starts on a node, with the node's checkout."""
TAIL_LINES = 15
GRACE_SECONDS = 20.0
"""How long a command and its stages may take to end after SIGTERM."""
LOOK_SECONDS = 2.0
"""Seconds between looks at the command and at this node's Ray process."""


@dataclass(frozen=True)
class NodeOutcome:
    """How an experiment ended on a node."""

    node: str
    """The machine and its checkout."""
    exit_code: int
    said: str
    """The last lines of its log."""
    lock: str
    """The workspace's dvc.lock, which lists every result with its hash; empty if there is none."""


def reproduce_here(name: str, options: list[str], variables: dict[str, str]) -> NodeOutcome:
    """Run ``skillpress run`` with these options in this node's checkout.

    Args:
        name: the workspace's name; the command's output goes to workspaces/<name>.log.
        variables: environment variables for the command.

    Raises:
        RuntimeError: this node has dropped out of the cluster; the command was ended.
    """
    machine = os.uname().nodename
    if CHECKOUT not in os.environ:
        return NodeOutcome(
            machine, 2, f"{CHECKOUT} does not name the checkout where Ray was started here", ""
        )
    workspaces = Path(os.environ[CHECKOUT]) / "workspaces"
    log, lock = workspaces / f"{name}.log", workspaces / name / "dvc.lock"
    workspaces.mkdir(exist_ok=True)
    # The command ends with this Ray process, and that one with the driver.
    environment = os.environ | variables | {"SKILLPRESS_PARENT": str(os.getpid())}
    with open(log, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        command = [sys.executable, "-m", "skillpress.pipeline.reproduce", *options]
        process = subprocess.Popen(
            command, cwd=workspaces.parent, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        code = _wait(process)
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    left = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return NodeOutcome(f"{machine}, {workspaces.parent}", code, "\n".join(said), left)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The command's exit code. The command is ended if this node's Ray process ends, because another machine
    may get the experiment."""
    node = os.getppid()
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != node:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)
                process.kill()
                process.wait()
                raise RuntimeError("Ray's process of that node has ended") from None
