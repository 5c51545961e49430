"""From the section ``reward`` to the agent's judgement of its own steps."""

from __future__ import annotations

from skillpress.experiment.params import RewardParameters
from skillpress.play.agents.reward import OutcomeReward, WeightedMeasure


def outcome_reward(section: RewardParameters) -> OutcomeReward:
    """How an agent judges its own steps."""
    return OutcomeReward(
        success=section.success,
        invalid_penalty=section.invalid_penalty,
        invalid_counts=section.invalid_counts,
        invalid_credit=section.invalid_credit,
        measures={
            name: WeightedMeasure(measure.weight, measure.credit)
            for name, measure in section.measures.items()
        },
    )
