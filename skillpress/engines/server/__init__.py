"""The engine on vLLM servers that somebody else started, one or several, by URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from skillpress.engines.parameters import EngineDemand, EngineParameters

if TYPE_CHECKING:
    from skillpress.interface import Engine
    from skillpress.policy import Policy


class ServerParameters(EngineParameters):
    """``engine: {name: server, urls: [http://127.0.0.1:8801], answer_seconds: 600}``."""

    shared: ClassVar[bool] = True

    urls: Annotated[list[str], Field(min_length=1)]
    """The servers; all of them sample from the same weights."""
    answer_seconds: Annotated[float, Field(gt=0)]
    """How long one response, or one update of the weights, may take before it is given up."""

    @field_validator("urls")
    @classmethod
    def _urls_are_servers(cls, urls: list[str]) -> list[str]:
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
                raise ValueError(f"{url!r} is no server; allowed: http://HOST:PORT")
        if len({url.rstrip("/") for url in urls}) < len(urls):
            raise ValueError("names a server twice")
        return [url.rstrip("/") for url in urls]

    def make(self, policy: Policy, demand: EngineDemand) -> Engine:
        """See ``EngineParameters``."""
        from skillpress.engines.server.engine import ServerEngine

        return ServerEngine(policy, demand, self.urls, self.answer_seconds)
