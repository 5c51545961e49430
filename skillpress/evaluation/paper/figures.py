"""What an environment's folder in ``paper/`` provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.statistics.behavior import BehaviorFigure
from skillpress.evaluation.statistics.episodes import EvaluationSteps


@dataclass(frozen=True)
class EnvironmentBehavior:
    """The figures on a policy's behaviour that only this environment's actions show."""

    figures: tuple[BehaviorFigure, ...] = ()
    action_mix: Mapping[str, int] = field(default_factory=dict)
    """The number of steps in successful episodes for each kind of action, in the environment's words."""


def no_behavior(steps: EvaluationSteps) -> EnvironmentBehavior:
    """The behaviour for an environment without figures of its own."""
    return EnvironmentBehavior()


@dataclass(frozen=True)
class EnvironmentFigures:
    """One environment's part of the tables and of the report."""

    panels: Sequence[PaperPanel] = ()
    """The environment's rows of the paper's tables."""
    behavior: Callable[[EvaluationSteps], EnvironmentBehavior] = no_behavior
    """Computes the environment's own behaviour figures from an evaluation's steps."""
    named_skills: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Phrases that the paper found, each with the skill of SkillRL that says the same (Table 11)."""
