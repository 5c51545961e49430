"""The engine on torch in this process. It needs no other installation and no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from skillpress.models.engines.parameters import EngineDemand, EngineMemory, EngineParameters

if TYPE_CHECKING:
    from skillpress.core.engine import Engine
    from skillpress.models.policy import Policy


class LocalParameters(EngineParameters):
    """``engine: {name: local}``."""

    exact_seeds: ClassVar[bool] = True
    plays_beside_updates: ClassVar[bool] = True

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        from skillpress.models.engines.local.engine import LocalEngine

        return LocalEngine(policy, demand.growing)

    def memory(self, weights: int, rows: int, row: int, growing: bool) -> EngineMemory:
        """See ``EngineParameters``. Rows beyond the engine's bounds wait for others or are computed again. A
        GPU's engine takes more if twice as much is free (``batches.py``)."""
        from skillpress.models.engines.local.batches import CACHE_BYTES
        from skillpress.models.engines.local.engine import KEPT_BYTES

        kept = min(rows * row, KEPT_BYTES) if growing else 0
        return EngineMemory(weights, cache=max(row, min(rows * row, CACHE_BYTES)), kept=kept)
