"""The section ``workers`` of params.yaml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from skillpress.core.http_clients import server_urls
from skillpress.core.sections import Positive, Section

if TYPE_CHECKING:
    from skillpress.rollouts.remote.pool import WorkersPool


class WorkersParameters(Section):
    """Other machines that run the environments (docs/scaling.md). They change the time, and no episode."""

    urls: list[str] = Field(default_factory=list)
    """Servers of `skillpress serve-workers`; if empty, environments run beside the trainer."""
    wait_seconds: Positive = 600.0
    """How long an episode waits for a free slot, or for a lost machine's return, before the run stops."""

    @field_validator("urls")
    @classmethod
    def _urls_are_servers(cls, urls: list[str]) -> list[str]:
        return server_urls(urls)

    def make(
        self,
        played: Mapping[str, Any],
        packages: Collection[str],
        *,
        processes: int,
        lockstep: bool,
        strict: bool,
    ) -> WorkersPool:
        """The machines, each of which has been met; the arguments are those of ``WorkersPool``."""
        from skillpress.rollouts.remote.pool import WorkersPool
        from skillpress.rollouts.remote.slot import key_of_workers

        return WorkersPool(
            self.urls,
            key_of_workers(),
            played=played,
            packages=packages,
            processes=processes,
            lockstep=lockstep,
            strict=strict,
            wait_seconds=self.wait_seconds,
        )
