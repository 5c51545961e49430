"""A model behind a chat-completions server as a player."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from skillpress.cli.evaluations.models import COMPACT
from skillpress.cli.evaluations.players import model_of
from skillpress.core.engine import Sampling
from skillpress.core.errors import ParamsError
from skillpress.core.resume import ResumeStore
from skillpress.core.waiting import waiting
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.rollouts.chat.agent import ChatAgent
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.journal import parameters_left_out, spent
from skillpress.rollouts.chat.server import ChatServer
from skillpress.rollouts.chat.server_agent import ServerAgent
from skillpress.rollouts.collection import Collector
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.programs.served_model import ServedModelAgent

DEADLINE_SECONDS = 600.0
"""Time limit for one answer including all attempts, unless --deadline gives another."""
AT_ONCE = 16
"""Concurrent requests to a server, unless sampling.slots gives another number."""


@dataclass(frozen=True)
class Chat:
    """A model behind a chat-completions server. Its agent has the same parts as a language agent."""

    server: ChatServer

    @property
    def label(self) -> str:
        """The server's name for the model, once it is known."""
        return self.server.model or self.server.url

    def options(self) -> Mapping[str, Any]:
        """policy.model is the address. Few requests run concurrently unless the user asks for more."""
        return {"policy": {"model": self.server.url}, "sampling": {"slots": AT_ONCE}}

    def repeats(self, params: Params) -> str:
        """The same command repeats its episodes only as far as the server does."""
        return (
            "every request has its own seed, which a server may ignore: another evaluation may differ "
            "through the server's sampling, but not through the number of concurrent requests"
        )

    def check(self, params: Params) -> Mapping[str, Any]:
        """What the server is asked for, without its address, because its port may change at a restart."""
        self.server.check()
        if params.policy.rendering == COMPACT:
            raise ParamsError(
                f"policy.rendering: is {COMPACT!r}, whose words only policies made from scratch know"
            )
        if Experiment(params).state_update.grows:
            raise ParamsError(
                f"policy.state_update: is {params.policy.state_update!r}, which continues from the tokens of "
                "the last response, which a text API does not return; use window, with policy.history turns"
            )
        return {"model": self.server.model, **self.server.asked}

    def play(
        self,
        params: Params,
        wanted: Sequence[EpisodeRequest],
        store: ResumeStore,
        output: Path,
        on_finished: Callable[[int], None],
    ) -> None:
        """Play in this process, ``sampling.slots`` episodes at a time; each is saved as it ends."""
        job = CollectionJob(
            params=params,
            sampling="evaluation",
            plays=[Play(None, wanted)],
            store=store,
            seconds_between_saves=0.0,
        )
        play_episodes(job, output, on_finished, partial(self._collector, params, store))

    @contextmanager
    def _collector(self, params: Params, store: ResumeStore, play: Play) -> Iterator[Collector]:
        experiment = Experiment(params)
        client = ChatClient(self.server, experiment.evaluation_sampling, journal_of(store))
        with (
            self.server.withheld(),
            closing(_agent(experiment, client)) as agent,
            experiment.collector(agent) as collector,
        ):
            with waiting(f"waiting for {self.server.url}"):
                client.meet()
            yield collector

    def cost(self, store: ResumeStore) -> Mapping[str, int]:
        """Requests that the server answered and tokens that it counted, including those of lost episodes."""
        return spent(journal_of(store))

    def left_out(self, store: ResumeStore) -> Sequence[str]:
        """The parameters that --omit names and those that the server has refused."""
        return sorted({*self.server.omit, *parameters_left_out(journal_of(store))})


def _agent(experiment: Experiment, client: ChatClient) -> ServerAgent:
    """The agent that asks the server: programs make their own prompts, other environments use a rendering."""
    at_once = experiment.params.sampling.slots
    if experiment.params.environment.offers("make_agent"):
        return ServedModelAgent(client, experiment.reward, at_once)
    return ChatAgent(
        client,
        experiment.rendering,
        parse=experiment.parser,
        state_update=experiment.state_update,
        reward=experiment.reward,
        at_once=at_once,
    )


def player(options: Namespace) -> Chat:
    """The server that the options name; if no model is named, the one that it serves.

    Raises:
        UserError: the options do not fit a server, or no server answers.
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
        body=_fields(options.body),
        stream=bool(options.stream),
    )
    server.check()
    if server.model:
        return Chat(server)
    with closing(ChatClient(server, Sampling(), Path())) as client:
        client.meet()
        return Chat(replace(server, model=client.served_model()))


def _fields(given: str | None) -> dict[str, Any]:
    """The value of ``--body``.

    Raises:
        ParamsError: it is not a JSON object.
    """
    if given is None:
        return {}
    try:
        found = json.loads(given, parse_constant=lambda name: math.nan)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ParamsError(
            f'--body: {given[:80]!r} is not JSON ({error}); an example is \'{{"reasoning_effort": "low"}}\''
        ) from error
    if not isinstance(found, dict):
        raise ParamsError(
            f"--body: {given[:80]!r} is not a JSON object, whose names are fields of the request"
        )
    return found


def journal_of(store: ResumeStore) -> Path:
    """The file that records the tokens of every answer."""
    return store.folder / "answers.jsonl"
