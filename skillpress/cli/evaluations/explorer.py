"""Players on this machine, in ``processes`` processes, and the random explorer: the baseline of success."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.cli.evaluations.players import SERVER_OPTIONS, Player, refuse_options
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
        """Write the episodes in the order of ``wanted``; those in the store are not played again."""
        job = CollectionJob(
            params=params, sampling="evaluation", plays=[Play(self.policy, wanted)], store=store
        )
        play_episodes(job, output, on_finished)


@dataclass(frozen=True)
class Explorer(PlaysHere):
    """The random explorer, the baseline of every table."""

    label: str = "random explorer"

    def options(self) -> Mapping[str, Any]:
        """policy.model is the explorer's label."""
        return {"policy": {"model": self.label}}

    def repeats(self, params: Params) -> str:
        """It computes only with integers, so its episodes are the same on every machine."""
        return "the same episodes on every machine"

    def check(self, params: Params) -> Mapping[str, Any]:
        """Empty: its draws depend only on the seed."""
        return {}


def player(options: Namespace) -> Explorer:
    """The explorer; options that describe a model are refused."""
    refuse_options(options, "explorer", "model", *SERVER_OPTIONS, "temperature")
    return Explorer()
