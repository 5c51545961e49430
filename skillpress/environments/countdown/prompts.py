"""Countdown in words.

``compact`` is for a policy trained from scratch: a fixed number of words (target, pool, last actions), and
one compact action word as the whole response. ``text`` and ``paper`` are for pretrained models: prompts
rebuilt at each step (``environments/text/prompts.py``), with two wordings of the task.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.countdown.actions import RESET, ROLLBACK, action_words
from skillpress.environments.countdown.environment import CountdownState
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import OPERATORS
from skillpress.environments.text.prompts import game_prompt, game_turn, tagged_answer

EMPTY = "_"
"""Fills the unused places for numbers and actions."""
UNKNOWN = "?"
"""Replaces, in the history, a response that was not an action word."""


def _state(state: AgentState) -> CountdownState:
    assert isinstance(state.info.state, CountdownState), "the rendering is for Countdown's states"
    return state.info.state


@dataclass(frozen=True)
class CompactRendering:
    """A prompt such as ``54 1 2 28 80 _ _ -23 +12``: target, pool in ascending order, last actions with the
    newest last."""

    max_numbers: int
    history: int
    parser: str = "plain"
    _known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(action_words(self.max_numbers)))

    def prompt(self, state: AgentState) -> str:
        """A prompt of ``1 + max_numbers + history`` words."""
        environment = _state(state)
        turns = state.history[-self.history :] if self.history else ()
        words = [str(environment.target), *map(str, environment.pool)]
        words += [EMPTY] * (self.max_numbers + self.history - len(environment.pool) - len(turns))
        words += [turn.action if turn.action in self._known else UNKNOWN for turn in turns]
        return " ".join(words)

    def continuation(self, state: AgentState) -> str:
        """The pool, at most ``max_numbers`` words."""
        return " ".join(map(str, _state(state).pool))

    def response(self, action: str, info: Info) -> str:
        """The action word itself."""
        return action


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, last observations and actions, current observation, and possible actions."""

    history: int
    opening: str
    """The description of the task, with placeholders ``{target}`` and ``{numbers}``."""
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        environment = _state(state)
        numbers = " ".join(map(str, sorted(state.task.spec["numbers"])))
        return game_prompt(
            self.opening.format(target=environment.target, numbers=numbers),
            state.history[-self.history :] if self.history else (),
            steps=environment.steps,
            observation=state.observation,
            admissible=state.info.admissible,
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The current observation and the possible actions."""
        return game_turn(_state(state).steps, state.observation, state.info.admissible)

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return tagged_answer("I take the next step of a solution.", str(info.action))


_OWN = """\
This is the numbers game Countdown. Make {target} from the numbers {numbers}; each of them must be used once.
In a step you replace two numbers of the pool by the result of op(+, a, b), op(-, a, b), op(*, a, b) or \
op(/, a, b), undo the last operation with rollback, or go back to the first pool with reset. A result must \
be a whole number of at least 0. You have won when {target} alone is left."""

_PAPER = """\
You solve a Countdown puzzle one step at a time: reach the target {target} from the numbers {numbers}.
A step is a single arithmetic operation between two numbers of the current pool, written op(+, a, b), \
op(-, a, b), op(*, a, b) or op(/, a, b); or rollback, which undoes the operation before; or reset, which \
restores the initial pool. Every operation is checked. With fewer than two numbers in the pool only \
rollback and reset lead on: an operation then loses the game. There are at most %d steps."""


def compact(parameters: CountdownParameters, history: int) -> CompactRendering:
    """The compact rendering for this section's pools."""
    return CompactRendering(parameters.largest_pool, history)


def text(parameters: CountdownParameters, history: int) -> TextRendering:
    """The text rendering in our own wording."""
    return TextRendering(history, _OWN)


def paper(parameters: CountdownParameters, history: int) -> TextRendering:
    """The text rendering with the task as described in the paper."""
    return TextRendering(history, _PAPER % parameters.max_steps)


def domain_words(parameters: CountdownParameters) -> dict[str, tuple[str, ...]]:
    """The beginnings of canonical actions, and the numbers."""
    return {
        "actions": (ROLLBACK, RESET, *(f"op({operator}," for operator in OPERATORS)),
        "entities": tuple(f" {number}" for number in range(parameters.max_target + 1)),
    }


def vocabulary(parameters: CountdownParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    numbers = {str(number): number for number in range(parameters.max_target + 1)}
    actions = action_words(parameters.largest_pool)
    return ScratchVocabulary(
        words=(*numbers, EMPTY, UNKNOWN, *actions),
        stop_words=actions,
        numbers=numbers,
        state_words=1 + parameters.largest_pool + history,
        continuation_words=parameters.largest_pool,
    )
