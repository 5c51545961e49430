"""The prompt's budget of tokens: where a prompt does not fit, the oldest turns are left out of it.

Only whole turns are left out, and nothing else: what is seen now, the task and the admissible actions
stand in every prompt whole. A state whose prompt does not fit even without a past gets no prompt; its
agent has then nothing to ask, which is a step without an action (``prompt_too_long``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skillpress.interface import AgentState, Rendering, TokenIds


@dataclass(frozen=True)
class Prompter:
    """Renders and encodes states."""

    rendering: Rendering
    encode: Callable[[Sequence[str]], list[TokenIds]]
    """Prompt texts to token ids, chat template included where the model has one."""
    budget: int
    """Tokens in a prompt at most."""

    def __call__(self, states: Sequence[AgentState]) -> list[TokenIds | None]:
        """One prompt per state; None where there is none that fits."""
        prompts = self.encode([self.rendering.prompt(state) for state in states])
        return [
            prompt if len(prompt) <= self.budget else self._shortened(state)
            for state, prompt in zip(states, prompts, strict=True)
        ]

    def _shortened(self, state: AgentState) -> TokenIds | None:
        """The prompt with as many of the newest turns as fit."""
        turns = len(state.history)
        shortest = self._without(state, turns)
        if not turns or len(shortest) > self.budget:
            return None
        dropped = bisect_left(
            range(turns), True, key=lambda count: len(self._without(state, count)) <= self.budget
        )
        return self._without(state, dropped)

    def _without(self, state: AgentState, oldest: int) -> TokenIds:
        (prompt,) = self.encode([self.rendering.prompt(replace(state, history=state.history[oldest:]))])
        return prompt
