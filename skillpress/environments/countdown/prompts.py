"""Countdown in words.

``compact`` is for a policy trained from scratch: a fixed number of words (target, pool, last actions), and
one compact action word as the whole response. ``text`` and ``paper`` are for pretrained models: prompts
rebuilt at each step (``environments/text/prompts.py``), with two wordings of the task. ``brief`` is for
pretrained models whose tokens are expensive: the response is just an action, and the prompt lists no actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.countdown.actions import RESET, ROLLBACK, action_words
from skillpress.environments.countdown.environment import CountdownState
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.rules import OPERATORS
from skillpress.environments.text.prompts import GameRendering, last_turns, noted, own_state, past
from skillpress.environments.text.words import UNKNOWN

EMPTY = "_"
"""Fills the unused places for numbers and actions."""


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
        environment = own_state(state, CountdownState)
        turns = last_turns(state, self.history)
        words = [str(environment.target), *map(str, environment.pool)]
        words += [EMPTY] * (self.max_numbers + self.history - len(environment.pool) - len(turns))
        words += [turn.action if turn.action in self._known else UNKNOWN for turn in turns]
        return " ".join(words)

    def continuation(self, state: AgentState) -> str:
        """The pool, at most ``max_numbers`` words."""
        return " ".join(map(str, own_state(state, CountdownState).pool))

    def response(self, action: str, info: Info) -> str:
        """The action word itself."""
        return action


class TextRendering(GameRendering):
    """The usual prompt; the placeholders of its wording are ``{target}`` and ``{numbers}``."""

    thought = "I take the next step of a solution."

    def opening(self, state: AgentState) -> str:
        """The description of the task with its numbers."""
        numbers = " ".join(map(str, sorted(state.task.spec["numbers"])))
        return self.wording.format(target=own_state(state, CountdownState).target, numbers=numbers)


class BriefRendering(TextRendering):
    """The task in a line, then turns of a pool and an action: about a third of the tokens of ``text``."""

    def prompt(self, state: AgentState) -> str:
        """The task, the last turns and the pool, without the actions that are possible."""
        turns = last_turns(state, self.history)
        told = past(turns, own_state(state, CountdownState).steps)
        return f"{self.opening(state)}\n{noted(state.notes)}{told}{self.observation(state)}"

    def continuation(self, state: AgentState) -> str:
        """The pool; after an action that changed nothing, also the reason."""
        return self.observation(state)

    def observation(self, state: AgentState) -> str:
        """What the environment says, without the target, which is in the opening."""
        return state.observation.partition(". ")[2] if not state.history else state.observation

    def response(self, action: str, info: Info) -> str:
        """The action in words, such as ``op(+, 1, 28)``."""
        return info.action or action


BRIEF = """\
Make {target} from {numbers}, each used once. Answer with op(+, a, b), op(-, a, b), op(*, a, b) or \
op(/, a, b) on two numbers that are left, rollback or reset."""

OWN = """\
This is the numbers game Countdown. Make {target} from the numbers {numbers}; each of them must be used once.
In a step you replace two numbers of the pool by the result of op(+, a, b), op(-, a, b), op(*, a, b) or \
op(/, a, b), undo the last operation with rollback, or go back to the first pool with reset. A result must \
be a whole number of at least 0. You have won when {target} alone is left."""

PAPER = """\
You solve a Countdown puzzle one step at a time: reach the target {target} from the numbers {numbers}.
A step is a single arithmetic operation between two numbers of the current pool, written op(+, a, b), \
op(-, a, b), op(*, a, b) or op(/, a, b); or rollback, which undoes the operation before; or reset, which \
restores the initial pool. Every operation is checked. With fewer than two numbers in the pool only \
rollback and reset lead on: an operation then loses the game. There are at most %d steps."""


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
