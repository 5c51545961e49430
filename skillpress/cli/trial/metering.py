"""What each episode with a model behind a URL costs: tokens by the server's count, calls, seconds.

A line is written for each step, so that a trial that is killed loses none of it. An episode that is played
again after a kill counts by its last attempt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.cli.evaluations.chat import Chat
from skillpress.core.interface import Agent, AgentState, Decision, DecisionRequest, Info
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import named_disk_errors
from skillpress.core.trajectory import RewardPart
from skillpress.experiment.collection import Play
from skillpress.experiment.params import Params
from skillpress.rollouts.collection import Collector

METER = "meter.jsonl"


class MeteredChat(Chat):
    """A model behind a URL whose episodes are metered."""

    @contextmanager
    def _collector(self, params: Params, store: ResumeStore, play: Play) -> Iterator[Collector]:
        with super()._collector(params, store, play) as collector:
            numbers = {id(request.task): number for number, request in enumerate(play.wanted)}
            store.folder.mkdir(parents=True, exist_ok=True)
            collector.agent = Metered(collector.agent, numbers, store.folder / METER)
            yield collector


@dataclass
class Metered:
    """Wraps an agent and records the cost of each of its steps."""

    agent: Agent
    numbers: dict[int, int]
    """Maps the id() of an episode's task object to the episode's number in the plan."""
    file: Path
    _attempt: int = field(default_factory=time.time_ns, init=False)
    _states: dict[int, AgentState] = field(default_factory=dict, init=False)
    """The state of each open request, by the request's key."""
    _tokens: dict[int, tuple[int, int] | None] = field(default_factory=dict, init=False)
    """Maps the id() of a state to the tokens of the decision made in it."""
    _since: dict[int, float] = field(default_factory=dict, init=False)
    """The time of each episode's last line or, before that, of its first request."""

    @property
    def lockstep(self) -> bool:
        """See ``interface.Agent``."""
        return self.agent.lockstep

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """See ``interface.Agent``."""
        for request in requests:
            self._states[request.key] = request.state
            self._since.setdefault(self.numbers[id(request.state.task)], time.monotonic())
        self.agent.submit(requests)

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """See ``interface.Agent``."""
        found = self.agent.completed(wait)
        for key, decision in found:
            self._tokens[id(self._states.pop(key))] = decision.counted_tokens
        return found

    def abort(self) -> None:
        """See ``interface.Agent``."""
        self._states.clear()
        self.agent.abort()

    def close(self) -> None:
        """See ``interface.Agent``."""
        self.agent.close()

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """See ``interface.Agent``; the environment has answered the step."""
        episode, now = self.numbers[id(state.task)], time.monotonic()
        prompt, response = self._tokens.pop(id(state)) or (None, None)
        line = {
            "episode": episode,
            "attempt": self._attempt,
            "prompt_tokens": prompt,
            "response_tokens": response,
            "seconds": now - self._since[episode],
        }
        self._since[episode] = now
        with named_disk_errors(self.file), self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return self.agent.evaluate_step(state, parsed, observation, info)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """See ``interface.Agent``."""
        return self.agent.update_state(state, decision, observation, info)


SCHEMA = {
    "episode": pl.Int64,
    "attempt": pl.Int64,
    "prompt_tokens": pl.Int64,
    "response_tokens": pl.Int64,
    "seconds": pl.Float64,
}


def metered(file: Path) -> pl.DataFrame:
    """Each episode's ``calls``, ``tokens`` (null where the server did not count one of them) and ``seconds``;
    empty if nothing was metered."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:  # a killed process left half a line
            continue
    rows = pl.DataFrame(lines, schema=SCHEMA)
    last = rows.filter(pl.col("attempt") == pl.col("attempt").max().over("episode"))
    whole = pl.col("prompt_tokens").is_not_null().all()
    tokens = pl.when(whole).then(pl.col("prompt_tokens").sum() + pl.col("response_tokens").sum())
    return last.group_by("episode").agg(calls=pl.len(), tokens=tokens, seconds=pl.col("seconds").sum())
