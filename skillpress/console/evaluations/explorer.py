"""The random explorer as a player: the baseline for every success rate."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpress.console.evaluations.collection import play_here
from skillpress.console.evaluations.players import SERVER_OPTIONS, refuse_options
from skillpress.core.resume import ResumeStore
from skillpress.experiment.params import Params
from skillpress.play.rollout.requests import EpisodeRequest


@dataclass(frozen=True)
class Explorer:
    """The random explorer, the baseline of every table."""

    label: str = "random explorer"

    def options(self) -> Mapping[str, Any]:
        """The explorer's label in place of a model."""
        return {"policy": {"model": self.label}}

    def repeats(self, params: Params) -> str:
        """It computes with integers only, so its episodes are the same everywhere."""
        return "the same episodes on every machine"

    def check(self, params: Params) -> Mapping[str, Any]:
        """Nothing: its draws derive from the seed alone."""
        return {}

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """Choose uniformly among the environment's actions for explorers."""
        play_here(None, params, wanted=wanted, store=store, output=output, on_finished=on_finished)

    def cost(self, store: ResumeStore) -> Mapping[str, int]:
        """It costs nothing."""
        return {}

    def left_out(self, store: ResumeStore) -> Sequence[str]:
        """No parameter is left out."""
        return ()


def player(options: Namespace) -> Explorer:
    """It needs no options, and takes none that describe a model."""
    refuse_options(options, "explorer", "model", *SERVER_OPTIONS, "temperature")
    return Explorer()
