"""Playing episodes: agents, the collector, vector environments, workers, sandboxes and chat servers.

This package imports ``skills`` and ``core``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.rollouts.collection import Collector, SyncVectorEnv, VectorEnvironment, requests
    from skillpress.rollouts.sandbox import Limits, Sandbox, SandboxPool, SandboxUnavailableError
    from skillpress.rollouts.workers import WorkerPool

__all__ = [
    "Collector",
    "Limits",
    "Sandbox",
    "SandboxPool",
    "SandboxUnavailableError",
    "SyncVectorEnv",
    "VectorEnvironment",
    "WorkerPool",
    "requests",
]

__getattr__, __dir__ = lazy_names(__name__)
