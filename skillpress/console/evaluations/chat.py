"""A model behind a chat-completions server as a player."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillpress.console.evaluations.models import COMPACT
from skillpress.console.evaluations.players import model_of
from skillpress.core.engine import Sampling
from skillpress.core.errors import ParamsError
from skillpress.core.resume import ResumeStore, SaveTimer
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.play.chat.agent import ChatAgent
from skillpress.play.chat.client import ChatClient
from skillpress.play.chat.journal import parameters_left_out, spent
from skillpress.play.chat.server import ChatServer
from skillpress.play.rollout import EpisodeLog
from skillpress.play.rollout.ordered import write_in_order
from skillpress.play.rollout.requests import EpisodeRequest

DEADLINE_SECONDS = 600.0
"""For one answer, all attempts together, unless --deadline says otherwise."""
AT_ONCE = 16
"""Requests to a server under way at once, unless sampling.slots says otherwise."""


@dataclass(frozen=True)
class Chat:
    """A model behind a chat-completions server; the parts of its agent are those of a language agent."""

    server: ChatServer

    @property
    def label(self) -> str:
        """What the server calls the model, once it is known."""
        return self.server.model or self.server.url

    def options(self) -> Mapping[str, Any]:
        """The address is policy.model; requests under way at once are few unless more are asked for."""
        return {"policy": {"model": self.server.url}, "sampling": {"slots": AT_ONCE}}

    def repeats(self, params: Params) -> str:
        """As far as the server."""
        return (
            "every step is asked for with a seed of its own, which a server need not honour: another "
            "evaluation may differ, but by the server's dice, not by how many requests are under way"
        )

    def check(self, params: Params) -> Mapping[str, Any]:
        """The model's name and what its server is not sent. Where the server is decides nothing: after a
        restart it may be on another port."""
        self.server.check()
        if params.policy.rendering == COMPACT:
            raise ParamsError(
                f"policy.rendering: is {COMPACT!r}, which has words for policies made from scratch alone"
            )
        if Experiment(params).state_update.grows:
            raise ParamsError(
                f"policy.state_update: is {params.policy.state_update!r}, which goes on from the tokens of "
                "the last response, and a text API has none; take window, with policy.history turns"
            )
        omitted = sorted(set(self.server.omit))
        return {"model": self.server.model} | ({"omit": omitted} if omitted else {})

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """In this process, as many episodes at once as ``sampling.slots``; each is saved as it ends."""
        experiment = Experiment(params)
        client = ChatClient(self.server, experiment.evaluation_sampling, journal_of(store))
        made = ChatAgent(
            client,
            experiment.rendering,
            parse=experiment.parser,
            state_update=experiment.state_update,
            reward=experiment.reward,
            at_once=params.sampling.slots,
        )
        with (
            closing(made) as agent,
            experiment.collector(agent) as collector,
            EpisodeLog(store, SaveTimer(0.0)) as log,
        ):
            client.meet()
            on_finished(sum(number in log for number in range(len(wanted))))
            log.play(collector, enumerate(wanted), on_episode=lambda: on_finished(1))
            log.save()
        write_in_order(output, [store], len(wanted), scratch=store.folder / "slices")

    def cost(self, store: ResumeStore) -> Mapping[str, int]:
        """Requests answered and tokens counted by the server, those of lost episodes included."""
        return spent(journal_of(store))

    def left_out(self, store: ResumeStore) -> Sequence[str]:
        """What --omit names and what the server has refused."""
        return sorted({*self.server.omit, *parameters_left_out(journal_of(store))})


def player(options: Namespace) -> Chat:
    """The server that the options name, with the model that it serves where none is named.

    Raises:
        UserError: no server can be asked so, or none is there.
    """
    deadline = DEADLINE_SECONDS if options.deadline is None else options.deadline
    if not 0 < deadline < math.inf:
        raise ParamsError(f"--deadline: is {deadline:g}; must be a finite number of seconds above 0")
    omitted = tuple(name.strip() for name in (options.omit or "").split(",") if name.strip())
    server = ChatServer(
        model_of(options),
        options.name or "",
        key_variable=options.key_variable or "",
        deadline_seconds=deadline,
        omit=omitted,
    )
    server.check()
    if server.model:
        return Chat(server)
    with closing(ChatClient(server, Sampling(), Path())) as client:
        client.meet()
        return Chat(replace(server, model=client.served_model()))


def journal_of(store: ResumeStore) -> Path:
    """Where the tokens of every answer are noted."""
    return store.folder / "answers.jsonl"
