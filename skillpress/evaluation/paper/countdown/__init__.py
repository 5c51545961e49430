"""Countdown-Stepwise: its rows of the paper's tables and its behaviour figures."""

from __future__ import annotations

from skillpress.evaluation.paper.countdown.behavior import countdown_behavior
from skillpress.evaluation.paper.countdown.tables import PANELS
from skillpress.evaluation.paper.figures import EnvironmentFigures

FIGURES = EnvironmentFigures(PANELS, countdown_behavior)
