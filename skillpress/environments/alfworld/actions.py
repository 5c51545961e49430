"""How an action's text becomes a command of the engine.

Both grammars are accepted: ``move X to Y`` of alfworld 0.4, and ``put X in/on Y`` (or ``in``, or ``on``) of
earlier releases, which published prompts and demonstrations still use. Case and spacing do not matter. Texts
that must not reach the engine are refused here, with a reason.
"""

from __future__ import annotations

import re
from typing import Literal

NOTHING_HAPPENS = "Nothing happens."
"""The engine's answer to an inadmissible command."""
LONGEST = 256
"""Maximum number of characters in an action; the longest command has about 60."""
Reason = Literal["empty", "too_long", "unprintable", "not_admissible"]
"""Why an action changes nothing. The first three are texts that no environment could interpret."""

_PUT = re.compile(r"put (?P<what>.+?) (?:in/on|in|on) (?P<where>.+)")


def read_command(action: str) -> tuple[str | None, Reason | None]:
    """Return (the command in canonical wording, None), or (None, why the text cannot be a command)."""
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
