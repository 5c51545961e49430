"""A player's memory as a short list of words, for a small policy.

Recipe, inventory and the current room come first. Then come the ways to known rooms that are not adjacent,
the way to the nearest exit that was never taken, and where the recipe's ingredients, the knife, the cookbook
and the meal were last seen. So information that a policy needs over many steps (the way back, the recipe) is
in every prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from skillpress.environments.textworld_cooking.memory import CookingState, Item, Room

LONGEST_MEMORY = 200
"""Maximum number of words. What was seen in other rooms is left out first."""
STRUCTURE = (
    "recipe", "unread", "have", "nothing", "room", "floor", "closed", "exit", "seen", "in", "way", "past",
    "failed", "?", "|", ",",
)  # fmt: skip
"""Words of the compact prompt that are not the game's."""
_BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}


def memory_words(memory: CookingState) -> list[str]:
    """The player's memory in at most :data:`LONGEST_MEMORY` words, the current room before others."""
    parts = [_recipe(memory), *_present_parts(memory), *_way_parts(memory), *_seen_parts(memory)]
    return _words(parts)


def news_words(memory: CookingState, with_recipe: bool) -> list[str]:
    """What is carried and what is in this room, at most :data:`LONGEST_MEMORY` words."""
    return _words([*([_recipe(memory)] if with_recipe else []), *_present_parts(memory)])


def _words(parts: Iterable[str]) -> list[str]:
    lowered = [word.lower() for word in " | ".join(parts).split()]
    return lowered[:LONGEST_MEMORY]


def _recipe(memory: CookingState) -> str:
    """Words such as ``recipe milk , fry egg , prepare meal``: foods without processing come before the
    directions."""
    directed = " , ".join(memory.recipe).replace(" the ", " ")
    as_it_is = [food for food in memory.ingredients if f" {food} " not in f"{directed} "]
    return f"recipe {' , '.join([*as_it_is, directed]) or 'unread'}"


def _present_parts(memory: CookingState) -> list[str]:
    return [f"have {_listed(memory.carrying)}", *_room_parts(memory.here)]


def _listed(items: Iterable[Item]) -> str:
    return " , ".join(map(str, items)) or "nothing"


def _room_parts(room: Room) -> Iterator[str]:
    yield f"room {room.name}"
    for furniture in room.furniture:
        yield f"{furniture.name} {'closed' if furniture.closed else _listed(furniture.contents)}"
    if room.floor:
        yield f"floor {_listed(room.floor)}"
    for way in room.exits:
        door = f" {way.door}{' closed' if way.closed else ''}" if way.door else ""
        yield f"exit {way.direction} {way.to or '?'}{door}"


def _way_parts(memory: CookingState) -> Iterator[str]:
    """The first step towards each known room that is not adjacent, and towards the nearest unknown exit."""
    near = {way.to for way in memory.here.exits}
    for room, direction in first_steps(memory).items():
        if room not in near:
            yield f"way {direction} {room}"
    if "" not in near and (new := step_to_new(memory)):
        yield f"way {new} ?"


def _seen_parts(memory: CookingState) -> Iterator[str]:
    """Where the recipe's ingredients and the things that every recipe needs were last seen, if not here."""
    wanted = {"knife", "cookbook", "meal", *memory.ingredients}
    for room in memory.rooms.values():
        for _, item in room.items:
            if room.name != memory.room and item.name in wanted:
                yield f"seen {item} in {room.name}"


def first_steps(memory: CookingState) -> dict[str, str]:
    """Maps each known room to the first direction of the shortest known way to it, the nearest room first."""
    doors = _known_ways(memory)
    steps: dict[str, str] = {}
    waiting = deque((neighbour, direction) for direction, neighbour in doors[memory.room].items())
    while waiting:
        room_name, direction = waiting.popleft()
        if room_name != memory.room and room_name not in steps:
            steps[room_name] = direction
            waiting += [(neighbour, direction) for neighbour in doors[room_name].values()]
    return steps


def step_to_new(memory: CookingState) -> str | None:
    """The first direction of the shortest way to an unvisited room; None if all rooms were visited."""
    doors = _known_ways(memory)
    for room, direction in {memory.room: "", **first_steps(memory)}.items():
        for way in memory.rooms[room].exits:
            if way.direction not in doors[room]:
                return direction or way.direction
    return None


def _known_ways(memory: CookingState) -> dict[str, dict[str, str]]:
    """Maps rooms to directions to neighbours, as known from either side."""
    doors: dict[str, dict[str, str]] = {name: {} for name in memory.rooms}
    for room in memory.rooms.values():
        for way in room.exits:
            if way.to:
                doors[room.name][way.direction] = way.to
                doors[way.to][_BACK[way.direction]] = room.name
    return doors
