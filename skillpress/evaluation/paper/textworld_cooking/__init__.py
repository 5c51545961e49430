"""TextWorld-Cooking: its rows of the paper's tables and its behaviour figures."""

from __future__ import annotations

from skillpress.evaluation.paper.figures import EnvironmentFigures
from skillpress.evaluation.paper.textworld_cooking.behavior import cooking_behavior
from skillpress.evaluation.paper.textworld_cooking.tables import PANELS

FIGURES = EnvironmentFigures(PANELS, cooking_behavior)
