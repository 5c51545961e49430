"""Models: policies and the scoring of responses, the engines that sample, and macro policies.

This package imports ``environments``, ``rollouts``, ``skills`` and ``core``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.models.policy import Policy, load_policy, save_policy

__all__ = ["Policy", "load_policy", "save_policy"]

__getattr__, __dir__ = lazy_names(__name__)
