"""A language model on this machine, sampled by the engine that ``engine.name`` names."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skillpress.cli.evaluations.explorer import PlaysHere
from skillpress.cli.evaluations.models import check_wording, identify
from skillpress.cli.evaluations.players import SERVER_OPTIONS, is_url, model_of, refuse_options
from skillpress.core.errors import ParamsError
from skillpress.experiment.params import Params

_LOG = logging.getLogger(__name__)

EXACT = (
    "every response depends on the prompt, the weights and the seed of its task, rollout and step, and "
    "not on how many episodes are in flight: the same on this machine, but for the rounding of other "
    "batch sizes, which changes a draw once in some millions of tokens in float32"
)
LOOSE = (
    "the engine {engine!r} does not promise the same tokens for a seed: another evaluation may differ, by "
    "luck alone"
)
NO_TEMPLATE = (
    "has no chat template, so it plays without one: prompts are plain text, as for a base model; if it was "
    "tuned on conversations, copy its chat_template.jinja into the folder"
)
COMPUTING = ("torch", "transformers")
"""Libraries that affect what a model samples."""


@dataclass(frozen=True)
class LanguageModel(PlaysHere):
    """A model folder or name, sampled by an engine on this machine."""

    model: str

    @property
    def label(self) -> str:
        """The last parts of its path or name."""
        return "/".join(Path(self.model).parts[-2:])

    @property
    def policy(self) -> Path:
        """The model, sampled by the engine that ``engine.name`` names."""
        return Path(self.model)

    def options(self) -> Mapping[str, Any]:
        """policy.model is the model."""
        return {"policy": {"model": self.model}}

    def repeats(self, params: Params) -> str:
        """The same command repeats its episodes as far as the engine guarantees it."""
        return EXACT if params.engine.exact_seeds else LOOSE.format(engine=params.engine.name)

    def check(self, params: Params) -> Mapping[str, Any]:
        """The model's contents and the libraries that compute, including the engine's own."""
        identity = identify(self.model)
        if not check_wording(self.model, params):
            _LOG.warning("%s: %s", self.label, NO_TEMPLATE)
        libraries = {name: version(name) for name in COMPUTING} | params.engine.libraries()
        return {"model": identity} | libraries


def player(options: Namespace) -> LanguageModel:
    """The model that the options of the command line name."""
    refuse_options(options, "language", *SERVER_OPTIONS)
    model = model_of(options)
    if is_url(model):
        raise ParamsError(
            f"--agent: language samples a model on this machine, but --model {model} is a URL; leave --agent "
            "out"
        )
    return LanguageModel(model)
