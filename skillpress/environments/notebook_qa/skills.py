"""φ for question answering: six skills, derived from the code of a cell.

A cell may do several things. The first matching rule names its skill, so the most decisive actions come
first: an answer ends the episode, and reading a page is worth more than the search for it. A cell that calls
no tool and writes no note computes. The table is ours: L0 has no skills.
"""

from __future__ import annotations

import re

from skillpress.environments.text.rules import ActionProjection

RULES = (
    (r"\bsubmit_final_answer\s*\(", "Answer"),
    (r"\bprint\(\"compared:\"", "Compute"),
    (r"\bread\s*\(", "Read"),
    (r"\bsearch\s*\(", "Search"),
    (r"\bnotepad\s*\.\s*plan\b", "Plan"),
    (r"\bnotepad\b", "Note"),
    (r"\S", "Compute"),
)
"""(pattern that is searched for in the code, its skill)."""

_COMPILED = tuple((re.compile(pattern), skill) for pattern, skill in RULES)


class NotebookProjection(ActionProjection):
    """φ(τ), at most one skill per step; a step without code has none."""

    alphabet: tuple[str, ...] = ("Plan", "Search", "Read", "Compute", "Note", "Answer")

    def skill(self, code: str) -> str | None:
        """The skill of a cell."""
        return next((skill for pattern, skill in _COMPILED if pattern.search(code)), None)
