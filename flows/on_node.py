"""What a node of a Ray cluster does for an ablation: one command in the node's own checkout.

Ray copies this function to the node, where it may find another revision of this project. It imports nothing
but the standard library; the command checks the revision.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = "SKILLPRESS_ROOT"
"""Names a node's checkout in the environment that Ray was started with there."""
TAIL_LINES = 15
GRACE_SECONDS = 20.0
"""What a command has to end after SIGTERM; its stages end with it."""
LOOK_SECONDS = 2.0
"""From one look at the command and at Ray's process of this node to the next."""


@dataclass(frozen=True)
class Outcome:
    """How an experiment ended on a node."""

    node: str
    """The machine and its checkout."""
    exit_code: int
    said: str
    """The end of its log."""
    lock: str
    """The workspace's dvc.lock, which names every result by its hash; empty where there is none."""


def reproduce_here(name: str, options: list[str], variables: dict[str, str]) -> Outcome:
    """``skillpress run`` with these options, in this node's checkout.

    Args:
        name: of the workspace; what the command prints goes to workspaces/<name>.log.
        variables: set in its environment.

    Raises:
        RuntimeError: this node has dropped out of the cluster; the command was ended.
    """
    machine = os.uname().nodename
    if CHECKOUT not in os.environ:
        return Outcome(machine, 2, f"{CHECKOUT} does not name the checkout where Ray was started here", "")
    workspaces = Path(os.environ[CHECKOUT]) / "workspaces"
    log, lock = workspaces / f"{name}.log", workspaces / name / "dvc.lock"
    workspaces.mkdir(exist_ok=True)
    # The command ends with this process of Ray's, and that one with the driver.
    environment = os.environ | variables | {"SKILLPRESS_PARENT": str(os.getpid())}
    with log.open("a", encoding="utf-8") as output:
        command = [sys.executable, "-m", "skillpress.pipeline.reproduce", *options]
        process = subprocess.Popen(
            command, cwd=workspaces.parent, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        code = _wait(process)
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    left = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return Outcome(f"{machine}, {workspaces.parent}", code, "\n".join(said), left)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The command's exit code.

    Raises:
        RuntimeError: Ray's process of this node has ended. This one lives on after it, but another machine
            may be given the experiment, so the command is ended.
    """
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
