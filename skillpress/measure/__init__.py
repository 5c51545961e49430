"""Figures: success rates, intervals and tests, the papers' tables, analysis, judges, the study's statistics.

It imports ``experiment`` and what is below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.measure.evaluation import (
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

_MODULES = {
    "BehaviorFigure": "evaluation",
    "Comparison": "evaluation",
    "EvaluationSteps": "evaluation",
    "EvaluationSummary": "evaluation",
    "compare": "evaluation",
    "compare_trainings": "evaluation",
    "evaluate": "evaluation",
    "evaluation_steps": "evaluation",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
