"""A foreign server's observations in words, for pretrained models.

The section describes the task (``opening``). The first observation is shown again at every step, since many
servers state the goal only there.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.interface import AgentState, Info
from skillpress.environments.openenv.environment import OpenEnvState
from skillpress.environments.openenv.tools import FORM
from skillpress.environments.text.prompts import GameRendering, own_state, tagged_answer


class TextRendering(GameRendering):
    """The usual prompt, with the first observation after the description of the task."""

    def opening(self, state: AgentState) -> str:
        """The section's opening and tools and, from the second step on, the first observation."""
        episode = own_state(state, OpenEnvState)
        tools = (
            f"\nAn action is a call of one tool, {FORM}. The tools:\n{episode.tools}" if episode.tools else ""
        )
        return (
            self.wording + tools + (f"\nAt the beginning you saw: {episode.first}" if episode.steps else "")
        )

    def choices(self, state: AgentState) -> Sequence[str] | None:
        """The possible actions, as far as they are known."""
        return state.info.admissible or None

    def response(self, action: str, info: Info) -> str:
        """The action as it was written, in the tags that the parser reads."""
        return tagged_answer(self.thought, action)
