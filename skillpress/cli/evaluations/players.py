"""The players of an evaluation: a language model here, one behind a server, or the random explorer.

A player is one file of this folder and one line in ``PLAYERS``. It checks itself before anything is played,
says which of its properties affect the result, and plays the wanted episodes that its store does not have
yet.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from skillpress.core.errors import ParamsError
from skillpress.core.registry import Registry, lookup
from skillpress.core.resume import ResumeStore
from skillpress.experiment.params import Params
from skillpress.rollouts.collection.requests import EpisodeRequest

PLAYERS = Registry(
    "",
    "--agent",
    {
        "language": "skillpress.cli.evaluations.language:player",
        "chat": "skillpress.cli.evaluations.chat:player",
        "explorer": "skillpress.cli.evaluations.explorer:player",
    },
)
"""Maps each value of ``--agent`` to a function that makes the player from the options."""
SERVER_OPTIONS = ("name", "key_variable", "deadline", "omit", "body", "stream")
"""Options that apply only to a model behind a URL."""


class Player(Protocol):
    """A model or the explorer, with what it needs to play episodes."""

    @property
    def label(self) -> str:
        """The player's name in tables."""

    def options(self) -> Mapping[str, Any]:
        """Sections of the parameters that the player sets."""

    def repeats(self, params: Params) -> str:
        """One sentence on how exactly the same command repeats the episodes."""

    def check(self, params: Params) -> Mapping[str, Any]:
        """The player's properties that affect the episodes, as JSON values.

        Raises:
            UserError: it cannot play here or with these parameters; no work has been done yet.
        """

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """Write the episodes in the order of ``wanted``; episodes in the store are not played again."""

    def cost(self, store: ResumeStore) -> Mapping[str, int]:
        """Costs beyond the tokens in the episodes; empty for players on this machine."""
        return {}

    def left_out(self, store: ResumeStore) -> Sequence[str]:
        """Sampling parameters that did not reach the model; empty for players on this machine."""
        return ()


def choose(options: Namespace) -> tuple[str, Player]:
    """(name in ``PLAYERS``, player) for the options; for a URL it is the chat agent.

    Raises:
        UserError: the options name no model, or one that the agent cannot use.
    """
    name = options.agent or ("chat" if is_url(options.model or "") else "language")
    made: Player = lookup(PLAYERS, name, "--agent")(options)
    return name, made


def is_url(model: str) -> bool:
    """Whether a model is reached over HTTP."""
    return model.startswith(("http://", "https://"))


def refuse_options(options: Namespace, agent: str, *names: str) -> None:
    """Refuse options that do not apply to this agent."""
    for name in names:
        if getattr(options, name) is not None:
            raise ParamsError(
                f"--{name.replace('_', '-')}: does not apply to --agent {agent}; leave it out, or name "
                "another agent"
            )


def model_of(options: Namespace) -> str:
    """The model that the options name."""
    if not options.model:
        raise ParamsError("--model: is missing; name a folder, a model in this machine's cache, or a URL")
    return str(options.model)
