"""Isolation of the code that an agent writes: Bubblewrap sandboxes, and a pool that keeps some of them
ready."""

from __future__ import annotations

from skillpress.rollouts.sandbox.bubblewrap import probe
from skillpress.rollouts.sandbox.conversation import Execution
from skillpress.rollouts.sandbox.isolation import find_bwrap
from skillpress.rollouts.sandbox.limits import (
    Limits,
    SandboxEndedError,
    SandboxLostError,
    SandboxUnavailableError,
    ToolError,
)
from skillpress.rollouts.sandbox.pool import Outcome, SandboxPool
from skillpress.rollouts.sandbox.sandbox import Sandbox

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
