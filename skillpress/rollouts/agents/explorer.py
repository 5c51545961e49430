"""The random baseline: an agent that draws its actions uniformly.

It draws from the actions that the environment's package offers an explorer (for Countdown: the legal
operations, and ``reset`` when one number is left). On small environments it wins surprisingly often, so a
success rate means little unless this one is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info, StepReward
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.seeds import derive
from skillpress.core.trajectory import RewardPart


@dataclass
class RandomExplorer:
    """Draws uniformly from ``choices``. It has no thoughts, no memory and no tokens."""

    choices: Callable[[Info], Sequence[object]]
    """The environment's ``explorer_actions``."""
    reward: StepReward
    lockstep: ClassVar[bool] = False
    """False: a draw takes no time, so the agent's requests need not be batched."""
    _drawn: list[tuple[int, Decision]] = field(default_factory=list, init=False, repr=False)

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Draw an action for each request immediately."""
        for asked in requests:
            drawn = ParsedAction("", self._draw(asked.state, asked.seed))
            decision = Decision(prompt_ids=(), response_ids=(), logprobs=NO_LOGPROBS, parsed=drawn)
            self._drawn.append((asked.key, decision))

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """The decisions for all requests so far."""
        found, self._drawn = self._drawn, []
        return found

    def abort(self) -> None:
        """Forget the drawn decisions."""
        self._drawn.clear()

    def close(self) -> None:
        """Does nothing: the agent holds no resources."""

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same reward as a language agent's."""
        return self.reward(state, parsed, observation, info)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """The next state holds the current observation and nothing else."""
        return AgentState(task=state.task, observation=observation, info=info)

    def _draw(self, state: AgentState, seed: int) -> object:
        actions = self.choices(state.info)
        return actions[derive(seed, "explore") % len(actions)]
