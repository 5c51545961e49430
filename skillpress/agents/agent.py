"""The language agent: one policy, one environment's wording, one memory, one judgement of itself.

    X_k --prompt, policy--> v_k --decode--> th_k --parse--> A_k --environment--> O_{k+1} --f_agent--> X_{k+1}

The agent holds no state of its own: X_k is handed in and out, so one agent plays any number of
episodes, and ``decide`` samples for all of them in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillpress.agents.context import Prompter
from skillpress.interface import (
    AgentState,
    Decision,
    Engine,
    Info,
    ParsedAction,
    Parser,
    Sampling,
    StateUpdate,
    StepReward,
    TokenIds,
)
from skillpress.trajectory import RewardPart

_UNASKED = Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
"""In a state whose prompt does not fit."""


@dataclass(frozen=True)
class LanguageAgent:
    """Acts by sampling from a language model."""

    prompter: Prompter
    parse: Parser
    state_update: StateUpdate
    reward: StepReward
    decode: Callable[[TokenIds], str]
    """Response token ids to text, without special tokens."""
    engine: Engine
    sampling: Sampling

    def act(self, state: AgentState, seed: int = 0) -> tuple[str, str]:
        """(thought, action) for one state; the action is empty when none could be read."""
        (decision,) = self.decide([state], [seed])
        return decision.parsed.thought, decision.parsed.action

    def decide(self, states: Sequence[AgentState], seeds: Sequence[int]) -> list[Decision]:
        """See ``interface.Agent``."""
        prompts = self.prompter(states)
        asked = {index: prompt for index, prompt in enumerate(prompts) if prompt is not None}
        completions = self.engine.generate(
            list(asked.values()), self.sampling, [seeds[index] for index in asked]
        )
        decisions = [_UNASKED] * len(states)
        for (index, prompt), completion in zip(asked.items(), completions, strict=True):
            parsed = self.parse(self.decode(completion.token_ids))
            decisions[index] = Decision(prompt, completion.token_ids, completion.logprobs, parsed)
        return decisions

    def evaluate_step(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """The agent's reward for its step, from what it wrote and what the environment answered."""
        return self.reward(state, parsed, observation, info)

    def update_state(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> AgentState:
        """X_{k+1}."""
        return self.state_update(state, parsed.thought, parsed.action, observation, info)
