"""The agent's reward for its own step, in parts. The environment returns facts and no reward.

    success   R · [won], credited to the whole trajectory
    invalid   - penalty · [invalid]
    a measure weight · a fact that the environment states by name (``Info.measures``) or that the agent
              knows itself: ``format`` is 1 for a response in the right format, else 0

The paper's R is 10 and its penalty for an invalid action is 0.01 (appendix D). Which actions count as invalid
and which steps the penalty is credited to are settings. verl-agent penalises only a wrong format and
subtracts the penalty from that step's own score. If the penalty is spread over the trajectory, every step
pays for every mistake. Shaping by segmentation cost is added at training time, since it needs the dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import FORMAT_MEASURE, FORMAT_REASONS, ParsedAction
from skillpress.core.sections import Section
from skillpress.core.trajectory import Credit, RewardPart

INVALID = "invalid"
"""The name of the reward part that penalises invalid actions."""


class WeightedMeasure(Section):
    """``reward.measures``: the weight of a measured fact and the steps that it is credited to."""

    weight: float
    """Factor of the fact in the reward."""
    credit: Credit
    """Who gets it: every step of the ``trajectory``, only the ``step``, or, with ``mean``, every step of the
    trajectory an equal share."""


@dataclass(frozen=True)
class OutcomeReward:
    """A reward for success and for measured facts, and a penalty for each action not carried out."""

    success: float
    """R, given once, at the step that wins."""
    invalid_penalty: float
    """Subtracted for every invalid action; not negative."""
    invalid_counts: Literal["any", "format"] = "any"
    """Whether all actions not carried out are invalid, or only responses in the wrong format."""
    invalid_credit: Credit = "trajectory"
    """The steps that the penalty is credited to."""
    measures: Mapping[str, WeightedMeasure] = field(default_factory=dict)
    """Weights by the name of the measure. A step gets 0 if the environment states no such fact for it."""

    def __call__(
        self, state: AgentState, parsed: ParsedAction[Any], observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """See ``interface.StepReward``. The state and the observation are ignored."""
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
