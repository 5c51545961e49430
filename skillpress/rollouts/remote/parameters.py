"""The section ``workers`` of params.yaml.

The section does not make its part: all stages read parameters, so they would then depend on the code that
plays.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from skillpress.core.http_clients import server_urls
from skillpress.core.sections import Positive, Section


class WorkersParameters(Section):
    """Other machines that run the environments (docs/scaling.md). They affect only the time, not the
    episodes.
    """

    urls: list[str] = Field(default_factory=list)
    """Servers of `skillpress serve-workers`; if empty, environments run on the trainer's machine."""
    wait_seconds: Positive = 600.0
    """How long an episode waits for a free slot, or for a lost machine's return, before the run stops."""

    @field_validator("urls")
    @classmethod
    def _urls_are_servers(cls, urls: list[str]) -> list[str]:
        return server_urls(urls)
