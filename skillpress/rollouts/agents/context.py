"""Render states as prompts within a budget of tokens.

A prompt is either rebuilt from its state or extends the previous prompt and response
(``AgentState.context``). If extending it would exceed the budget, it is rebuilt.

If a rebuilt prompt does not fit, earlier turns are shortened, the oldest first: long observations and actions
keep both ends. If all turns are short and the prompt still does not fit, the oldest turns are dropped.
Nothing else is cut: every rebuilt prompt contains the current observation, the task, the notes and the
admissible actions in full, and above them the knowledge that the agent was given (``AgentState.knowledge``).
A state whose prompt does not fit even without any turns gets no prompt. The agent then cannot ask its engine,
and the step has no action (``prompt_too_long``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skillpress.core.interface import AgentState, Rendering, Turn
from skillpress.core.trajectory import TokenIds

LONGEST_PAST = 1000
"""Earlier texts of up to this many characters are never shortened; those of text games are shorter."""

MOST = 0.75
"""Share of the budget above which turns are summarized; the next prompt might not fit."""


@dataclass(frozen=True)
class Prompter:
    """Renders and encodes states."""

    rendering: Rendering
    encode: Callable[[Sequence[str]], list[TokenIds]]
    """Encodes prompt texts as token ids, including the model's chat template if it has one."""
    budget: int
    """Maximum number of tokens in a prompt."""
    extend: Callable[[Sequence[TokenIds], Sequence[str]], list[TokenIds]] | None = None
    """Maps (prompts with their responses, the following texts) to extended prompts; None rebuilds all
    prompts."""
    request: str = ""
    """An additional request, placed below the rendering's text. Prompts with a request are always rebuilt."""

    def __call__(self, states: Sequence[AgentState]) -> list[TokenIds | None]:
        """One prompt per state; None for a state whose prompt cannot be made to fit."""
        grown = self._grown(states)
        others = iter(self._anew([state for row, state in enumerate(states) if row not in grown]))
        return [grown[row] if row in grown else next(others) for row in range(len(states))]

    def nearly_full(self, states: Sequence[AgentState]) -> list[bool]:
        """For each state, whether its prompt, rebuilt with all turns, uses most of the budget."""
        return [len(prompt) > MOST * self.budget for prompt in self._encoded(states)]

    def _grown(self, states: Sequence[AgentState]) -> dict[int, TokenIds]:
        """Maps rows to prompts, for the states whose prompt extends the previous one and fits."""
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
        """The prompt with as many of the newest turns as fit."""
        least = 2 * len(state.history)
        if not least or len(self._with_less(state, least)) > self.budget:
            return None
        # Bisection takes it that a prompt never grows when one more turn is shortened.
        less = bisect_left(
            range(least), True, key=lambda less: len(self._with_less(state, less)) <= self.budget
        )
        return self._with_less(state, less)

    def _with_less(self, state: AgentState, less: int) -> TokenIds:
        """The prompt with the ``less`` oldest turns shortened; beyond all n turns, the oldest are dropped."""
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


def shortened(text: str, longest: int) -> str:
    """Return the text itself if it has at most ``longest`` characters, otherwise its two ends around a note.

    The note says how many characters were left out, and it is not counted in ``longest``. If the note would
    make the text longer, the text is returned unchanged.
    """
    # Not ``text[-n:]``, which is the whole text for n = 0.
    head, tail = text[: longest - longest // 2], text[max(0, len(text) - longest // 2) :]
    cut = f"{head}\n[... {len(text) - longest} characters left out ...]\n{tail}"
    return cut if len(cut) < len(text) else text
