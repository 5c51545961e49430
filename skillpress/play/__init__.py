"""Playing episodes: agents, the collector, vector environments, workers, sandboxes and chat servers.

This package imports ``skills`` and ``core``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.play.rollout import Collector, SyncVectorEnv, VectorEnvironment, requests
    from skillpress.play.sandbox import Limits, Sandbox, SandboxPool, SandboxUnavailableError
    from skillpress.play.workers import WorkerPool

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

_MODULES = {
    "Collector": "rollout",
    "Limits": "sandbox",
    "Sandbox": "sandbox",
    "SandboxPool": "sandbox",
    "SandboxUnavailableError": "sandbox",
    "SyncVectorEnv": "rollout",
    "VectorEnvironment": "rollout",
    "WorkerPool": "workers",
    "requests": "rollout",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
