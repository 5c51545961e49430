"""φ for the workshop: an action's verb decides its skill.

Σ holds the skills of all sections, so K = 30 for each of them. A refused action still has its skill. With
``shortcut.skills: same`` odd actions have the skills of the routine, since they have its verbs.
"""

from __future__ import annotations

from skillpress.environments.text.rules import RuleTable
from skillpress.environments.workshop.actions import CONTRAPTIONS, SUBGOALS, SYNONYMS, TINKER

VERBS = (
    *SYNONYMS["go"],
    *SYNONYMS["take"],
    *SUBGOALS,
    *SYNONYMS["deliver"],
    *(contraption.partition(" ")[0] for contraption in CONTRAPTIONS),
    TINKER,
)


def skill_of(verb: str) -> str:
    """The skill of the actions with this verb."""
    return verb.capitalize()


PROJECTION = RuleTable([(f"{verb} *", skill_of(verb)) for verb in VERBS])
"""φ."""
