"""Players of policies on this machine, in ``processes`` processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillpress.cli.evaluations.players import Player
from skillpress.core.resume import ResumeStore
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.params import Params
from skillpress.rollouts.collection.requests import EpisodeRequest


class PlaysHere(Player):
    """A player whose episodes cost nothing beyond their tokens."""

    @property
    def policy(self) -> Path | None:
        """A model folder or name; None means the random explorer."""
        return None

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """Write the episodes in the order of ``wanted``; episodes in the store are not played again."""
        job = CollectionJob(
            params=params, sampling="evaluation", plays=[Play(self.policy, wanted)], store=store
        )
        play_episodes(job, output, on_finished)
