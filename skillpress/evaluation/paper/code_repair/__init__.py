"""Code repair: its behaviour figures. ReuseRL's and L0's tables have no rows for it."""

from __future__ import annotations

from skillpress.evaluation.paper.code_repair.behavior import repair_behavior
from skillpress.evaluation.paper.figures import EnvironmentFigures

FIGURES = EnvironmentFigures(behavior=repair_behavior)
"""The entry that ``skillpress.evaluation.paper`` looks up."""
