"""The words of the workshop, and every action that they can express.

An action's canonical wording has two words, a verb and an object: ``go yard``, ``take handsaw``, ``saw
piece``, ``deliver piece``. Its compact wording is one word, ``go-yard``. Actions of the *routine* do the
work of an order. Actions of the *machine* belong to shortcuts, and the section says which of three kinds
they are (:data:`Machine`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

COLOURS = (
    "red", "blue", "green", "black", "white", "grey", "brown", "pink", "amber", "teal", "gold", "plum",
)  # fmt: skip
WOODS = (
    "oak", "ash", "elm", "pine", "beech", "birch", "cedar", "maple", "walnut", "willow", "yew", "larch",
)  # fmt: skip
MARKS = (
    "star", "moon", "sun", "leaf", "crown", "anchor", "arrow", "key", "fish", "bird", "rose", "wave",
)  # fmt: skip
ATTRIBUTES = (COLOURS, WOODS, MARKS)
"""The words that describe a piece: one from each list, in this order."""

TOOLS: Mapping[str, str] = {
    "saw": "handsaw",
    "sand": "sandpaper",
    "drill": "auger",
    "carve": "chisel",
    "bend": "kettle",
    "glue": "gluepot",
    "paint": "brush",
    "wax": "cloth",
}
"""Maps each sub-goal, which is also the verb of its work, to its tool."""
ROOMS: Mapping[str, str] = {
    "handsaw": "yard",
    "sandpaper": "attic",
    "auger": "cellar",
    "chisel": "loft",
    "kettle": "kitchen",
    "gluepot": "barn",
    "brush": "studio",
    "cloth": "porch",
}
"""Maps each tool to the room in which it is found."""
HALL = "hall"
"""The room in which an episode starts."""
SUBGOALS = tuple(TOOLS)

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "go": ("go", "walk", "run"),
    "take": ("take", "grab", "lift"),
    "deliver": ("deliver", "hand", "ship"),
}
"""Maps a verb to the verbs that do the same; the first is the verb itself."""
PIECE = "piece"
"""The object of actions that work on the piece or deliver it."""

Machine = Literal["own", "same", "one"]
"""The actions of shortcuts: ``own``, contraptions with a skill each; ``same``, the verbs of the routine with
odd objects; ``one``, tinkering with parts."""
CONTRAPTIONS = (
    "pull lever", "turn wheel", "ring bell", "kick crate", "push button", "blow whistle",
    "shake box", "tap pipe", "spin drum", "press pedal", "wind clock", "throw switch",
)  # fmt: skip
PARTS = (
    "cog", "spring", "valve", "chain", "belt", "crank", "dial", "fuse", "hinge", "piston", "rotor", "gasket",
)  # fmt: skip
TINKER = "tinker"
ODD: Mapping[str, tuple[str, ...]] = {
    "go": ("crypt", "tunnel", "tower", "swamp"),
    "take": ("charm", "feather", "mirror", "bone"),
}
"""Odd objects of a verb that have a list of their own."""
ODD_PIECES = ("shadow", "echo", "smoke", "dust")
"""Odd objects of actions that work on the piece or deliver it."""

Kind = Literal["go", "take", "work", "deliver", "machine"]


class Action(NamedTuple):
    """An action that has been read."""

    kind: Kind
    thing: str
    """The room, the tool, the sub-goal, or ``piece``; for the machine, the action in the words of shortcuts
    (``go crypt``, also if ``walk crypt`` was said)."""
    text: str
    """The canonical wording."""


def compact_word(action: str) -> str:
    """The compact wording of an action in the canonical one."""
    return action.replace(" ", "-")


def odd_action(verb: str, number: int) -> str:
    """The odd action of a verb of the routine with this number, counted from 0 and taken modulo four."""
    objects = ODD.get(verb, ODD_PIECES)
    return f"{verb} {objects[number % len(objects)]}"


@cache
def routine_actions() -> tuple[Action, ...]:
    """Every action of a routine, in a fixed order."""
    return (
        *(
            Action("go", room, f"{verb} {room}")
            for verb in SYNONYMS["go"]
            for room in (HALL, *ROOMS.values())
        ),
        *(Action("take", tool, f"{verb} {tool}") for verb in SYNONYMS["take"] for tool in ROOMS),
        *(Action("work", subgoal, f"{subgoal} {PIECE}") for subgoal in SUBGOALS),
        *(Action("deliver", PIECE, f"{verb} {PIECE}") for verb in SYNONYMS["deliver"]),
    )


@cache
def machine_actions(machine: Machine) -> tuple[Action, ...]:
    """Every action of this kind of machine, in a fixed order."""
    if machine == "own":
        return tuple(Action("machine", action, action) for action in CONTRAPTIONS)
    if machine == "one":
        return tuple(Action("machine", action, action) for action in (f"{TINKER} {part}" for part in PARTS))
    return tuple(_odd_actions())


def _odd_actions() -> Iterator[Action]:
    for verb, number in product(("go", "take", *SUBGOALS, "deliver"), range(len(ODD_PIECES))):
        action = odd_action(verb, number)
        for said in SYNONYMS.get(verb, (verb,)):
            yield Action("machine", action, f"{said} {action.partition(' ')[2]}")


@cache
def readable(machine: Machine) -> Mapping[str, Action]:
    """Maps both wordings of every action to the action."""
    actions = (*routine_actions(), *machine_actions(machine))
    return {wording: action for action in actions for wording in (action.text, compact_word(action.text))}


def read_action(text: str, machine: Machine) -> Action | None:
    """The action that a text in either wording names; None if it names none."""
    known = readable(machine)
    return known.get(text) or known.get(" ".join(text.lower().split()))
