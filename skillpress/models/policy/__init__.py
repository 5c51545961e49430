"""The language model: building, loading and saving it, and scoring given responses."""

from __future__ import annotations

from skillpress.core.errors import PolicyError
from skillpress.models.policy.policy import Policy, load_policy, save_policy

__all__ = ["Policy", "PolicyError", "load_policy", "save_policy"]
