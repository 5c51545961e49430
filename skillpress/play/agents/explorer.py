"""The floor of every table: an agent that draws its actions at random.

It draws uniformly from the actions that the environment's folder offers its explorer (for Countdown:
the legal operations, and ``reset`` when one number is left). On small environments it wins surprisingly
often, so that a success rate means little without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from skillpress.core.interface import AgentState, Decision, DecisionRequest, Info, StepReward
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.seeds import derive
from skillpress.core.trajectory import RewardPart


@dataclass
class RandomExplorer:
    """Uniform over ``choices``; thinks nothing, remembers nothing, and has no tokens."""

    choices: Callable[[Info], Sequence[str]]
    """The environment bundle's ``explorer_actions``."""
    reward: StepReward
    lockstep: ClassVar[bool] = False
    """A draw takes no time: nobody has to wait for others."""
    _drawn: list[tuple[int, Decision]] = field(default_factory=list, init=False, repr=False)

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """Draw at once."""
        self._drawn += [
            (
                asked.key,
                Decision(
                    prompt_ids=(),
                    response_ids=(),
                    logprobs=(),
                    parsed=ParsedAction("", self._draw(asked.state, asked.seed)),
                ),
            )
            for asked in requests
        ]

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """All that was asked."""
        found, self._drawn = self._drawn, []
        return found

    def abort(self) -> None:
        """Forget what was drawn."""
        self._drawn.clear()

    def close(self) -> None:
        """Nothing to give back."""

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same judgement as a language agent's."""
        return self.reward(state, parsed, observation, info)

    def update_state(self, state: AgentState, decision: Decision, observation: str, info: Info) -> AgentState:
        """What is seen now, and nothing else."""
        return AgentState(task=state.task, observation=observation, info=info)

    def _draw(self, state: AgentState, seed: int) -> str:
        actions = self.choices(state.info)
        return actions[derive(seed, "explore") % len(actions)]
