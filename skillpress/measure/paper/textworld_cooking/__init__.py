"""TextWorld-Cooking: its rows of the paper's tables and its behaviour figures."""

from __future__ import annotations

from skillpress.measure.paper.figures import EnvironmentFigures
from skillpress.measure.paper.textworld_cooking.behavior import cooking_behavior
from skillpress.measure.paper.textworld_cooking.tables import PANELS

FIGURES = EnvironmentFigures(PANELS, cooking_behavior)
