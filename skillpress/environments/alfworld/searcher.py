"""A demonstrator that decides from the game's answers alone: a rule for every state that an agent can be in.

It takes what it needs where it last saw it, changes it if the goal requires that, and brings it to its
destination. It searches the room, likely places first, until it has seen the thing. The rule reads only the
goal and the :class:`Memory` that prompts are made of. So a policy sees everything that decides the action,
and the rule can give advice in states that the demonstrator itself would never reach.

Likely places are those that alfworld's constants allow for the thing (``VAL_RECEPTACLE_OBJECTS``). Among
these, open places come before closed ones, since most things are in the open; ties follow the order of the
room's description. (alfworld's handcoded expert goes through that order backwards, drawers first, and closes
what it opened: it takes twice the steps, and cannot give advice in a state reached by another agent.)
"""

from __future__ import annotations

from alfworld.gen import constants

from skillpress.environments.alfworld.games import Game
from skillpress.environments.alfworld.memory import Memory

_CHANGES = {
    "pick_clean_then_place_in_recep": ("clean", "clean", ("sinkbasin", "bathtubbasin")),
    "pick_heat_then_place_in_recep": ("heat", "hot", ("microwave",)),
    "pick_cool_then_place_in_recep": ("cool", "cool", ("fridge",)),
}
"""Maps a task type to (command, resulting state of the thing, receptacles that do it; the first one present
is used)."""
_HOLDS = {
    place.lower(): frozenset(thing.lower() for thing in things)
    for place, things in constants.VAL_RECEPTACLE_OBJECTS.items()
}
_OPENABLE = frozenset(place.lower() for place in constants.OPENABLE_CLASS_LIST)


def next_action(game: Game, memory: Memory) -> str | None:
    """The next action; None if everything was looked at and the needed thing was not found."""
    wanted, destination = game.target_object.lower(), game.destination.lower()
    held = memory.carrying
    if held is None:
        return _fetch(memory, wanted, destination, game.task_type)
    if _kind(held) != wanted:
        return _put_down(memory, held)
    if game.task_type == "look_at_obj_in_light":
        return _use(memory, destination)
    if game.task_type in _CHANGES:
        command, result, tools = _CHANGES[game.task_type]
        if memory.changes.get(held) != result:
            tool = next((place for kind in tools for place in _places(memory, kind)), None)
            return tool and (_go(memory, tool) or f"{command} {held} with {tool}")
    places = _places(memory, destination)
    if not places:
        return None
    # If two things are wanted, they are wanted in one place; max takes the first of equals.
    best = max(places, key=lambda place: len(_of_kind(memory, place, wanted)))
    return _go(memory, best) or _open(memory, best) or f"move {held} to {best}"


def _fetch(memory: Memory, wanted: str, destination: str, task_type: str) -> str | None:
    """The next action towards holding a thing of the wanted kind that is not delivered already."""
    delivered = destination if task_type == "pick_two_obj_and_place" else None
    for place in sorted(memory.contents, key=lambda place: place != memory.place):
        things = _of_kind(memory, place, wanted)
        if things and _kind(place) != delivered:
            return _go(memory, place) or _open(memory, place) or f"take {things[0]} from {place}"
    return _search(memory, wanted)


def _use(memory: Memory, lamp: str) -> str | None:
    """The next action towards turning on the lamp."""
    for place in memory.contents:
        if lamps := _of_kind(memory, place, lamp):
            return _go(memory, place) or f"use {lamps[0]}"
    return _search(memory, lamp)


def _search(memory: Memory, wanted: str) -> str | None:
    """The next action towards looking into the likeliest place that was not looked into."""
    unseen = [place for place in memory.receptacles if place not in memory.contents]
    if memory.place in unseen:
        return _open(memory, memory.place)
    likeliest = min(unseen, key=lambda place: _unlikely(place, wanted), default=None)
    return likeliest and _go(memory, likeliest)


def _unlikely(place: str, wanted: str) -> tuple[bool, bool]:
    kind = _kind(place)
    return wanted not in _HOLDS.get(kind, ()), kind in _OPENABLE


def _put_down(memory: Memory, held: str) -> str | None:
    """The next action towards empty hands: at the current place if it may hold the thing, else at the first
    place that may."""
    places = [place for place in memory.receptacles if _kind(held) in _HOLDS.get(_kind(place), ())]
    place = memory.place if memory.place in places else next(iter(places), None)
    return place and (_go(memory, place) or _open(memory, place) or f"move {held} to {place}")


def _go(memory: Memory, place: str) -> str | None:
    return None if memory.place == place else f"go to {place}"


def _open(memory: Memory, place: str) -> str | None:
    return f"open {place}" if place in memory.closed else None


def _places(memory: Memory, kind: str) -> list[str]:
    return [place for place in memory.receptacles if _kind(place) == kind]


def _of_kind(memory: Memory, place: str, kind: str) -> list[str]:
    return [thing for thing in memory.contents.get(place, ()) if _kind(thing) == kind]


def _kind(name: str) -> str:
    return name.split()[0]
