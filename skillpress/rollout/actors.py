"""Who decides in the collector's episodes: a policy, or chance.

An actor sees the states of all episodes in flight and decides for each, in one batch. It also owns
the rest of an agent's business: judging a step and updating the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from skillpress.interface import AgentState, Engine, Info, ParsedAction, Parser, Rendering, Sampling, StateUpdate
from skillpress.policy import Policy
from skillpress.seeds import generator

StepReward = Callable[[Info, str | None], float]
"""(what the world said, why the action was invalid) to the agent's own reward for the step."""


@dataclass(frozen=True)
class Decision:
    """One response and what was read in it."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    parsed: ParsedAction


class Actor(Protocol):
    """Decides for many episodes at once."""

    update_state: StateUpdate
    reward: StepReward

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """One decision per state; decision i depends on ``states[i]`` and ``seeds[i]`` alone."""
        ...


@dataclass(frozen=True)
class PolicyActor:
    """A language model: state to prompt, prompt to response, response to thought and action."""

    policy: Policy
    engine: Engine
    sampling: Sampling
    rendering: Rendering
    parse: Parser
    update_state: StateUpdate
    reward: StepReward

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """See :class:`Actor`."""
        prompts = self.policy.encode([self.rendering.prompt(state) for state in states])
        completions = self.engine.generate(prompts, self.sampling, seeds)
        return [
            Decision(prompt, c.token_ids, c.logprobs, self.parse(self.policy.decode(c.token_ids)))
            for prompt, c in zip(prompts, completions, strict=True)
        ]


@dataclass(frozen=True)
class ExplorerActor:
    """Draws uniformly from the actions that the world offers its explorer; has no tokens."""

    choices: Callable[[Info], Sequence[str]]
    update_state: StateUpdate
    reward: StepReward

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """See :class:`Actor`."""
        decisions = []
        for state, seed in zip(states, seeds, strict=True):
            actions = self.choices(state.info)
            action = actions[int(generator(seed).integers(len(actions)))]
            decisions.append(Decision((), (), (), ParsedAction("", action)))
        return decisions
