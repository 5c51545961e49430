"""The built-in game with the program's rules for skills and, if asked for, with the program's draws.

A program's response is drawn from a seed that derives from its request, a built-in agent's from the number of
its step. With ``draws: program`` the game names the draws that the program's requests would have. Then the
built-in agent says the same words as the program, and all that is computed from them must be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from gymnasium.spaces import Space

from skillpress.core.chat_messages import Message
from skillpress.core.interface import AgentState, Environment, Info, Rendering, Turn
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.environment import Countdown
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.prompts import CompactRendering
from skillpress.environments.section import Projection
from skillpress.environments.text.stated_rules import StatedRules
from skillpress.rollouts.programs.requests import Asked, ModelRequest

HISTORY = 4
"""Number of past actions in a prompt."""


class BuiltInParameters(CountdownParameters):
    """Countdown's section, and which seeds its agent draws from."""

    skills: StatedRules  # type: ignore[assignment]
    """Rules that name words, as in a program's section."""
    draws: Literal["own", "program"]

    def make(self) -> Environment:
        return BuiltIn(self)

    def make_projection(self) -> Projection:
        return self.skills.projection()

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        return {"requests": lambda history: CompactRendering(self.largest_pool, history)}


class BuiltIn:
    """``Countdown``, whose actions are recorded as words and not in the canonical wording."""

    action_space: Space[str] = Countdown.action_space
    observation_space: Space[str] = Countdown.observation_space

    def __init__(self, section: BuiltInParameters) -> None:
        self._game, self._own_draws = Countdown(section), section.draws == "own"
        self._rendering = CompactRendering(section.largest_pool, HISTORY)

    def reset(self, task: Task) -> tuple[str, Info]:
        """See ``Environment``."""
        self._task, self._asked = task, Counter[str]()
        self._turns: tuple[Turn, ...] = ()
        observation, info = self._game.reset(task)
        return observation, self._noted(info)

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """See ``Environment``."""
        observation, terminated, truncated, info = self._game.step(action)
        self._turns = (*self._turns, Turn("", "", action))[-HISTORY:]
        return observation, terminated, truncated, self._noted(info)

    def _noted(self, info: Info) -> Info:
        info = replace(info, action=None)
        if self._own_draws:
            return info
        shown = self._rendering.prompt(
            AgentState(task=self._task, observation="", info=info, history=self._turns)
        )
        request = ModelRequest((Message("user", shown),))
        occurrence = self._asked[request.digest]
        self._asked[request.digest] += 1
        return replace(info, draw=Asked(request, occurrence).draw)
