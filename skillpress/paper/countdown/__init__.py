"""Countdown-Stepwise: its rows of the paper's tables and its behaviour figures."""

from __future__ import annotations

from skillpress.paper.countdown.behavior import countdown_behavior
from skillpress.paper.countdown.tables import PANELS
from skillpress.paper.figures import EnvironmentFigures

FIGURES = EnvironmentFigures(PANELS, countdown_behavior)
