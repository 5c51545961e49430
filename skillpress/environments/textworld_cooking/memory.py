"""What the player has seen so far, for renderings that show more than the last lines.

A game describes a room with everything in it when it is entered, and tells the result of every
action; so a player with a good memory knows the visited rooms as they were last, the open containers,
what is carried and how it was processed, and the recipe once the cookbook was read. That, and nothing
else, stands here: of closed containers only that they are closed, of doors to rooms never entered only
the direction. A game begins with empty hands. (The facts are read from the game's logic rather than
out of its prose; a test holds every name in a memory to the observations before it.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from skillpress.environments.textworld_cooking.logic import Logic, State

COOKED = ("burned", "fried", "roasted", "grilled")
"""What the game calls food by its cooking; the first that is true counts."""
CUT = ("chopped", "sliced", "diced")
_DIRECTIONS = ("north", "south", "east", "west")


class Item(NamedTuple):
    """Something that can be carried, as the game prints it."""

    name: str
    cooking: str = ""
    """``raw`` (must be cooked before it is eaten), or one of :data:`COOKED`; empty for the rest."""
    cutting: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.cutting, self.cooking, self.name) if word)


class Furniture(NamedTuple):
    """Something that holds items."""

    name: str
    closed: bool
    contents: tuple[Item, ...]
    """Empty while it is closed."""


class Exit(NamedTuple):
    """A way out of a room."""

    direction: str
    door: str
    """Empty where there is none."""
    closed: bool
    to: str
    """The neighbouring room's name if it was ever visited, else empty."""


@dataclass(frozen=True, slots=True)
class Room:
    """A room as it was when last seen."""

    name: str
    furniture: tuple[Furniture, ...]
    floor: tuple[Item, ...]
    exits: tuple[Exit, ...]

    @property
    def items(self) -> tuple[tuple[str, Item], ...]:
        """(what holds it, item) of everything seen here; an empty name is the floor."""
        held = [(holder.name, item) for holder in self.furniture for item in holder.contents]
        return (*held, *(("", item) for item in self.floor))


@dataclass(frozen=True, slots=True)
class CookingState:
    """``info.state``: small, and safe to pickle."""

    steps: int
    """Steps taken so far."""
    room: str
    """Where the player is."""
    rooms: Mapping[str, Room]
    """The visited rooms by name, in the order first visited."""
    carrying: tuple[Item, ...]
    recipe: tuple[str, ...] = ()
    """The cookbook's directions, such as ``dice the carrot``; empty until it was read."""
    ingredients: tuple[str, ...] = ()
    """The foods that the cookbook asks for; no direction names one that is eaten as it is."""

    @property
    def here(self) -> Room:
        """The room the player is in."""
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
    """Questions about one state of a game's logic."""

    def __init__(self, logic: Logic, state: State) -> None:
        self._logic, self._state = logic, state
        self.room = next(fact[2] for fact in state if fact[:2] == ("at", "P"))

    def items(self, relation: str, holder: str) -> tuple[Item, ...]:
        """What can be carried and is at, in or on the holder, by name."""
        carriable = ("o", "f", "meal")
        ids = (fact[1] for fact in self._state if fact[0] == relation and fact[2] == holder)
        return tuple(sorted(self._item(key) for key in ids if self._logic.types[key] in carriable))

    def furniture(self, room: str) -> tuple[Furniture, ...]:
        """What stands in a room, by name."""
        ids = [fact[1] for fact in self._state if fact[0] == "at" and fact[2] == room]
        kinds = ("c", "oven", "toaster", "s", "stove")
        return tuple(sorted(self._holder(key) for key in ids if self._logic.types[key] in kinds))

    def exits(self, room: str, visited: set[str]) -> tuple[Exit, ...]:
        """The ways out, in the order north, south, east, west."""
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
