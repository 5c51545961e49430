"""TextWorld-Cooking: read the cookbook, find and process the ingredients, prepare the meal, eat it.

The game itself is TextWorld's, compiled and run by its Z-machine. It is won by eating the meal. It is lost
for good as *burned* if an ingredient or the meal burns, and as *wrong processing* after any other step that
the recipe rules out (wrong appliance, wrong cut, an ingredient eaten). After T steps it is cut off. The
outcome is read from the game's logic, not from its prose.

Every text costs a step. A text that is not a single command of the game is not sent to it (``actions.py``),
and ``info.invalid`` says why an action changed nothing. ``info.admissible`` is TextWorld's own list. The game
is deterministic, so an episode can be recreated from its task and actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from string import printable

from gymnasium.spaces import Space, Text

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.textworld_cooking.actions import EXPLANATIONS, LONGEST, Reason, normal, refusal
from skillpress.environments.textworld_cooking.design import GameSettings
from skillpress.environments.textworld_cooking.games import DESIGN, GameCache
from skillpress.environments.textworld_cooking.interpreter import GameInterpreter, GameReply
from skillpress.environments.textworld_cooking.logic import (
    Action,
    Logic,
    State,
    after,
    commands,
    happened,
    read_logic,
)
from skillpress.environments.textworld_cooking.memory import CookingState, remember, with_recipe
from skillpress.environments.textworld_cooking.parameters import CookingParameters

BURNED, WRONG_PROCESSING = "burned", "wrong_processing"
_NOTHING_DONE = ("look", "inventory", "examine")


class TextWorldCooking:
    """One game at a time; ``task.spec`` holds its ``settings``, ``task.seed`` its seed.

    ``reset`` generates a game that is not in the cache.
    """

    action_space: Space[str] = Text(max_length=LONGEST, min_length=0, charset=printable)
    observation_space: Space[str] = Text(max_length=4000, charset=printable)

    def __init__(self, parameters: CookingParameters) -> None:
        self._max_steps = parameters.max_steps
        self._cache = GameCache(parameters.cache)
        self._interpreter = GameInterpreter()
        self._over = True

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the game."""
        program = self._cache.program(GameSettings.from_spec(task.spec["settings"]), task.seed)
        self._logic: Logic = read_logic(program.with_name(DESIGN))
        self._steps = 0
        self._over = False
        introduction = self._interpreter.start(program)
        self._enter(self._logic.first)
        self._memory: CookingState = remember(self._logic, self._state, None, 0)
        return introduction.text, Info(
            admissible=self._admissible, state=self._memory, state_key=self._state_key
        )

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        """Send an action to the game."""
        if self._over:
            raise RuntimeError("the episode is over; call reset first")
        self._steps += 1
        not_typed = refusal(action)
        if not_typed is not None:
            reply = GameReply(f"Nothing happens: {EXPLANATIONS[not_typed]}.", (), False, False)
            return self._answer(reply, None, not_typed)
        command = normal(action)
        reply = self._interpreter.send(command)
        if not reply.events:
            possible = any(command == known.lower() for known in self._admissible)
            return self._answer(reply, command, "refused" if possible else "not_admissible")
        return self._answer(reply, self._follow(reply, command), None)

    def _enter(self, state: State) -> None:
        """Set the current state of the game's logic."""
        self._state = state
        facts = repr(sorted(state)).encode()
        self._state_key = blake2b(facts, digest_size=16).hexdigest()  # hundreds of facts
        self._actions: list[Action] = self._logic.actions(state)
        self._admissible = commands(self._actions)

    def _follow(self, reply: GameReply, command: str) -> str:
        """Update logic and memory after an action; return the action in TextWorld's wording."""
        wording = command
        for event in reply.events:
            action = happened(event, self._actions)
            if action is not None:
                wording = action.command
                if action.added or action.removed:
                    self._enter(after(self._state, action))
        if "examining the cookbook" in reply.events:
            self._memory = with_recipe(self._memory, reply.text)
        return wording

    def _answer(
        self, reply: GameReply, wording: str | None, invalid: Reason | None
    ) -> tuple[str, bool, bool, Info]:
        self._memory = remember(self._logic, self._state, self._memory, self._steps)
        lost = self._loss() if reply.lost else None
        terminated = reply.won or reply.lost
        truncated = not terminated and self._steps >= self._max_steps
        self._over = terminated or truncated
        info = Info(
            won=reply.won,
            lost=lost,
            action=wording,
            invalid=invalid,
            admissible=self._admissible,
            state=self._memory,
            state_key=self._state_key,
        )
        return reply.text, terminated, truncated, info

    def _loss(self) -> str:
        """Why the game is lost. Food that the recipe does not need may burn without losing the game."""
        needed = {fact[1] for fact in self._state if fact[0].startswith("ingredient_")}
        needed |= {key for key, kind in self._logic.types.items() if kind == "meal"}
        burned = any(("burned", key) in self._state for key in needed)
        return BURNED if burned else WRONG_PROCESSING


def explorer_actions(info: Info) -> Sequence[str]:
    """The admissible actions that have an effect; ``look`` if there are none."""
    return [action for action in info.admissible if action.split()[0] not in _NOTHING_DONE] or ("look",)
