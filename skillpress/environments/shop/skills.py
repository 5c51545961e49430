"""φ for the shop: what an action does to the purchase.

``click[...]`` on anything but a button chooses an option or opens a product. The form tells which: a
product's code is ten letters and digits, beginning with B or a digit.
"""

from __future__ import annotations

import re

from skillpress.environments.text.rules import ActionProjection

RULES = (
    (r"search\[.*\]", "Search"),
    (r"click\[buy now\]", "Buy"),
    (r"click\[(?:description|features|reviews|attributes)\]", "Inspect"),
    (r"click\[back to search\]", "Restart"),
    (r"click\[(?:next >|< prev)\]", "Turn"),
    (r"click\[[b0-9][0-9a-z]{9}\]", "Open"),
    (r"click\[.+\]", "Choose"),
)
"""(pattern of a whole action in lower case, its skill); the first that matches decides."""
_COMPILED = tuple((re.compile(pattern, re.DOTALL), skill) for pattern, skill in RULES)


class ShopProjection(ActionProjection):
    """φ(τ), at most one skill per step; a text that matches no rule has none."""

    alphabet: tuple[str, ...] = tuple(skill for _, skill in RULES)

    def skill(self, action: str) -> str | None:
        """The skill of an action."""
        text = action.strip().lower()
        return next((skill for pattern, skill in _COMPILED if pattern.fullmatch(text)), None)


PROJECTION = ShopProjection()
"""φ."""
