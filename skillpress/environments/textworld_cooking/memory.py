"""What the player has seen so far, for renderings that show more than the last lines.

A game describes a room with everything in it when the player enters, and reports the result of every action.
So an attentive player knows the last state of the visited rooms, the contents of open containers, what is
carried and how it was processed, and the recipe once the cookbook was read. This memory contains exactly
that. It knows of a closed container only that it is closed, and of an exit to an unvisited room only
direction and door. A game begins with empty hands. (The facts are read from the game's logic instead of its
prose; a test checks that every name in a memory occurs in the observations before it.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from skillpress.environments.textworld_cooking.logic import Logic, State

COOKED = ("burned", "fried", "roasted", "grilled")
"""The game's words for food by its cooking; the first one that is true counts."""
CUT = ("chopped", "sliced", "diced")
_DIRECTIONS = ("north", "south", "east", "west")


class Item(NamedTuple):
    """A thing that can be carried, as the game prints it."""

    name: str
    cooking: str = ""
    """``raw`` (must be cooked before it is eaten), or one of :data:`COOKED`; empty for all others."""
    cutting: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.cutting, self.cooking, self.name) if word)


class Furniture(NamedTuple):
    """A thing that holds items."""

    name: str
    closed: bool
    contents: tuple[Item, ...]
    """Empty while it is closed."""


class Exit(NamedTuple):
    """A way out of a room."""

    direction: str
    door: str
    """Empty if there is no door."""
    closed: bool
    to: str
    """The neighbouring room's name if it was ever visited, else empty."""


@dataclass(frozen=True, slots=True)
class Room:
    """A room in the state in which it was last seen."""

    name: str
    furniture: tuple[Furniture, ...]
    floor: tuple[Item, ...]
    exits: tuple[Exit, ...]

    @property
    def items(self) -> tuple[tuple[str, Item], ...]:
        """(holder, item) of everything seen here; an empty holder is the floor."""
        held = [(holder.name, item) for holder in self.furniture for item in holder.contents]
        return (*held, *(("", item) for item in self.floor))


@dataclass(frozen=True, slots=True)
class CookingState:
    """``info.state``: small, and safe to pickle."""

    steps: int
    """Number of steps taken so far."""
    room: str
    """The player's room."""
    rooms: Mapping[str, Room]
    """The visited rooms by name, in the order of their first visits."""
    carrying: tuple[Item, ...]
    recipe: tuple[str, ...] = ()
    """The cookbook's directions, such as ``dice the carrot``; empty until it was read."""
    ingredients: tuple[str, ...] = ()
    """The foods that the cookbook asks for. No direction names a food that needs no processing."""

    @property
    def here(self) -> Room:
        """The player's room."""
        return self.rooms[self.room]


def remember(logic: Logic, state: State, before: CookingState | None, steps: int) -> CookingState:
    """The memory after seeing the current room; ``before`` is None at the start of a game."""
    facts = _Facts(logic, state)
    visited = {} if before is None else before.rooms
    room = facts.room
    name = logic.names[room]
    here = Room(name, facts.furniture(room), facts.items("at", room), facts.exits(room, {*visited, name}))
    rooms = {**visited, name: here}
    read = {} if before is None else {"recipe": before.recipe, "ingredients": before.ingredients}
    return CookingState(steps=steps, room=name, rooms=rooms, carrying=facts.items("in", "I"), **read)


def with_recipe(memory: CookingState, cookbook: str) -> CookingState:
    """The memory after reading the cookbook's text."""
    before, _, directions = cookbook.partition("Directions:")
    ingredients = before.partition("Ingredients:")[2]
    return replace(memory, recipe=_lines(directions), ingredients=_lines(ingredients))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


class _Facts:
    """Queries on one state of a game's logic."""

    def __init__(self, logic: Logic, state: State) -> None:
        self._logic, self._state = logic, state
        self.room = next(fact[2] for fact in state if fact[:2] == ("at", "P"))

    def items(self, relation: str, holder: str) -> tuple[Item, ...]:
        """The carriable things at, in or on the holder, by name."""
        carriable = ("o", "f", "meal")
        ids = (fact[1] for fact in self._state if fact[0] == relation and fact[2] == holder)
        return tuple(sorted(self._item(key) for key in ids if self._logic.types[key] in carriable))

    def furniture(self, room: str) -> tuple[Furniture, ...]:
        """The furniture in a room, by name."""
        ids = [fact[1] for fact in self._state if fact[0] == "at" and fact[2] == room]
        kinds = ("c", "oven", "toaster", "s", "stove")
        return tuple(sorted(self._holder(key) for key in ids if self._logic.types[key] in kinds))

    def exits(self, room: str, visited: set[str]) -> tuple[Exit, ...]:
        """The exits, in the order north, south, east, west."""
        ways = [
            (direction, fact[1])
            for direction in _DIRECTIONS
            for fact in self._state
            if fact[0] == f"{direction}_of" and fact[2] == room
        ]
        return tuple(self._exit(direction, room, neighbour, visited) for direction, neighbour in ways)

    def _exit(self, direction: str, room: str, neighbour: str, visited: set[str]) -> Exit:
        links = (fact for fact in self._state if fact[0] == "link")
        door = next((link[2] for link in links if link[1::2] == (room, neighbour)), None)
        name = self._logic.names[neighbour]
        return Exit(
            direction,
            "" if door is None else self._logic.names[door],
            door is not None and ("closed", door) in self._state,
            name if name in visited else "",
        )

    def _item(self, key: str) -> Item:
        def what_is_true(words: tuple[str, ...]) -> str:
            return next((word for word in words if (word, key) in self._state), "")

        raw = "raw" if ("needs_cooking", key) in self._state else ""
        return Item(self._logic.names[key], what_is_true(COOKED) or raw, what_is_true(CUT))

    def _holder(self, key: str) -> Furniture:
        closed = ("closed", key) in self._state
        relation = "on" if self._logic.types[key] in ("s", "stove") else "in"
        return Furniture(self._logic.names[key], closed, () if closed else self.items(relation, key))
