"""The language agent: one policy, one environment's wording, one memory, one judgement of itself.

    X_k --prompt, policy--> v_k --decode--> th_k --parse--> A_k --environment--> O_{k+1} --f_agent--> X_{k+1}

X_k is handed in and out, so one agent plays any number of episodes. It remembers only what it has asked
its engine and not yet heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skillpress.agents.context import Prompter
from skillpress.agents.decide import decide
from skillpress.interface import (
    AgentState,
    Completion,
    Decision,
    DecisionRequest,
    Engine,
    Info,
    ParsedAction,
    Parser,
    Request,
    Sampling,
    StateUpdate,
    StepReward,
    TokenIds,
)
from skillpress.trajectory import RewardPart

_UNASKED = Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
"""In a state whose prompt does not fit."""


@dataclass
class LanguageAgent:
    """Acts by sampling from a language model."""

    prompter: Prompter
    parse: Parser
    state_update: StateUpdate
    reward: StepReward
    decode: Callable[[TokenIds], str]
    """Response token ids to text, without special tokens."""
    engine: Engine
    """The agent's own: what is sampled there, the agent has asked for."""
    sampling: Sampling
    _prompts: dict[int, TokenIds] = field(default_factory=dict, init=False, repr=False)
    """Key to prompt of what the engine has not answered."""
    _mute: list[tuple[int, Decision]] = field(default_factory=list, init=False, repr=False)
    """Decisions in states whose prompt does not fit: the engine is not asked."""

    @property
    def lockstep(self) -> bool:
        """As the engine."""
        return self.engine.promises.lockstep

    def act(self, state: AgentState, seed: int = 0) -> tuple[str, str]:
        """(thought, action) for one state; the action is empty when none could be read."""
        (decision,) = decide(self, [state], [seed])
        return decision.parsed.thought, decision.parsed.action

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        """See ``interface.Agent``."""
        asked = []
        prompts = self.prompter([request.state for request in requests])
        for request, prompt in zip(requests, prompts, strict=True):
            if prompt is None:
                self._mute.append((request.key, _UNASKED))
                continue
            self._prompts[request.key] = prompt
            asked.append(Request(request.key, prompt, self.sampling, request.seed))
        self.engine.submit(asked)

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        """See ``interface.Agent``."""
        found, self._mute = self._mute, []
        if self._prompts:
            answers = self.engine.completed(0.0 if found else wait)
            found += [(key, self._decision(self._prompts.pop(key), answer)) for key, answer in answers]
        return found

    def abort(self) -> None:
        """Forget what was asked, the engine too."""
        self._prompts.clear()
        self._mute.clear()
        self.engine.abort()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

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

    def _decision(self, prompt: TokenIds, completion: Completion) -> Decision:
        parsed = self.parse(self.decode(completion.token_ids))
        return Decision(prompt, completion.token_ids, completion.logprobs, parsed, completion.weight_spans)
