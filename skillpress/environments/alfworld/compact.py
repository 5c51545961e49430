"""ALFWorld for a policy of a million weights trained from scratch: about 200 words per prompt at most.

The admissible actions alone can take 250 words, and a game's answers over 50 steps take thousands. A small
policy needs less. Its prompt shows the goal, the first unseen receptacle of each kind, the first receptacle
of each kind that the goal needs, and where things of the goal's kinds were seen. It also shows the last
actions, what the agent holds, where it is, and which things of the goal's kinds are there. All of it is taken
from the game's earlier answers (``memory.py``). One prompt, with its sections:

    task put a clean cloth in cabinet new cabinet 2 shelf 1 use cabinet 4 sinkbasin 1
    seen cloth 1 on bathtubbasin 1 did go to cabinet 4 ; open cabinet 4 ;
    hold cloth 2 clean at cabinet 4 open see nothing

The prompt contains everything that decides the demonstrator's next action (``searcher.py``), and little else:
it needs no history, and it does not name receptacles that are known and useless. Each kind is named once,
with one number. A small policy learns copying last, and copying the right one of several numbers even later.

An answer is an action in the engine's own words (``move cloth 2 to cabinet 4``), one token per word, followed
by ``<end>``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alfworld.gen import constants, goal_library

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS
from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.alfworld.games import TASK_TYPES
from skillpress.environments.alfworld.memory import CHANGES, Memory
from skillpress.environments.text.prompts import last_turns, own_state
from skillpress.environments.text.words import UNKNOWN, ended_vocabulary, split_words

MOST_OF_A_KIND = 30
"""The largest number in a name; the official games go up to 27."""
MOST_SEEN = 6
"""Maximum number of things of the goal's kinds shown with their places: the most recently found ones."""
MOST_HERE = 2
"""Number of things of the goal's kinds that are shown in or on the current receptacle."""
ACTION_WORDS = 6
"""Number of words in the longest action: ``clean mug 1 with sinkbasin 1``."""
ROOM_WORDS = 40
"""Maximum number of words for the unseen receptacles. No official room has more than 12 kinds, 24 words."""
TOOLS = {
    "clean": ("sinkbasin", "bathtubbasin"), "hot": ("microwave",), "heat": ("microwave",), "cool": ("fridge",)
}  # fmt: skip
"""Maps a word of the goal to the kinds of receptacle that achieve it."""

_SECTIONS = ("task", "new", "use", "seen", "did", "hold", "at", "see")
_MARKS = ("nothing", "on", "open", "closed", "middle", "failed", ";", UNKNOWN)
_COMMANDS = (
    "go", "to", "open", "close", "take", "from", "move", "heat", "cool", "clean", "with", "use", "slice",
    "examine", "look", "inventory", "help",
)  # fmt: skip
_GOAL_WORDS = 12
_KINDS_TO_USE = 3
"""Maximum number of kinds that a goal needs: the destination, a sinkbasin and a bathtubbasin."""
_PRESENT = 3 + 3 + 2 * MOST_HERE
"""Number of words for what the agent holds, its place and whether it is open, and the things there."""


def _things() -> tuple[str, ...]:
    """The names of all objects and receptacles of alfworld, without their numbers."""
    names = {*constants.OBJECTS_SINGULAR, *(name.lower() for name in constants.RECEPTACLES)}
    return tuple(sorted(names))


def _goal_words() -> tuple[str, ...]:
    """The words in the goal sentences of the six task types."""
    templates = [text for kind in TASK_TYPES for text in goal_library.gdict[kind]["templates"]]
    blank = dict.fromkeys(("obj", "recep", "toggle", "mrecep"), "")
    return tuple(sorted({word for text in templates for word in split_words(text.format(**blank))}))


