"""ALFWorld in words.

``text`` and ``paper`` are for pretrained models: prompts rebuilt at each step
(``environments/text/prompts.py``), with two wordings of the task. ``compact`` is for a policy trained from
scratch (see ``compact.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.core.interface import AgentState, Info
from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.text.prompts import game_prompt, game_turn, tagged_answer


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, last observations and actions, current observation, and possible actions."""

    history: int
    opening: str
    """The description of the task, with a placeholder ``{goal}``."""
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The text of the prompt; a chat template may be put around it."""
        environment = _state(state)
        return game_prompt(
            self.opening.format(goal=environment.goal),
            state.history[-self.history :] if self.history else (),
            steps=environment.steps,
            observation=state.observation,
            admissible=_choices(state),
            notes=state.notes,
        )

    def continuation(self, state: AgentState) -> str:
        """The current observation and the possible actions."""
        return game_turn(_state(state).steps, state.observation, _choices(state))

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return tagged_answer("I take the next step towards the task.", info.action or action)


def _state(state: AgentState) -> AlfworldState:
    assert isinstance(state.info.state, AlfworldState), "the rendering is for ALFWorld's states"
    return state.info.state


def _choices(state: AgentState) -> list[str]:
    return [action for action in state.info.admissible if action != "help"]


_OWN = "You are in a house, where you act by typing commands. Your task: {goal}"

_PAPER = """\
You complete a household task by actions in plain English, in a simulated home of which you observe only a \
part at a time. An action that is not possible where you are changes nothing and is answered with "Nothing \
happens." There are at most %d steps.
Your task: {goal}"""


def text(parameters: AlfworldParameters, history: int) -> TextRendering:
    """The text rendering in our own wording."""
    return TextRendering(history, _OWN)


def paper(parameters: AlfworldParameters, history: int) -> TextRendering:
    """The text rendering with the task as described in the paper."""
    return TextRendering(history, _PAPER % parameters.max_steps)
