"""A foreign server's observations in words, for pretrained models.

The section describes the task (``opening``). The first observation is shown again at every step, since many
servers state the goal only there.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info
from skillpress.environments.openenv.environment import OpenEnvState
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.text.prompts import game_prompt, game_turn, tagged_answer


@dataclass(frozen=True)
class TextRendering:
    """One user turn: opening, first observation, last turns, current observation, and possible actions."""

    history: int
    opening: str
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        episode = _state(state)
        beginning = f"\nAt the beginning you saw: {episode.first}" if episode.steps else ""
        turns = state.history[-self.history :] if self.history else ()
        return game_prompt(
            f"{self.opening}{beginning}",
            turns,
            steps=episode.steps,
            observation=state.observation,
            admissible=state.info.admissible or None,
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The current observation and the possible actions."""
        return game_turn(_state(state).steps, state.observation, state.info.admissible or None)

    def response(self, action: str, info: Info) -> str:
        """The action in the tags that the parser reads."""
        return tagged_answer("I take the next step.", action)


def _state(state: AgentState) -> OpenEnvState:
    assert isinstance(state.info.state, OpenEnvState), "the rendering is for a foreign server's states"
    return state.info.state


def text(parameters: OpenEnvParameters, history: int) -> TextRendering:
    """The text rendering with the section's opening."""
    return TextRendering(history, parameters.opening)
