"""Any text environment that is registered with gymnasium, adapted to our interface.

gymnasium's environments judge themselves; ours state facts. So the reward of a step becomes a measure
(``reward``), which ``reward.measures`` may weigh, and the section says how to read whether the goal is
reached (``environment.won``). An episode that the environment ends otherwise is lost, or truncated if the
environment says so. The task's seed is gymnasium's seed: the same task and actions give the same episode if
the environment keeps gymnasium's promise, which is tested when tasks are made.

Any text is an action here. A text that is not in the action space costs a step and is never passed on. The
same holds for the empty text, which represents a response without a readable action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium.spaces import Space, Text

from skillpress.core.errors import TaskError
from skillpress.core.interface import Info
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.gymnasium_text.foreign import make_foreign
from skillpress.environments.gymnasium_text.names import told_admissible, told_won
from skillpress.environments.gymnasium_text.parameters import REWARD, GymnasiumTextParameters

LOST = "lost"
"""Outcome of an episode that the environment ended and that was not won."""
NO_ACTION, NOT_IN_SPACE, REFUSED = "no_action", "not_in_space", "refused"
"""Why an action changed nothing: it is empty, outside the action space, or refused by the environment."""
_DRAWS, _DRAWN_LENGTH = 4, 16
"""If the admissible actions are unknown: the number of random texts of the action space that the explorer may
choose from, and their maximum length in characters."""


@dataclass(frozen=True)
class GymnasiumState:
    """What a rendering may show."""

    first: str
    """O_0, the first observation."""
    steps: int
    """Number of steps taken so far."""
    drawn: tuple[str, ...]
    """Random texts of the action space; empty if the environment lists the admissible actions."""


class GymnasiumText:
    """One episode at a time."""

    def __init__(self, parameters: GymnasiumTextParameters) -> None:
        """Make the environment."""
        self._section = parameters
        self._env = make_foreign(parameters)
        self.action_space: Space[str] = self._env.action_space
        self.observation_space: Space[str] = self._env.observation_space
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the task's episode.

        Raises:
            TaskError: the task belongs to another environment.
        """
        if task.spec.get("id") != self._section.id:
            raise TaskError(
                f"task {task.task_id} is for {task.spec.get('id')!r}, not for {self._section.id!r}"
            )
        self._seed, self._steps, self._return, self._over = task.seed, 0, 0.0, False
        observation, facts = self._env.reset(seed=task.seed)
        self._first = self._last = self._text(observation)
        return self._first, self._info(facts)

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Pass an action on, unless it is empty or outside the action space."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        if not action or action not in self.action_space:
            self._over = self._steps >= self._section.max_steps
            info = Info(
                invalid=NOT_IN_SPACE if action else NO_ACTION,
                admissible=self._admissible,
                measures={REWARD: 0.0},
                state=self._state(),
            )
            return self._last, False, self._over, info
        observation, reward, ended, cut, facts = self._env.step(action)
        self._last = self._text(observation)
        self._return += float(reward)
        won = self._won(facts, bool(ended or cut))
        terminated = won or bool(ended)
        cut = bool(cut) or self._steps >= self._section.max_steps
        self._over = terminated or cut
        info = self._info(facts, action, won, LOST if ended and not won else None, float(reward))
        return self._last, terminated, cut and not terminated, info

    def _won(self, facts: Mapping[str, Any], over: bool) -> bool:
        rule = self._section.won
        if rule.reward is None:
            return told_won(self._section, facts)
        return over and self._return >= rule.reward

    def _info(
        self,
        facts: Mapping[str, Any],
        action: str | None = None,
        won: bool = False,
        lost: str | None = None,
        reward: float | None = None,
    ) -> Info:
        keys = self._section.info
        self._admissible = told_admissible(self._section, facts)
        wording = facts.get(keys.action) if keys.action and action is not None else None
        return Info(
            won=won,
            lost=lost,
            action=wording if isinstance(wording, str) else action,
            invalid=REFUSED if keys.invalid and facts.get(keys.invalid) else None,
            admissible=self._admissible,
            measures={} if reward is None else {REWARD: reward},
            state=self._state(),
        )

    def _state(self) -> GymnasiumState:
        drawn: tuple[str, ...] = ()
        if not self._admissible:
            space = self.action_space
            assert isinstance(space, Text), "foreign.py has seen to it"
            length = min(max(_DRAWN_LENGTH, space.min_length), space.max_length)
            space.seed(derive(self._seed, "draws", self._steps) % 2**32)
            drawn = tuple(space.sample(mask=(length, None)) for _ in range(_DRAWS))
        return GymnasiumState(self._first, self._steps, drawn)

    def _text(self, observation: object) -> str:
        if not isinstance(observation, str):
            raise TypeError(f"{self._section.id} observed {type(observation).__name__}, which is not a text")
        return observation


def explorer_actions(info: Info) -> Sequence[str]:
    """The admissible actions or, if they are unknown, random texts of the action space."""
    assert isinstance(info.state, GymnasiumState)
    return info.admissible or info.state.drawn
