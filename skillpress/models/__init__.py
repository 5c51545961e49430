"""Models: policies and the scoring of responses, the engines that sample, and macro policies.

This package imports ``environments``, ``play``, ``skills`` and ``core``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.models.policy import Policy, load_policy, save_policy

__all__ = ["Policy", "load_policy", "save_policy"]

_MODULES = {
    "Policy": "policy",
    "load_policy": "policy",
    "save_policy": "policy",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
