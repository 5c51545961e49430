"""Rules stated in a section of params.yaml: φ for environments without a ``skills.py``.

    skills:
      rules:                      # the first matching pattern names the skill; * is one word or more
        - [examine cookbook, Read]
        - [examine *, Look]
      verbs: [go, take]           # otherwise the action's first word, if it is one of these

Σ consists of the skills in these two lists, so it is fixed before an episode is played. A section without
either list gives no action a skill. Then skills shape no reward, and a dictionary has nothing to learn from.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from skillpress.core.sections import Section
from skillpress.environments.text.rules import ActionProjection, RuleTable, VerbProjection

Word = Annotated[str, Field(min_length=1)]


class StatedRules(Section):
    """``environment.skills``."""

    rules: list[Annotated[list[Word], Field(min_length=2, max_length=2)]] = Field(default=[])
    """[pattern, skill], the most specific first."""
    verbs: list[Word] = Field(default=[])
    """First words that are skills themselves if no rule matches."""

    def projection(self) -> StatedProjection:
        """φ by these rules."""
        return StatedProjection(self)


class StatedProjection(ActionProjection):
    """Applies the rule table first, then the verbs."""

    def __init__(self, stated: StatedRules) -> None:
        self._table = RuleTable([(pattern, skill) for pattern, skill in stated.rules])
        self._verbs = VerbProjection(stated.verbs)
        self.alphabet: tuple[str, ...] = tuple(dict.fromkeys((*self._table.alphabet, *self._verbs.alphabet)))

    def skill(self, action: str) -> str | None:
        """The skill of an action; None if neither list has one."""
        return self._table.skill(action) or self._verbs.skill(action)


NO_RULES = StatedRules().projection()
"""φ of a section that states no rules."""
