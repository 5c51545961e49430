"""ALFWorld: its rows of the paper's tables and its behaviour figures."""

from __future__ import annotations

from skillpress.evaluation.paper.alfworld.behavior import alfworld_behavior
from skillpress.evaluation.paper.alfworld.tables import NAMED_SKILLS, PANELS
from skillpress.evaluation.paper.figures import EnvironmentFigures

FIGURES = EnvironmentFigures(PANELS, alfworld_behavior, NAMED_SKILLS)
