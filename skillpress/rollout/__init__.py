"""Many episodes at once: the collector that keeps every slot busy, and where its worlds live."""

from __future__ import annotations

from skillpress.rollout.collector import CollectionStatistics, Collector, EpisodeRequest, requests
from skillpress.rollout.journal import Journal
from skillpress.rollout.workers import WorkerWorlds
from skillpress.rollout.worlds import InProcess, WorldError, Worlds

__all__ = [
    "CollectionStatistics",
    "Collector",
    "EpisodeRequest",
    "InProcess",
    "Journal",
    "WorkerWorlds",
    "WorldError",
    "Worlds",
    "requests",
]
