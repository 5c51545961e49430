"""φ for a foreign server: rules stated by the section, applied to the words of an action.

A text is read unchanged. A JSON object is read as the name of its tool followed by its other values:
``{"tool_name": "search", "query": "a b"}`` is read as ``search a b``. So a verb names a tool, and a pattern
may match its arguments. A call of MCP has its values in ``arguments``.
"""

from __future__ import annotations

import json

from skillpress.environments.openenv.reading import as_text
from skillpress.environments.text.rules import ActionProjection
from skillpress.environments.text.stated_rules import StatedProjection


class ToolProjection(ActionProjection):
    """Stated rules, for actions that may be JSON."""

    def __init__(self, stated: StatedProjection, tool: str, values: str = "") -> None:
        """``tool``: the field of a JSON action that names its tool; ``values``: the field with its arguments,
        empty if they are in the action itself."""
        self._stated, self._tool, self._values = stated, tool, values
        self.alphabet = stated.alphabet

    def skill(self, action: str) -> str | None:
        """The skill of an action; None if no rule applies."""
        return self._stated.skill(words_of(action, self._tool, self._values))


def words_of(action: str, tool: str, values: str = "") -> str:
    """The action's text; for a JSON object, the tool and the other values."""
    try:
        found = json.loads(action) if action.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(tool), str):
        return action
    name = found.pop(tool)
    given = found.get(values, {}) if values else found
    return " ".join((name, *map(as_text, given.values() if isinstance(given, dict) else [given])))
