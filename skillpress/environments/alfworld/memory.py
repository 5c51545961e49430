"""What an attentive agent knows about a room from the game's answers so far.

A prompt that shows only the last few turns forgets where the mugs were. This record is kept by reading only
the engine's answers: the contents of a receptacle are what was last seen there, corrected by what the agent
itself took and put. Renderings choose what to show of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_TASK = re.compile(r"Your task is to: (.*?)\.?\s*$")
_ROOM = re.compile(r"you see (.*?)\.\n")
_CONTENT = re.compile(r"(?:On the|The) (\S+ \d+)(?: is open. In it)?, you see (.*?)\.$")
_CLOSED = re.compile(r"The (\S+ \d+) is closed\.$")
_SEPARATOR = re.compile(r", and |, ")

CHANGES = {"heat": "hot", "cool": "cool", "clean": "clean"}
"""Maps a command to the state that it gives an object."""


@dataclass(frozen=True)
class Memory:
    """What is known. Every change creates a new object, so states can share it and send it."""

    receptacles: tuple[str, ...]
    """Every place that the agent can go to, in the order of the room's description."""
    contents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps receptacles that were looked into, to the things in or on them."""
    closed: frozenset[str] = frozenset()
    """Receptacles that were found closed or left closed."""
    place: str | None = None
    """The agent's place; None in the middle of the room."""
    carrying: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    """Maps objects to the state that the agent last gave them: ``hot``, ``cool`` or ``clean``."""


def task_of(introduction: str) -> str:
    """The goal in the first observation, such as ``put a clean cloth in cabinet``."""
    match = _TASK.search(introduction)
    return match[1] if match else ""


def first_memory(introduction: str) -> Memory:
    """The memory after the first observation, which lists the receptacles."""
    match = _ROOM.search(introduction)
    return Memory(_listed(match[1]) if match else ())


def remember(memory: Memory, command: str, observation: str) -> Memory:
    """The memory after a command that the engine carried out.

    Args:
        command: in canonical wording.
        observation: the engine's answer to it.
    """
    verb, *rest = command.split()
    memory = _seen(memory, observation)
    if verb == "go":
        return replace(memory, place=" ".join(rest[1:]))
    if verb == "close":
        return replace(memory, closed=memory.closed | {" ".join(rest)})
    if verb in ("take", "move"):
        thing, place = " ".join(rest[:2]), " ".join(rest[3:])
        contents = dict(memory.contents)
        if place in contents:  # things beside the agent's place can be used without looking into it
            others = tuple(other for other in contents[place] if other != thing)
            contents[place] = others if verb == "take" else (*others, thing)
        return replace(memory, carrying=thing if verb == "take" else None, contents=contents)
    if verb in CHANGES:
        return replace(memory, changes={**memory.changes, " ".join(rest[:2]): CHANGES[verb]})
    return memory


def _seen(memory: Memory, observation: str) -> Memory:
    closed = _CLOSED.search(observation)
    if closed:
        return replace(memory, closed=memory.closed | {closed[1]})
    content = _CONTENT.search(observation)
    if content:
        contents = {**memory.contents, content[1]: _listed(content[2])}
        return replace(memory, contents=contents, closed=memory.closed - {content[1]})
    return memory


def _listed(text: str) -> tuple[str, ...]:
    """The names in a list such as ``a cup 1, a mug 2, and a mug 1``; empty for ``nothing``."""
    if text == "nothing":
        return ()
    return tuple(item.split(maxsplit=1)[1] for item in _SEPARATOR.split(text))
