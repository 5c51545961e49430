"""How good is a policy, and how does it act? Computed from its trajectories alone.

:func:`evaluate` turns the rollouts of one policy into an :class:`EvaluationSummary`;
:func:`compare` tests two policies on the same tasks. Everything works on frames of
``skillpress.trajectory.ROLLOUT_SCHEMA`` in which ``group_id`` names the run (``run-0`` ...), and
nothing here knows a model or an environment: what is particular to a world is computed by the
``behavior`` of its bundle and handed in.
"""

from __future__ import annotations

from skillpress.evaluation.behavior import BehaviorFigure, EnvironmentBehavior
from skillpress.evaluation.budget import BudgetCurve
from skillpress.evaluation.episodes import EvaluationError
from skillpress.evaluation.paired import Comparison, PairedTest, compare
from skillpress.evaluation.success import SuccessRate
from skillpress.evaluation.summary import EvaluationSummary, evaluate

__all__ = [
    "BehaviorFigure",
    "BudgetCurve",
    "Comparison",
    "EnvironmentBehavior",
    "EvaluationError",
    "EvaluationSummary",
    "PairedTest",
    "SuccessRate",
    "compare",
    "evaluate",
]
