"""Σ of TextWorld-Cooking: the ten skills of Table 3, as a rule table.

``open`` and ``close`` are one skill. The table is the paper's, so ``drink *`` has no skill.
"""

from __future__ import annotations

from skillpress.environments.text.rules import RuleTable

COOKING_RULES: tuple[tuple[str, str], ...] = (
    ("examine cookbook", "Read_Recipe"),
    ("look", "Inspect"),
    ("inventory", "Inspect"),
    ("examine *", "Inspect"),
    ("eat meal", "Eat_Meal"),
    ("eat *", "Inspect"),
    ("go *", "Explore"),
    ("open *", "Open"),
    ("close *", "Open"),
    ("take *", "Take"),
    ("drop *", "Deliver"),
    ("put *", "Deliver"),
    ("insert *", "Deliver"),
    ("chop *", "Cut"),
    ("slice *", "Cut"),
    ("dice *", "Cut"),
    ("cook *", "Cook"),
    ("prepare meal", "Prepare_Meal"),
)

PROJECTION = RuleTable(COOKING_RULES)
