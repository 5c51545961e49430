"""The agent's judgement of its own step, in parts; the environment returns facts and no reward.

    success   R · [won], credited to the whole trajectory
    invalid   - penalty · [invalid]

The paper's R is 10 and its penalty for an invalid action 0.01 (appendix D). What counts as invalid and
what the penalty is credited to are choices: verl-agent penalises the format alone and takes the penalty
off that step's own score; spread over the trajectory, every step answers for every mistake. Shaping by
segmentation cost is added at training time, since it needs the dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillpress.interface import FORMAT_REASONS, AgentState, Info, ParsedAction
from skillpress.trajectory import Credit, RewardPart


@dataclass(frozen=True)
class OutcomeReward:
    """A reward for success, and a little taken off for each action that was not carried out."""

    success: float
    """R, given once, on the step that wins."""
    invalid_penalty: float
    """Taken off for every invalid action; not negative."""
    invalid_counts: Literal["any", "format"] = "any"
    """What is invalid: any action that was not carried out, or only a response that broke the format."""
    invalid_credit: Credit = "trajectory"
    """What the penalty counts for."""

    def __call__(
        self, state: AgentState, parsed: ParsedAction, observation: str, info: Info
    ) -> tuple[RewardPart, ...]:
        """See ``interface.StepReward``; the state and the observation are not looked at."""
        reason = parsed.invalid or info.invalid
        invalid = reason in FORMAT_REASONS if self.invalid_counts == "format" else reason is not None
        return (
            RewardPart("success", self.success * info.won, "trajectory"),
            RewardPart("invalid", -self.invalid_penalty * invalid, self.invalid_credit),
        )
