"""The floor of every table: an agent that draws its actions at random.

It draws uniformly from the actions that the environment's folder offers its explorer (for Countdown:
the legal operations, and ``reset`` when one number is left). On small environments it wins surprisingly
often, so that a success rate means little without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillpress.interface import AgentState, Decision, Info, ParsedAction, StepReward
from skillpress.seeds import derive
from skillpress.trajectory import RewardPart


@dataclass(frozen=True)
class RandomExplorer:
    """Uniform over ``choices``; thinks nothing, remembers nothing, and has no tokens."""

    choices: Callable[[Info], Sequence[str]]
    """The environment bundle's ``explorer_actions``."""
    reward: StepReward

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """See ``interface.Agent``."""
        return [
            Decision((), (), (), ParsedAction("", self._draw(state, seed)))
            for state, seed in zip(states, seeds, strict=True)
        ]

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The same judgement as a language agent's."""
        return self.reward(state, parsed, observation, info)

    def update_state(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> AgentState:
        """What is seen now, and nothing else."""
        return AgentState(state.task, observation, info)

    def _draw(self, state: AgentState, seed: int) -> str:
        actions = self.choices(state.info)
        return actions[derive(seed, "explore") % len(actions)]
