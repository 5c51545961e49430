"""Demonstrations of two kinds: by a searcher, and by an oracle that knows where everything is.

:class:`SearchingOracle` decides by the rule of ``searcher.py``, using only the game's answers so far. With
probability ``detour_rate`` a step is a random effective action instead, and the search continues from the
resulting state. If it does not win within T, it plays the same game again without detours. If that fails too,
it returns the stored walkthrough, which always wins. Imitation learns the rule's advice at each step, not the
detours and not the walkthrough (``AdvisingOracle``).

:class:`OmniscientOracle` returns that walkthrough: 3 to 10 steps, straight to things it never saw. It shows
how short an episode can be, and it is a bad teacher.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from skillpress.core.errors import TaskError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.engine import GameEngine, read_game
from skillpress.environments.alfworld.environment import IDLE_VERBS, AlfworldState
from skillpress.environments.alfworld.games import describe, find_tree
from skillpress.environments.alfworld.memory import first_memory, remember
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.searcher import next_action


@dataclass(frozen=True)
class OmniscientOracle:
    """Demonstrates the game's stored walkthrough."""

    section: AlfworldParameters

    @cached_property
    def tree(self) -> Path:
        """The folder of the games."""
        return find_tree(self.section.data)

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return the walkthrough. It makes no detours, whatever the rate is.

        Raises:
            GameError: the game's file is missing or damaged.
            TaskError: the walkthrough is longer than ``max_steps``.
        """
        path = self.tree / describe(str(task.spec.get("game"))).path
        actions = [str(action) for action in read_game(path)["walkthrough"]]
        if len(actions) > self.section.max_steps:
            raise TaskError(f"task {task.task_id} cannot be solved within {self.section.max_steps} steps")
        return actions


@dataclass(frozen=True)
class SearchingOracle:
    """Demonstrates with the searcher, or with the walkthrough if the searcher fails."""

    section: AlfworldParameters

    @cached_property
    def omniscient(self) -> OmniscientOracle:
        """The oracle that is used if the searcher fails."""
        return OmniscientOracle(self.section)

    @cached_property
    def _engine(self) -> GameEngine:
        return GameEngine()

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """The demonstration for this seed; it wins within ``max_steps``."""
        for rate in (detour_rate, 0.0) if detour_rate else (0.0,):
            actions = self.search(task, rate, seed)
            if actions is not None:
                return actions
        return self.omniscient(task, 0.0, seed)

    def search(self, task: Task, detour_rate: float, seed: int) -> list[str] | None:
        """The searcher's actions with detours; None if it does not win within ``max_steps``."""
        game = describe(str(task.spec.get("game")))
        random = Random(seed)
        scene = self._engine.reset(self.omniscient.tree / game.path)
        memory = first_memory(scene.feedback)
        actions: list[str] = []
        while len(actions) < self.section.max_steps:
            action = next_action(game, memory)
            if random.random() < detour_rate:
                action = random.choice([a for a in scene.admissible if a not in IDLE_VERBS])
            if action is None or action not in scene.admissible:
                return None
            actions.append(action)
            scene = self._engine.step(action)
            if scene.won:
                return actions
            memory = remember(memory, action, scene.feedback)
        return None

    def advise(self, state: AgentState) -> str | None:
        """The action that the searcher would take in this state, however it was reached; None if it knows
        none."""
        environment = state.info.state
        assert isinstance(environment, AlfworldState), "the oracle is for ALFWorld's states"
        return next_action(describe(str(state.task.spec.get("game"))), environment.memory)
