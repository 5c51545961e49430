"""The engine on torch, in this process; it needs nothing to be installed or started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.engines.parameters import EngineDemand, EngineParameters

if TYPE_CHECKING:
    from skillpress.interface import Engine
    from skillpress.policy import Policy


class LocalParameters(EngineParameters):
    """``engine: {name: local}``."""

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        """See ``EngineParameters``."""
        from skillpress.engines.local.engine import LocalEngine

        return LocalEngine(policy)
