"""Which texts are typed into the game at all.

The machine understands much that is no move of the game: ``restart`` and ``undo``, commands of
TextWorld's own that print or change the hidden state, several commands in one line, which would take
several moves for one step. So a line is typed only if it is one command with a verb of the game;
everything else is an invalid action with a reason. Whether the move is possible is the game's to say.
"""

from __future__ import annotations

import re
from typing import Literal

Reason = Literal[
    "empty", "too_long", "unprintable", "not_ascii", "several_commands", "unknown_verb",
    "not_admissible", "refused",
]  # fmt: skip
"""Why an action changed nothing. The first three are a parser's reasons too: there is no action to speak
of. The next three are texts that are not typed. The last two are the game's: ``not_admissible`` for a
move that is impossible now, ``refused`` for one that TextWorld lists as admissible and the game declines
all the same (``prepare meal`` before everything is ready)."""

LONGEST = 100
"""Characters; the longest command of a game has about 50."""
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
    """Why this text is not typed into the game; None when it is."""
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
