"""ALFWorld in words, twice.

``text`` is for pretrained models: verl-agent's prompt, rebuilt each step, with reasoning in
``<think>`` and the action in ``<action>``. ``compact`` is for a policy made from scratch (see
``compact.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.text.prompts import game_prompt, tagged_answer
from skillpress.interface import AgentState, Info


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, the last observations and actions, what is seen now, what is possible."""

    history: int
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The prompt's text; a chat template may be laid around it."""
        environment = state.info.state
        assert isinstance(environment, AlfworldState), "the rendering is for ALFWorld's states"
        return game_prompt(
            "You are an expert agent operating in the ALFRED Embodied Environment. "
            f"Your task is to: {environment.goal}",
            state.history[-self.history :] if self.history else (),
            environment.steps,
            state.observation,
            [action for action in state.info.admissible if action != "help"],
            state.notes,
        )

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording, in the tags that the parser reads."""
        return tagged_answer("I take the next step towards the task.", info.action or action)


def text(parameters: AlfworldParameters, history: int) -> TextRendering:
    """The text rendering; it is the same for every section."""
    return TextRendering(history)
