"""The engine on vLLM in this process: continuous batching and a prefix cache, on the learner's own GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from skillpress.engines.parameters import EngineDemand, EngineParameters

if TYPE_CHECKING:
    from skillpress.interface import Engine
    from skillpress.policy import Policy


class VllmParameters(EngineParameters):
    """``engine: {name: vllm, cache_gib: 4}``."""

    most_processes: ClassVar[int | None] = 1

    cache_gib: Annotated[float, Field(gt=0)]
    """Memory for keys and values, in GiB; the weights come on top."""

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        """See ``EngineParameters``."""
        from skillpress.engines.vllm.engine import VllmEngine

        return VllmEngine(policy, demand, self.cache_gib)
