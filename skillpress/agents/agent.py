"""The language agent: one policy, one world's wording, one memory, one judgement of itself.

    X_k --prompt, policy--> v_k --decode--> th_k --parse--> A_k --world--> O_{k+1} --f_agent--> X_{k+1}

The agent holds no state of its own: X_k is handed in and out, so one agent plays any number of
episodes, and ``decide`` samples for all of them in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillpress.interface import (
    AgentState,
    Decision,
    Engine,
    Info,
    ParsedAction,
    Parser,
    Rendering,
    Sampling,
    StateUpdate,
    TokenIds,
)

StepReward = Callable[[Info, str | None], float]
"""(what the world said, why the action was not carried out) to the step's reward."""


@dataclass(frozen=True)
class LanguageAgent:
    """Acts by sampling from a language model."""

    rendering: Rendering
    parse: Parser
    state_update: StateUpdate
    reward: StepReward
    encode: Callable[[Sequence[str]], list[TokenIds]]
    """Prompt texts to token ids, chat template included where the model has one."""
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
        prompts = self.encode([self.rendering.prompt(state) for state in states])
        completions = self.engine.generate(prompts, self.sampling, seeds)
        return [
            Decision(prompt, c.token_ids, c.logprobs, self.parse(self.decode(c.token_ids)))
            for prompt, c in zip(prompts, completions, strict=True)
        ]

    def evaluate_step(self, state: AgentState, parsed: ParsedAction, observation: str, info: Info) -> float:
        """The agent's reward for its step, from what it wrote and what the world answered."""
        return self.reward(info, parsed.invalid or info.invalid)

    def update_state(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> AgentState:
        """X_{k+1}."""
        return self.state_update(state, parsed.thought, parsed.action, observation, info)
