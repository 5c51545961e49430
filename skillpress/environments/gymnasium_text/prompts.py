"""A registered environment in words.

``text`` is the usual prompt of text games: the task (or the environment's first observation), the last turns,
the current observation, and the possible actions if they are known. ``compact`` is for a policy trained from
scratch: it contains only the words of the last turns and of the current observation that the section lists,
in their order. A turn is ``seen > done ;``; an answer is the action's words and ``<end>``.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.gymnasium_text.environment import GymnasiumState
from skillpress.environments.gymnasium_text.parameters import CompactWords, GymnasiumTextParameters
from skillpress.environments.text.prompts import game_prompt, game_turn, tagged_answer
from skillpress.environments.text.words import split_words

END, DONE, TURN = "<end>", ">", ";"
"""The end of an answer, the separator between an observation and an action, and the end of a turn."""


def _state(state: AgentState) -> GymnasiumState:
    assert isinstance(state.info.state, GymnasiumState), "the rendering is for gymnasium's environments"
    return state.info.state


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, last observations and actions, current observation, and possible actions."""

    history: int
    opening: str
    """The description of the task; if empty, the environment's first observation."""
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        episode = _state(state)
        seen = state.observation if self.opening or episode.steps else "what stands above."
        return game_prompt(
            self.opening or episode.first,
            state.history[-self.history :] if self.history else (),
            steps=episode.steps,
            observation=seen,
            admissible=state.info.admissible or None,
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The current observation and the possible actions."""
        return game_turn(_state(state).steps, state.observation, state.info.admissible or None)

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return tagged_answer("I take the next step towards the goal.", info.action or action)


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
        for turn in state.history[-self.history :] if self.history else ():
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
    """The words that the section lists and those of its actions, each once.

    Raises:
        ParamsError: the section lists none.
    """
    of_actions = (word for action in parameters.actions for word in split_words(action))
    return tuple(dict.fromkeys((*parameters.needed_words().words, *of_actions)))


def longest(section: CompactWords, history: int) -> int:
    """Number of words in the longest compact prompt."""
    return history * (section.per_observation + section.per_action + 2) + section.per_observation + 1


def text(parameters: GymnasiumTextParameters, history: int) -> TextRendering:
    """The text rendering for this section's environment."""
    return TextRendering(history, parameters.opening)


def compact(parameters: GymnasiumTextParameters, history: int) -> CompactRendering:
    """The compact rendering with this section's words.

    Raises:
        ParamsError: the section lists none.
    """
    return CompactRendering(parameters.needed_words(), frozenset(known_words(parameters)), history)


def vocabulary(parameters: GymnasiumTextParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering. Words that are numbers get the features of numbers.

    Raises:
        ParamsError: the section lists none.
    """
    section, known = parameters.needed_words(), known_words(parameters)
    return ScratchVocabulary(
        words=(*dict.fromkeys((*known, DONE, TURN)), END),
        stop_words=(END,),
        numbers={word: int(word) for word in known if word.isdecimal()},
        state_words=longest(section, history),
        end=END,
        continuation_words=section.per_observation + 2,
    )
