"""alfworld's handcoded expert, fed by this package's engine.

The expert walks from receptacle to receptacle, likely ones first, until it sees what it needs: the
demonstrations of one who does not know where things are. Three things stand between it and us:

- It reads ``traj_data.json`` for what the game's name says too; its policy is made from the name.
- It draws from the ``random`` module; within a decision that module gets a seed of ours.
- alfworld 0.4 renamed ``put`` to ``move``, and the expert still waits for a ``put`` to notice that its
  hands are empty. It is told of each move as the put that it knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from alfworld.agents.expert import HandCodedAgentFailed, HandCodedAgentTimeout, HandCodedTWAgent

from skillpress.environments.alfworld.engine import Engine, Scene
from skillpress.environments.alfworld.games import Game

_PREDICATES = ("holds", "inreceptacle", "isclean", "iscool", "ishot")
"""The facts that the expert's rules look at; collecting all of them takes longer than a step."""


@dataclass(frozen=True)
class _Fact:
    """As much of a TextWorld proposition as the expert reads."""

    name: str
    names: tuple[str, ...]


class Expert:
    """Decides the next action of one episode."""

    def __init__(self, game: Game, introduction: str, seed: int) -> None:
        """Begin an episode whose first observation was ``introduction``."""
        self._random = random.Random(seed)
        self._agent = HandCodedTWAgent()
        self._agent.policy = self._agent.get_task_policy({"task_type": game.task_type})(
            _parameters(game), max_steps=self._agent.max_steps
        )
        self._agent.observe(introduction)

    def act(self, engine: Engine, scene: Scene, last: str) -> str | None:
        """The next action, ``look`` where the expert's is not admissible; None when it has given up.

        Args:
            engine: the running game, asked for the facts that the expert's rules read.
            scene: what the game said after the last action.
            last: the last action; ``look`` before the first.
        """
        state: dict[str, Any] = {
            "feedback": scene.feedback,
            "admissible_commands": list(scene.admissible),
            "facts": [_Fact(name, tuple(names)) for name, *names in engine.facts(*_PREDICATES)],
        }
        try:
            with _seeded(self._random):
                action = self._agent.act(state, 0, scene.won, _as_put(last))
        except (HandCodedAgentFailed, HandCodedAgentTimeout, LookupError):
            return None
        return str(action) if action in scene.admissible else "look"


def _parameters(game: Game) -> dict[str, str]:
    """What ``traj_data.json`` would hold, in the expert's lower case."""
    wanted, destination = game.target_object.lower(), game.destination.lower()
    return {"object_target": wanted, "parent_target": destination, "toggle_target": destination}


def _as_put(action: str) -> str:
    """``put X in/on Y`` for ``move X to Y``."""
    words = action.split()
    if words[0] != "move":
        return action
    return " ".join(("put", *words[1:3], "in/on", *words[4:]))


@contextmanager
def _seeded(generator: random.Random) -> Iterator[None]:
    """The ``random`` module draws from ``generator`` within the block."""
    outside = random.getstate()
    random.setstate(generator.getstate())
    try:
        yield
    finally:
        generator.setstate(random.getstate())
        random.setstate(outside)
