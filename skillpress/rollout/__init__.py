"""Many episodes at once: who acts in them, and the collector that keeps every slot busy."""

from __future__ import annotations

from skillpress.rollout.actors import Actor, Decision, ExplorerActor, PolicyActor
from skillpress.rollout.collector import CollectionStatistics, Collector, EpisodeRequest, requests

__all__ = [
    "Actor",
    "CollectionStatistics",
    "Collector",
    "Decision",
    "EpisodeRequest",
    "ExplorerActor",
    "PolicyActor",
    "requests",
]
