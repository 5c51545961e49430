"""From states to prompts within a budget of tokens.

A prompt is made anew from its state, or goes on from the tokens of the last one and its response
(``AgentState.context``); one that would outgrow the budget so is made anew.

Where a prompt made anew does not fit, what earlier turns said is shortened, the oldest turn first: long
observations and actions keep their ends. Where all of them are short and it still does not fit, the oldest
turns are left out. Nothing else is cut: what is seen now, the task, notes and the admissible actions stand in
every such prompt whole, and above them what the agent was given to play with (``AgentState.knowledge``). A
state whose prompt does not fit even without a past gets no prompt; its agent has then nothing to ask, which
is a step without an action (``prompt_too_long``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skillpress.core.interface import AgentState, Rendering, Turn
from skillpress.core.trajectory import TokenIds
from skillpress.play.agents.shortening import shortened

LONGEST_PAST = 1000
"""Characters of an earlier observation or action that are always shown; text games say less, code may print
more."""

MOST = 0.75
"""Of the budget. A prompt that takes more is nearly full: what it shows can still be summed up, the next one
perhaps not."""


@dataclass(frozen=True)
class Prompter:
    """Renders and encodes states."""

    rendering: Rendering
    encode: Callable[[Sequence[str]], list[TokenIds]]
    """Prompt texts to token ids, chat template included where the model has one."""
    budget: int
    """Tokens in a prompt at most."""
    extend: Callable[[Sequence[TokenIds], Sequence[str]], list[TokenIds]] | None = None
    """(prompts with their responses, what is said next) to longer prompts that begin with those very tokens;
    None where every prompt is made anew."""
    request: str = ""
    """What else is asked for, below what the rendering says; such prompts are made anew."""

    def __call__(self, states: Sequence[AgentState]) -> list[TokenIds | None]:
        """One prompt per state; None where there is none that fits."""
        grown = self._grown(states)
        others = iter(self._anew([state for row, state in enumerate(states) if row not in grown]))
        return [grown[row] if row in grown else next(others) for row in range(len(states))]

    def nearly_full(self, states: Sequence[AgentState]) -> list[bool]:
        """Whether each state's prompt, made anew with all of its turns, takes most of the budget."""
        return [len(prompt) > MOST * self.budget for prompt in self._encoded(states)]

    def _grown(self, states: Sequence[AgentState]) -> dict[int, TokenIds]:
        """Row to prompt of the states whose prompts go on from the last ones and fit."""
        contexts = {row: state.context for row, state in enumerate(states) if state.context is not None}
        if self.extend is None or self.request or not contexts:
            return {}
        said = [self.rendering.continuation(states[row]) for row in contexts]
        prompts = zip(contexts, self.extend(list(contexts.values()), said), strict=True)
        return {row: prompt for row, prompt in prompts if len(prompt) <= self.budget}

    def _anew(self, states: Sequence[AgentState]) -> list[TokenIds | None]:
        return [
            prompt if len(prompt) <= self.budget else self._shortened(state)
            for state, prompt in zip(states, self._encoded(states), strict=True)
        ]

    def _encoded(self, states: Sequence[AgentState]) -> list[TokenIds]:
        below = f"\n{self.request}" if self.request else ""
        above = [f"{state.knowledge}\n" if state.knowledge else "" for state in states]
        said = [self.rendering.prompt(state) for state in states]
        return self.encode([f"{known}{text}{below}" for known, text in zip(above, said, strict=True)])

    def _shortened(self, state: AgentState) -> TokenIds | None:
        """The prompt with as much of the newest turns as fits."""
        least = 2 * len(state.history)
        if not least or len(self._with_less(state, least)) > self.budget:
            return None
        less = bisect_left(
            range(least), True, key=lambda less: len(self._with_less(state, less)) <= self.budget
        )
        return self._with_less(state, less)

    def _with_less(self, state: AgentState, less: int) -> TokenIds:
        """The prompt with the oldest ``less`` turns shortened; of n turns, where ``less`` is n + d, with all
        of them shortened and the oldest d left out."""
        turns = state.history
        short, left_out = turns[:less], max(0, less - len(turns))
        history = (*map(_short, short), *turns[len(short) :])[left_out:]
        (prompt,) = self._encoded([replace(state, history=history)])
        return prompt


def _short(turn: Turn) -> Turn:
    return replace(
        turn,
        observation=shortened(turn.observation, LONGEST_PAST),
        action=shortened(turn.action, LONGEST_PAST),
    )
