"""The complete evaluation of one policy, from which ``results/evaluation.json`` and the report are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from skillpress.core.trajectory import Task
from skillpress.evaluation.statistics.behavior import (
    BehaviorFigure,
    general_behavior,
    success_lengths,
)
from skillpress.evaluation.statistics.budget import BudgetCurve, success_against_budget
from skillpress.evaluation.statistics.episodes import (
    EvaluationError,
    EvaluationSteps,
    check_complete,
    episode_table,
)
from skillpress.evaluation.statistics.strata import by_stratum
from skillpress.evaluation.statistics.success import SuccessRate, pass_at_1, self_consistency


@dataclass(frozen=True)
class EvaluationSummary:
    """All figures that are reported about one policy on one set of tasks."""

    tasks: int
    runs: int
    votes: int
    """k: episodes per task and run."""
    pass_at_1: SuccessRate
    self_consistency: SuccessRate
    """SC@k with k = ``votes``; equal to Pass@1 when k is 1."""
    strata: dict[str, SuccessRate]
    """Pass@1 within each class of tasks; a class ``ood/clean`` counts within ``ood`` as well."""
    budget: BudgetCurve
    behavior: tuple[BehaviorFigure, ...]
    """The figures that make sense in any environment."""
    success_lengths: dict[int, int]
    """Number of steps to the number of won episodes of that length."""
    strata_self_consistency: dict[str, SuccessRate] = field(default_factory=dict)
    """SC@k within the same classes."""

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values; :meth:`from_json` reads them."""
        written: dict[str, Any] = TypeAdapter(EvaluationSummary).dump_python(self, mode="json")
        return written

    def headline(self) -> dict[str, float]:
        """The few figures by which experiments are compared at a glance."""
        figures = {
            "pass_at_1": self.pass_at_1.mean,
            "pass_at_1_low": self.pass_at_1.low,
            "pass_at_1_high": self.pass_at_1.high,
            f"sc_at_{self.votes}": self.self_consistency.mean,
            "budget_area": self.budget.area,
        }
        figures |= {f"within_{budget}_steps": share for budget, share in self.budget.points.items()}
        return figures | {
            figure.key: figure.value for figure in self.behavior if figure.table and figure.value is not None
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> EvaluationSummary:
        """The summary that :meth:`to_json` wrote.

        Raises:
            ValueError: a value is missing or of the wrong type (pydantic names it).
        """
        return TypeAdapter(EvaluationSummary).validate_python(values)


def evaluate(
    steps: EvaluationSteps,
    tasks: Sequence[Task],
    *,
    runs: int,
    votes: int,
    max_steps: int,
) -> EvaluationSummary:
    """Evaluate one policy.

    Args:
        tasks: the tasks that every run must hold exactly ``votes`` times.
        max_steps: T, the most steps of an episode.

    Raises:
        EvaluationError: there are no tasks, or the rollouts are not such a rectangle.
        ValueError: ``votes`` is even.
    """
    if not tasks:
        raise EvaluationError("there are no tasks to evaluate on")
    episodes = episode_table(steps)
    check_complete(episodes, [task.task_id for task in tasks], runs, votes)
    strata = by_stratum(episodes, tasks)
    return EvaluationSummary(
        tasks=len(tasks),
        runs=runs,
        votes=votes,
        pass_at_1=pass_at_1(episodes),
        self_consistency=self_consistency(episodes, votes),
        strata={name: pass_at_1(part) for name, part in strata.items()},
        budget=success_against_budget(episodes, max_steps),
        behavior=general_behavior(episodes),
        success_lengths=success_lengths(episodes),
        strata_self_consistency={name: self_consistency(part, votes) for name, part in strata.items()},
    )
