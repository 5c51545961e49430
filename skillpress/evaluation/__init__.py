"""Figures: success rates, intervals and tests, the papers' tables, analysis, judges, the study's statistics.

It imports ``experiment`` and what is below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.evaluation.statistics import (
        BehaviorFigure,
        Comparison,
        EvaluationSteps,
        EvaluationSummary,
        compare,
        compare_trainings,
        evaluate,
        evaluation_steps,
    )

__all__ = [
    "BehaviorFigure",
    "Comparison",
    "EvaluationSteps",
    "EvaluationSummary",
    "compare",
    "compare_trainings",
    "evaluate",
    "evaluation_steps",
]

__getattr__, __dir__ = lazy_names(__name__)
