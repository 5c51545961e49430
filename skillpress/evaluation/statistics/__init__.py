"""The quality and the behaviour of a policy, computed from its trajectories alone.

:func:`evaluate` turns the rollouts of one policy into an :class:`EvaluationSummary`. :func:`compare` tests
two policies on the same tasks, and :func:`compare_trainings` two methods by several trainings of each. All
functions work on rows of ``skillpress.core.rollout_files.ROLLOUT_SCHEMA``, which :func:`evaluation_steps`
leaves on disk. No code here depends on a model or an environment.
"""

from __future__ import annotations

from skillpress.evaluation.statistics.behavior import BehaviorFigure
from skillpress.evaluation.statistics.budget import BudgetCurve
from skillpress.evaluation.statistics.episodes import EvaluationError, EvaluationSteps, evaluation_steps
from skillpress.evaluation.statistics.paired import Comparison, PairedTest, compare, compare_trainings
from skillpress.evaluation.statistics.success import SuccessRate
from skillpress.evaluation.statistics.summary import EvaluationSummary, evaluate

__all__ = [
    "BehaviorFigure",
    "BudgetCurve",
    "Comparison",
    "EvaluationError",
    "EvaluationSteps",
    "EvaluationSummary",
    "PairedTest",
    "SuccessRate",
    "compare",
    "compare_trainings",
    "evaluate",
    "evaluation_steps",
]
