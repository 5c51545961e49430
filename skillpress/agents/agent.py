"""The language agent: one policy, one world's wording, one memory, one judgement of itself.

    X_k --prompt, policy--> v_k --decode--> th_k --parse--> A_k --world--> O_{k+1} --f_agent--> X_{k+1}

``act`` does the first half of this for one state. Its two parts, ``prompt_ids`` before the engine
and ``read`` after it, serve whoever samples for many agents in one batch. The agent holds no state
of its own: X_k is handed in and out, so that one agent can play any number of episodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skillpress.interface import (
    AgentState,
    Completion,
    Engine,
    Info,
    ParsedAction,
    Parser,
    Rendering,
    Sampling,
    StateUpdate,
    TokenIds,
)
from skillpress.trajectory import Task

StepReward = Callable[[Info, str | None], float]
"""(what the world said, why the action was not carried out) to the step's reward."""


@dataclass(frozen=True)
class LanguageAgent:
    """Acts by sampling from a language model."""

    rendering: Rendering
    parse: Parser
    state_update: StateUpdate
    reward: StepReward
    encode_prompt: Callable[[str], TokenIds]
    """Prompt text to token ids, chat template included where the model has one."""
    decode: Callable[[TokenIds], str]
    """Response token ids to text, without special tokens."""
    engine: Engine
    sampling: Sampling

    def begin(self, task: Task, observation: str, info: Info) -> AgentState:
        """X_0, from what the world said on reset."""
        return AgentState(task, observation, info)

    def act(self, state: AgentState, seed: int = 0) -> tuple[str, str]:
        """(thought, action) for this state; the action is empty when none could be read."""
        (completion,) = self.engine.generate([self.prompt_ids(state)], self.sampling, [seed])
        parsed = self.read(completion)
        return parsed.thought, parsed.action

    def prompt_ids(self, state: AgentState) -> TokenIds:
        """s_t: the tokens that the policy is conditioned on."""
        return self.encode_prompt(self.rendering.prompt(state))

    def read(self, completion: Completion) -> ParsedAction:
        """The thought and the action in what was sampled."""
        return self.parse(self.decode(completion.token_ids))

    def evaluate_step(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> float:
        """The agent's reward for its step, from the facts that the world answered with."""
        return self.reward(info, info.invalid)

    def update_state(
        self, state: AgentState, thought: str, action: str, observation: str, info: Info
    ) -> AgentState:
        """X_{k+1}."""
        return self.state_update(state, thought, action, observation, info)