@dataclass(frozen=True)
class CompactRendering:
    """The prompt described in the module's docstring."""

    history: int
    parser: str = "plain"

    def prompt(self, state: AgentState) -> str:
        """A prompt of at most :func:`longest` words, all of them from :func:`all_words`."""
        environment = own_state(state, AlfworldState)
        memory, goal = environment.memory, split_words(environment.goal)
        words = ["task", *goal[:_GOAL_WORDS], "new", *_new(memory), "use", *_to_use(memory, goal)]
        words += ["seen", *_seen(memory, goal)]
        words += ["did", *self._did(state), "hold", *_held(memory), "at", *_here(memory, goal)]
        return " ".join(word if word in _KNOWN else UNKNOWN for word in words)

    def continuation(self, state: AgentState) -> str:
        """``failed`` if nothing happened, what the agent holds, and its place with the things there."""
        environment = own_state(state, AlfworldState)
        memory, goal = environment.memory, split_words(environment.goal)
        words = ["failed"] if state.observation == NOTHING_HAPPENS else []
        words += ["hold", *_held(memory), "at", *_here(memory, goal)]
        return " ".join(word if word in _KNOWN else UNKNOWN for word in words)

    def response(self, action: str, info: Info) -> str:
        """The action in the environment's own wording."""
        return info.action or action

    def _did(self, state: AgentState) -> list[str]:
        """The last actions, newest last, and whether each failed."""
        turns = last_turns(state, self.history)
        answers = [*(turn.observation for turn in turns[1:]), state.observation]
        words: list[str] = []
        for turn, answer in zip(turns, answers, strict=False):
            words += split_words(turn.action)[:ACTION_WORDS]
            words.append("failed" if answer == NOTHING_HAPPENS else ";")
        return words


def _new(memory: Memory) -> list[str]:
    """The first receptacle of each kind among those that have not been looked into."""
    first: dict[str, str] = {}
    for name in memory.receptacles:
        if name not in memory.contents:
            first.setdefault(name.split()[0], name)
    return split_words(" ".join(first.values()))[:ROOM_WORDS]


def _to_use(memory: Memory, goal: Sequence[str]) -> list[str]:
    """The first receptacle of each kind that the goal needs, preferably one with things of the goal's
    kinds."""
    kinds = {*goal, *(tool for word in goal for tool in TOOLS.get(word, ()))}
    places: dict[str, list[str]] = {}
    for name in memory.receptacles:
        if name.split()[0] in kinds:
            places.setdefault(name.split()[0], []).append(name)
    best = (max(alike, key=lambda name: _wanted(memory, name, goal)) for alike in places.values())
    return split_words(" ".join(best))


def _wanted(memory: Memory, place: str, goal: Sequence[str]) -> int:
    """How many things of the goal's kinds were seen at a place."""
    return sum(thing.split()[0] in goal for thing in memory.contents.get(place, ()))


def _seen(memory: Memory, goal: Sequence[str]) -> list[str]:
    """Where things of the goal's kinds were seen."""
    found = [
        (*thing.split(), "on", *place.split())
        for place, things in memory.contents.items()
        for thing in things
        if thing.split()[0] in goal
    ]
    return [word for words in found[-MOST_SEEN:] for word in words]


def _held(memory: Memory) -> list[str]:
    if memory.carrying is None:
        return ["nothing"]
    change = memory.changes.get(memory.carrying)
    return [*memory.carrying.split(), *([change] if change else [])]


def _here(memory: Memory, goal: Sequence[str]) -> list[str]:
    """The agent's place, whether it is open or closed, and the things in or on it."""
    if memory.place is None:
        return ["middle"]
    if memory.place in memory.closed:
        return [*memory.place.split(), "closed"]
    things = [thing for thing in memory.contents.get(memory.place, ()) if thing.split()[0] in goal]
    shown = [word for thing in things[:MOST_HERE] for word in thing.split()]
    return [*memory.place.split(), "open", "see", *(shown or ["nothing"])]


def all_words() -> tuple[str, ...]:
    """Every word of prompts and answers except ``END``, each once."""
    numbers = tuple(map(str, range(1, MOST_OF_A_KIND + 1)))
    own = (*_SECTIONS, *_MARKS, *_COMMANDS, *CHANGES.values())
    return tuple(dict.fromkeys((*numbers, *own, *_goal_words(), *_things())))


_KNOWN = frozenset(all_words())


def longest(history: int) -> int:
    """Number of words in the longest prompt."""
    fixed = _GOAL_WORDS + ROOM_WORDS + len(_SECTIONS) + 2 * _KINDS_TO_USE
    return fixed + 5 * MOST_SEEN + history * (ACTION_WORDS + 1) + _PRESENT


def domain_words() -> dict[str, tuple[str, ...]]:
    """The beginnings of commands, and the names of objects and receptacles without their numbers."""
    return {"actions": ("go to", *_COMMANDS[2:]), "entities": tuple(f" {name}" for name in _things())}


def vocabulary(history: int) -> ScratchVocabulary:
    """The words of the compact rendering."""
    return ended_vocabulary(all_words(), longest(history), len(("failed", "hold", "at", "see")) + _PRESENT)
