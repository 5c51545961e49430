"""The language model: building and loading it, and the engines that sample from it."""

from __future__ import annotations

from skillpress.policy.local_engine import LocalEngine
from skillpress.policy.policy import Policy, PolicyError, load_policy, save_policy

ENGINES = {"local": LocalEngine}
"""Name in params.yaml to the class that samples; each satisfies ``interface.Engine``."""

__all__ = ["ENGINES", "LocalEngine", "Policy", "PolicyError", "load_policy", "save_policy"]
