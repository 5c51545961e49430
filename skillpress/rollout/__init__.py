"""Many episodes at once: the collector that keeps every slot busy."""

from __future__ import annotations

from skillpress.rollout.collector import CollectionStatistics, Collector, EpisodeRequest, requests

__all__ = ["CollectionStatistics", "Collector", "EpisodeRequest", "requests"]
