"""Walls around the code that an agent writes: Bubblewrap sandboxes, and a pool that keeps some of them
ready."""

from __future__ import annotations

from skillpress.play.sandbox.bubblewrap import probe
from skillpress.play.sandbox.conversation import Execution
from skillpress.play.sandbox.isolation import find_bwrap
from skillpress.play.sandbox.limits import (
    Limits,
    SandboxEndedError,
    SandboxLostError,
    SandboxUnavailableError,
    ToolError,
)
from skillpress.play.sandbox.pool import Outcome, SandboxPool
from skillpress.play.sandbox.sandbox import Sandbox

__all__ = [
    "Execution",
    "Limits",
    "Outcome",
    "Sandbox",
    "SandboxEndedError",
    "SandboxLostError",
    "SandboxPool",
    "SandboxUnavailableError",
    "ToolError",
    "find_bwrap",
    "probe",
]
