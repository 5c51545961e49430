"""The engine on one or several vLLM servers that were started separately and are given by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from skillpress.core.http_clients import server_urls
from skillpress.models.engines.checks import refuse_multimodal
from skillpress.models.engines.parameters import EngineDemand, EngineMemory, EngineParameters

if TYPE_CHECKING:
    from skillpress.core.engine import Engine
    from skillpress.models.policy import Policy

VLLM = "0.32.0"
"""The servers' version, pinned by the extra ``gpu``: results and the calls for weights depend on it."""


class ServerParameters(EngineParameters):
    """``engine: {name: server, urls: [http://127.0.0.1:8801], answer_seconds: 600}``."""

    shared: ClassVar[bool] = True
    plays_beside_updates: ClassVar[bool] = True

    urls: Annotated[list[str], Field(min_length=1)]
    """The servers; all of them sample from the same weights."""
    answer_seconds: Annotated[float, Field(gt=0)]
    """Maximum time for one response, or one update of the weights."""
    transfer: Literal["auto", "http", "collective"] = "auto"
    """How new weights travel: over HTTP in parts, or by collectives between the learner's GPU and a server's
    (NCCL, never run for want of GPUs; gloo if both are CPUs), with HTTP if that fails.
    ``auto``: by collectives if the learner has a GPU."""
    seeded: bool = False
    """Whether each response has its own seed. vLLM then draws row by row, which takes longer."""

    @field_validator("urls")
    @classmethod
    def _urls_are_servers(cls, urls: list[str]) -> list[str]:
        return server_urls(urls)

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        from skillpress.models.engines.server.engine import ServerEngine

        refuse_multimodal(policy.model, self.name)
        return ServerEngine(
            policy,
            demand,
            self.urls,
            self.answer_seconds,
            transfer=self.transfer,
            seeded=self.seeded,
        )

    def memory(self, weights: int, rows: int, row: int, growing: bool) -> EngineMemory:
        """See ``EngineParameters``. The servers' memory does not count here."""
        return EngineMemory(weights=0, cache=0)

    def libraries(self) -> dict[str, str]:
        """See ``EngineParameters``. The servers' version is checked when the engine is made."""
        return {"vllm": VLLM}
