"""Which texts are sent to the game at all.

The game's machine understands many texts that are not moves: ``restart`` and ``undo``, TextWorld's own
commands that print or change the hidden state, and several commands on one line, which would make several
moves in one step. So a line is sent only if it is a single command with one of the game's verbs. Everything
else is an invalid action with a reason. Whether a move is possible is for the game to decide.
"""

from __future__ import annotations

import re
from typing import Literal

Reason = Literal[
    "empty", "too_long", "unprintable", "not_ascii", "several_commands", "unknown_verb",
    "not_admissible", "refused",
]  # fmt: skip
"""Why an action changed nothing. The first three are also reasons of a parser: there is no usable action. The
next three are for texts that are not sent to the game. The last two come from the game: ``not_admissible``
for a move that is impossible now, and ``refused`` for a move that TextWorld lists as admissible but the game
declines (``prepare meal`` before everything is ready)."""

LONGEST = 100
"""Maximum number of characters; the longest command of a game has about 50."""
VERBS = (
    "look", "inventory", "examine", "go", "open", "close", "take", "drop", "put", "insert",
    "cook", "chop", "slice", "dice", "prepare", "eat", "drink",
)  # fmt: skip
"""First words of TextWorld's own commands in these games."""
SYNONYMS = (
    "l", "i", "inv", "x", "read", "get", "pick", "remove", "discard", "walk", "shut",
    "north", "south", "east", "west", "n", "s", "e", "w",
)  # fmt: skip
"""Other first words that the game understands as one of :data:`VERBS`."""

EXPLANATIONS: dict[Reason, str] = {
    "empty": "there was no action",
    "too_long": "that is too long for an action",
    "unprintable": "that holds unprintable characters",
    "not_ascii": "that holds characters that the game does not know",
    "several_commands": "only one action can be taken at a time",
    "unknown_verb": "the game does not know that verb",
}
_KNOWN = frozenset((*VERBS, *SYNONYMS))
_SEPARATOR = re.compile(r"[^a-z0-9' -]|\b(?:then|and|all|everything|both)\b")


def normal(action: str) -> str:
    """Lower case, single spaces, no full stop at the end."""
    return " ".join(action.lower().split()).rstrip(". ")


def refusal(action: str) -> Reason | None:
    """Why this text is not sent to the game; None if it is."""
    if len(action) > LONGEST:
        return "too_long"
    stripped = action.strip()
    if not stripped.isprintable():
        return "unprintable"
    if not stripped.isascii():
        return "not_ascii"
    command = normal(stripped)
    if not command:
        return "empty"
    if _SEPARATOR.search(command):
        return "several_commands"
    return None if command.split()[0] in _KNOWN else "unknown_verb"
