"""Counts that a collector keeps."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass
class CollectionStatistics:
    """Totals of a collector so far."""

    episodes: int = 0
    environment_steps: int = 0
    decisions: int = 0
    """Number of responses sampled: one per step and per summary."""
    prefilled_tokens: int = 0
    """Number of prompt tokens that the engine computed for them; 0 if the engine does not count them."""
    seconds: float = 0.0
    """Seconds spent playing episodes."""
    agent_seconds: float = 0.0
    """The part of ``seconds`` in which the agent had an open request."""

    def __add__(self, other: CollectionStatistics) -> CollectionStatistics:
        """The sums of both totals."""
        both = zip(astuple(self), astuple(other), strict=True)
        return CollectionStatistics(*(mine + others for mine, others in both))

    def __sub__(self, before: CollectionStatistics) -> CollectionStatistics:
        """The totals since ``before``."""
        both = zip(astuple(self), astuple(before), strict=True)
        return CollectionStatistics(*(now - then for now, then in both))
