"""TextWorld-Cooking in words, twice.

``compact`` is for a policy made from scratch: what the player remembers of what was seen (recipe,
inventory, this room, the way to others), as a list of words, and the last actions; the response is the
words of a command and a full stop. ``text`` is for pretrained models: a prompt after verl-agent's. It
repeats the recipe once the cookbook was read, since a window of a few turns would lose it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from textworld.challenges.tw_cooking import cooking

from skillpress.environments.text.prompts import game_prompt, tagged_answer
from skillpress.environments.text.words import STOP_WORD, split_words
from skillpress.environments.textworld_cooking.actions import VERBS
from skillpress.environments.textworld_cooking.memory import COOKED, CUT, CookingState, Item, Room
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.interface import AgentState, Info, ScratchVocabulary, Turn

LONGEST_MEMORY = 200
"""Words for the memory; what was seen in other rooms is left out beyond."""
LONGEST_ACTION = 12
"""Words shown of a past action."""
_BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
_STRUCTURE = (
    "recipe", "unread", "have", "nothing", "room", "floor", "closed", "exit", "seen", "in", "way", "past",
    "?", "|", ",",
)  # fmt: skip
_DIRECTIONS = (
    "prepare meal",
    *cooking.TYPES_OF_COOKING_VERBS.values(),
    *cooking.TYPES_OF_CUTTING_VERBS.values(),
)
_COMMAND_WORDS = ("from", "with", "on", "into", "meal", *VERBS, *_BACK)


@dataclass(frozen=True)
class CompactRendering:
    """``recipe fry egg , prepare meal | have egg | room kitchen | fridge closed | past open fridge``."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """At most ``LONGEST_MEMORY + history * (LONGEST_ACTION + 1) + 2`` words."""
        turns = state.history[-self.history :] if self.history else ()
        return " ".join(chain(memory_words(_memory(state)), _past_words(turns)))

    def response(self, action: str, info: Info) -> str:
        """The action's words and the full stop that ends a response."""
        return " ".join((*split_words(action), STOP_WORD))


@dataclass(frozen=True)
class TextRendering:
    """One user turn: task, recipe once read, the last turns, what is seen now, what is possible."""

    history: int
    parser: str = "tagged"

    def prompt(self, state: AgentState) -> str:
        """The prompt's text; a chat template may be laid around it."""
        memory = _memory(state)
        turns = state.history[-self.history :] if self.history else ()
        recipe = (
            f"\nYou have read the cookbook. Its directions: {', '.join(memory.recipe)}."
            if memory.recipe
            else ""
        )
        return game_prompt(
            _INTRODUCTION + recipe, turns, memory.steps, state.observation, state.info.admissible
        )

    def response(self, action: str, info: Info) -> str:
        """The action in TextWorld's wording, in the tags that the parser reads."""
        return tagged_answer("I take the next step of the recipe.", info.action or action)


_INTRODUCTION = """\
You are an expert agent playing a text-based cooking game. Your task is to: find the kitchen, read the \
cookbook, gather the ingredients of its recipe, cut and cook each of them as it says, prepare the meal \
and eat it.
A stove fries, an oven roasts, a BBQ grills; cutting needs a knife in your hands. Food that is cooked \
twice burns, and food that was cooked or cut in another way than the recipe's spoils the game. What \
already is as the recipe wants it must be left as it is."""


def _memory(state: AgentState) -> CookingState:
    assert isinstance(state.info.state, CookingState), "the rendering is for cooking games"
    return state.info.state


def memory_words(memory: CookingState) -> list[str]:
    """What the player remembers, at most :data:`LONGEST_MEMORY` words, this room before others."""
    recipe = " , ".join(memory.recipe).replace(" the ", " ") or "unread"
    parts = [f"recipe {recipe}", f"have {_listed(memory.carrying)}", *_room_parts(memory.here)]
    parts += [*_way_parts(memory), *_seen_parts(memory)]
    words = " | ".join(parts).split()
    lowered = [word.lower() for word in words]
    return lowered[:LONGEST_MEMORY]


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
    """The first step towards each known room that is not next door."""
    near = {way.to for way in memory.here.exits}
    for room, direction in first_steps(memory).items():
        if room not in near:
            yield f"way {direction} {room}"


def _seen_parts(memory: CookingState) -> Iterator[str]:
    """Where the knife and the recipe's ingredients were last seen, if not here."""
    recipe = " , ".join(memory.recipe) + " "
    for room in memory.rooms.values():
        if room.name != memory.room:
            shelves = (furniture.contents for furniture in room.furniture)
            for item in chain(room.floor, *shelves):
                if item.name in ("knife", "cookbook") or f"the {item.name} " in recipe:
                    yield f"seen {item} in {room.name}"


def first_steps(memory: CookingState) -> dict[str, str]:
    """Known room to the direction in which the shortest known way there begins."""
    doors: dict[str, dict[str, str]] = {name: {} for name in memory.rooms}
    for room in memory.rooms.values():
        for way in room.exits:
            if way.to:
                doors[room.name][way.direction] = way.to
                doors[way.to][_BACK[way.direction]] = room.name
    steps: dict[str, str] = {}
    waiting = deque((neighbour, direction) for direction, neighbour in doors[memory.room].items())
    while waiting:
        room_name, direction = waiting.popleft()
        if room_name != memory.room and room_name not in steps:
            steps[room_name] = direction
            waiting += [(neighbour, direction) for neighbour in doors[room_name].values()]
    return steps


def _past_words(turns: Sequence[Turn]) -> list[str]:
    """``| past open fridge , take egg from fridge``; a word that no command has becomes ``?``."""
    words = ["|", "past"]
    for number, turn in enumerate(turns):
        shown = split_words(turn.action)[:LONGEST_ACTION]
        known = [word if word in _KNOWN else "?" for word in shown if word != STOP_WORD]
        words += [","] * bool(number) + known
    return words


def compact(parameters: CookingParameters, history: int) -> CompactRendering:
    """The compact rendering; it is the same for every section."""
    return CompactRendering(history)


def text(parameters: CookingParameters, history: int) -> TextRendering:
    """The text rendering; it is the same for every section."""
    return TextRendering(history)


def _words() -> tuple[str, ...]:
    """Every word of the compact rendering: TextWorld's own names, and the structure's."""
    doors = [name for door in cooking.DOORS for name in door["names"]]
    rooms = [room for group in cooking.ROOMS for room in group]
    names = (*cooking.FOODS, *cooking.ENTITIES, *rooms, *doors, *COOKED, *CUT, "raw")
    texts = (*_STRUCTURE, *_COMMAND_WORDS, *_DIRECTIONS, *names, STOP_WORD)
    return tuple(dict.fromkeys(word for text in texts for word in split_words(text)))


_KNOWN = frozenset(_words())


def vocabulary(parameters: CookingParameters, history: int) -> ScratchVocabulary:
    """The words of the compact rendering; there are no numbers among them."""
    return ScratchVocabulary(
        words=_words(),
        stop_words=(STOP_WORD,),
        numbers={},
        state_words=LONGEST_MEMORY + history * (LONGEST_ACTION + 1) + 2,
    )
