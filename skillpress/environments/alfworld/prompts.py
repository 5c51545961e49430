"""ALFWorld in words.

``text`` and ``paper`` are for pretrained models: prompts rebuilt at each step
(``environments/text/prompts.py``), with two wordings of the task. ``compact`` is for a policy trained from
scratch (see ``compact.py``).
"""

from __future__ import annotations

from skillpress.core.interface import AgentState
from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.text.prompts import GameRendering, own_state


class TextRendering(GameRendering):
    """The usual prompt; the placeholder of its wording is ``{goal}``."""

    thought = "I take the next step towards the task."

    def opening(self, state: AgentState) -> str:
        """The description of the task with its goal."""
        return self.wording.format(goal=own_state(state, AlfworldState).goal)

    def choices(self, state: AgentState) -> list[str]:
        """The possible actions except ``help``."""
        return [action for action in state.info.admissible if action != "help"]


OWN = "You are in a house, where you act by typing commands. Your task: {goal}"

PAPER = """\
You complete a household task by actions in plain English, in a simulated home of which you observe only a \
part at a time. An action that is not possible where you are changes nothing and is answered with "Nothing \
happens." There are at most %d steps.
Your task: {goal}"""
