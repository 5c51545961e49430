"""The agent's judgement of its own step; the world returns facts and no reward.

r_k = R · [won] - penalty · [invalid]. The paper's R is 10 and its penalty for an invalid action 0.01
(appendix D). Shaping by segmentation cost is added at training time, since it needs the dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillpress.interface import Info


@dataclass(frozen=True)
class OutcomeReward:
    """A reward for success, and a little taken off for each action that was not carried out."""

    success: float
    """R, given once, on the step that wins."""
    invalid_penalty: float
    """Taken off for every invalid action; not negative."""

    def __call__(self, info: Info, invalid: str | None) -> float:
        """The step's reward.

        Args:
            info: what the world said after the action.
            invalid: why the action was not carried out, a parser's reason or the world's; or None.
        """
        return self.success * info.won - self.invalid_penalty * (invalid is not None)
