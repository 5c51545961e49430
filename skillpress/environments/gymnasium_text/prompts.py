"""A registered environment in words.

``text`` is the usual prompt of text games: the task (or the environment's first observation), the last turns,
the current observation, and the possible actions if they are known. ``compact`` is for a policy trained from
scratch: it contains only the words of the last turns and of the current observation that the section lists,
in their order. A turn is ``seen > done ;``; an answer is the action's words and ``<end>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.gymnasium_text.environment import GymnasiumState
from skillpress.environments.gymnasium_text.parameters import CompactWords, GymnasiumTextParameters
from skillpress.environments.text.prompts import GameRendering, last_turns, own_state
from skillpress.environments.text.words import ended_vocabulary, split_words

DONE, TURN = ">", ";"
"""The separator between an observation and an action, and the end of a turn."""


class TextRendering(GameRendering):
    """The usual prompt; without a wording it opens with the environment's first observation."""

    thought = "I take the next step towards the goal."

    def opening(self, state: AgentState) -> str:
        """The description of the task, or the first observation."""
        return self.wording or own_state(state, GymnasiumState).first

    def observation(self, state: AgentState) -> str:
        """The current observation, unless the prompt opens with it."""
        opens = not self.wording and not own_state(state, GymnasiumState).steps
        return "what stands above." if opens else state.observation

    def choices(self, state: AgentState) -> Sequence[str] | None:
        """The possible actions, if the environment or the section lists them."""
        return state.info.admissible or None


@dataclass(frozen=True)
class CompactRendering:
    """A prompt of the words that the section lists."""

    section: CompactWords
    known: frozenset[str]
    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most :func:`longest` words."""
        words: list[str] = []
        for turn in last_turns(state, self.history):
            done = self._of(turn.action)[: self.section.per_action]
            words += [*self._seen(turn.observation), DONE, *done, TURN]
        return " ".join([*words, *self._seen(state.observation), DONE])

    def continuation(self, state: AgentState) -> str:
        """The current observation."""
        return " ".join([TURN, *self._seen(state.observation), DONE])

    def response(self, action: str, info: Info) -> str:
        """The action's words."""
        return " ".join(self._of(info.action or action))

    def _seen(self, observation: str) -> list[str]:
        return self._of(observation)[-self.section.per_observation :]

    def _of(self, text: str) -> list[str]:
        return [word for word in split_words(text) if word in self.known]


def known_words(parameters: GymnasiumTextParameters) -> tuple[str, ...]:
    """The words that the section lists and those of its actions, each once."""
    of_actions = (word for action in parameters.actions for word in split_words(action))
    return tuple(dict.fromkeys((*parameters.needed_words().words, *of_actions)))


def longest(section: CompactWords, history: int) -> int:
    """Number of words in the longest compact prompt."""
    return history * (section.per_observation + section.per_action + 2) + section.per_observation + 1


def compact(parameters: GymnasiumTextParameters, history: int) -> CompactRendering:
    """The compact rendering with this section's words."""
    return CompactRendering(parameters.needed_words(), frozenset(known_words(parameters)), history)


def vocabulary(parameters: GymnasiumTextParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering. Words that are numbers get the features of numbers."""
    section, known = parameters.needed_words(), known_words(parameters)
    words = tuple(dict.fromkeys((*known, DONE, TURN)))
    return ended_vocabulary(words, longest(section, history), section.per_observation + 2)
