"""The agent's judgement of its own step, in parts; the environment returns facts and no reward.

    success   R · [won], credited to the whole trajectory
    invalid   - penalty · [invalid]
    a measure weight · the fact of that name that the environment states (``Info.measures``), or that the
              agent knows itself: ``format`` is 1 for a response in the right format, else 0

The paper's R is 10 and its penalty for an invalid action 0.01 (appendix D). What counts as invalid and
what the penalty is credited to are choices: verl-agent penalises the format alone and takes the penalty
off that step's own score; spread over the trajectory, every step answers for every mistake. Shaping by
segmentation cost is added at training time, since it needs the dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import FORMAT_MEASURE, FORMAT_REASONS, ParsedAction
from skillpress.core.sections import Section
from skillpress.core.trajectory import Credit, RewardPart

INVALID = "invalid"
"""The part that takes off for what is invalid."""


class WeightedMeasure(Section):
    """``reward.measures``: what a measured fact is worth."""

    weight: float
    credit: Credit


@dataclass(frozen=True)
class OutcomeReward:
    """A reward for success, a little taken off for each action not carried out, and measured facts."""

    success: float
    """R, given once, on the step that wins."""
    invalid_penalty: float
    """Taken off for every invalid action; not negative."""
    invalid_counts: Literal["any", "format"] = "any"
    """What is invalid: any action that was not carried out, or only a response that broke the format."""
    invalid_credit: Credit = "trajectory"
    """What the penalty counts for."""
    measures: Mapping[str, WeightedMeasure] = field(default_factory=dict)
    """By name; a step for which the environment states no such fact gets 0."""

    def __call__(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """See ``interface.StepReward``; the state and the observation are not looked at."""
        reason = parsed.invalid or info.invalid
        invalid = reason in FORMAT_REASONS if self.invalid_counts == "format" else reason is not None
        facts = {**info.measures, FORMAT_MEASURE: float(parsed.invalid not in FORMAT_REASONS)}
        return (
            RewardPart("success", self.success * info.won, "trajectory"),
            RewardPart(INVALID, -self.invalid_penalty * invalid, self.invalid_credit),
            *(
                RewardPart(name, measure.weight * facts.get(name, 0.0), measure.credit)
                for name, measure in self.measures.items()
            ),
        )
