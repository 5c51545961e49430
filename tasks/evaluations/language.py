"""A language model on this machine, sampled from by the engine that ``engine.name`` names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skillpress.params import Params
from skillpress.resume import ResumeStore
from skillpress.rollout.requests import EpisodeRequest
from tasks.evaluations.collection import play_here
from tasks.evaluations.models import check_wording, identify
from tasks.evaluations.players import model_of

COMPUTING = ("torch", "transformers")
"""Libraries that decide what a model samples."""


@dataclass(frozen=True)
class LanguageModel:
    """A model folder or name, sampled from by an engine of this machine."""

    model: str

    repeats: str = (
        "every response depends on the prompt, the weights and the seed of its task, rollout and step, and "
        "not on how many episodes are in flight: the same on this machine, but for the rounding of other "
        "batch sizes, which moves a draw over a boundary once in some 100,000 steps"
    )

    @property
    def label(self) -> str:
        """The last parts of its path or name."""
        return "/".join(Path(self.model).parts[-2:])

    def options(self) -> Mapping[str, Any]:
        """The model is policy.model."""
        return {"policy": {"model": self.model}}

    def check(self, params: Params) -> Mapping[str, Any]:
        """Its contents and the libraries that compute."""
        identity = identify(self.model)
        check_wording(self.model, params)
        return {"model": identity} | {name: version(name) for name in COMPUTING}

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """On the engine that ``engine.name`` names, in ``processes`` processes."""
        play_here(Path(self.model), params, wanted, store, output, on_finished)

    def cost(self, store: ResumeStore) -> Mapping[str, int]:
        """Nothing beyond its tokens."""
        return {}


def player(options: Namespace) -> LanguageModel:
    """From the options of the command line."""
    return LanguageModel(model_of(options))
