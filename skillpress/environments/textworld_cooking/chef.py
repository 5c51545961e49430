"""A demonstrator that decides from the game's answers alone: a rule for every state that an agent can be in.

The chef reads the cookbook, takes every ingredient, processes each as the recipe says, prepares the meal and
eats it. It searches for things not seen yet, first in closed containers here, then through the nearest exit
that was never taken. The rule reads only :class:`CookingState`. So a policy sees everything that decides the
action (``memory_words.py``), and the rule can give advice in states that the chef alone would never reach.
(The designer's walkthrough goes straight to rooms that it never saw, takes and drops the knife for each
ingredient, and cannot give advice in a state reached by another agent.)
"""

from __future__ import annotations

from collections.abc import Iterator

from textworld.challenges.tw_cooking import cooking

from skillpress.environments.textworld_cooking.memory import COOKED, CUT, CookingState, Item
from skillpress.environments.textworld_cooking.memory_words import first_steps, step_to_new

KITCHEN = "kitchen"
"""The room with the cookbook, where a meal can be prepared."""
MEAL = "meal"
_DONE = {
    **{verb: done for done, verb in cooking.TYPES_OF_COOKING_VERBS.items()},
    **{verb: done for done, verb in cooking.TYPES_OF_CUTTING_VERBS.items()},
}
"""Maps a direction's verb to the resulting state of the food: ``fry`` to ``fried``."""
_APPLIANCES = {"fry": "stove", "roast": "oven", "grill": "BBQ"}


def next_action(memory: CookingState) -> str | None:
    """The next action; None if nothing is left to search, or the game cannot be won any more."""
    held = {item.name: item for item in memory.carrying}
    if MEAL in held:
        return f"eat {MEAL}"
    if any(item.name == MEAL for room in memory.rooms.values() for _, item in room.items):
        return _fetch(memory, [MEAL])
    if not memory.recipe:
        at_hand = "cookbook" in held or _places(memory, "cookbook")
        return "examine cookbook" if at_hand else _fetch(memory, ["cookbook"])
    missing = [food for food in memory.ingredients if food not in held]
    if missing:
        return _fetch(memory, missing)
    undone = [(verb, food) for verb, food in _directions(memory) if not _is_done(held[food], verb)]
    if any(_is_spoiled(held[food], verb) for verb, food in undone):
        return None
    return _process(memory, undone) or _go(memory, KITCHEN) or f"prepare {MEAL}"


def _process(memory: CookingState, undone: list[tuple[str, str]]) -> str | None:
    """The first direction that can be followed here, or else the way to where the first one can be."""
    here = {furniture.name for furniture in memory.here.furniture}
    knife = any(item.name == "knife" for item in memory.carrying)
    for verb, food in undone:
        if verb not in _APPLIANCES and knife:
            return f"{verb} {food} with knife"
        if _APPLIANCES.get(verb) in here:
            return f"cook {food} with {_APPLIANCES[verb]}"
    for verb, _ in undone:
        return _to_furniture(memory, _APPLIANCES[verb]) if verb in _APPLIANCES else _fetch(memory, ["knife"])
    return None


def _to_furniture(memory: CookingState, name: str) -> str | None:
    """The next step to a piece of furniture in another room."""
    for room in memory.rooms.values():
        if any(furniture.name == name for furniture in room.furniture):
            return _go(memory, room.name)
    return _explore(memory)


def _directions(memory: CookingState) -> Iterator[tuple[str, str]]:
    """(verb, food) of each direction except the last, ``prepare meal``."""
    for direction in memory.recipe:
        verb, _, food = direction.partition(" the ")
        if food:
            yield verb, food


def _is_done(item: Item, verb: str) -> bool:
    return _DONE[verb] in (item.cooking, item.cutting)


def _is_spoiled(item: Item, verb: str) -> bool:
    """Whether the food was processed in another way, which loses the game."""
    return item.cooking in COOKED if verb in _APPLIANCES else item.cutting in CUT


def _fetch(memory: CookingState, wanted: list[str]) -> str | None:
    """The next action towards holding one of the wanted things: the first one here, else one seen elsewhere,
    else any."""
    for name in wanted:
        for holder in _places(memory, name):
            return f"take {name} from {holder}" if holder else f"take {name}"
    for furniture in memory.here.furniture:
        if furniture.closed and furniture.name not in _APPLIANCES.values():
            return f"open {furniture.name}"
    for name in wanted:
        for room in memory.rooms.values():
            if any(item.name == name for _, item in room.items):
                return _go(memory, room.name)
    return _explore(memory)


def _places(memory: CookingState, name: str) -> list[str]:
    """The containers and surfaces in this room that hold things of this name; ``""`` is the floor."""
    return [holder for holder, item in memory.here.items if item.name == name]


def _explore(memory: CookingState) -> str | None:
    """The next step through the nearest exit that was never taken."""
    direction = step_to_new(memory)
    return direction and _through(memory, direction)


def _go(memory: CookingState, room: str) -> str | None:
    """The next step to a room; None if the player is there."""
    if memory.room == room:
        return None
    direction = first_steps(memory).get(room)
    return direction and _through(memory, direction)


def _through(memory: CookingState, direction: str) -> str:
    way = next(way for way in memory.here.exits if way.direction == direction)
    return f"open {way.door}" if way.closed else f"go {direction}"
