"""How an action's text becomes a command of the engine.

Both grammars are read: ``move X to Y`` of alfworld 0.4 and ``put X in/on Y`` (or ``in``, or ``on``) of
the releases before, which published prompts and demonstrations still use. Case and spacing do not
count. What no engine should be handed is sorted out here, with its reason.
"""

from __future__ import annotations

import re
from typing import Literal

NOTHING_HAPPENS = "Nothing happens."
"""The engine's answer to a command that it does not admit."""
LONGEST = 256
"""Characters of the longest action that is looked at; the longest command has about 60."""
Reason = Literal["empty", "too_long", "unprintable", "not_admissible"]
"""Why an action changes nothing; the first three are texts that no environment could read."""

_PUT = re.compile(r"put (?P<what>.+?) (?:in/on|in|on) (?P<where>.+)")


def read_command(action: str) -> tuple[str | None, Reason | None]:
    """(the command in canonical wording, None), or (None, why the text cannot be a command)."""
    if len(action) > LONGEST:
        return None, "too_long"
    text = action.strip()
    if not text:
        return None, "empty"
    if not text.isprintable():
        return None, "unprintable"
    words = " ".join(text.lower().split())
    match = _PUT.fullmatch(words)
    return (f"move {match['what']} to {match['where']}" if match else words), None
