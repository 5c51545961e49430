"""What a policy in training makes of whole actions: exact, in a few states of each step.

The entropy of tokens that an update measures says little of what the policy would do, where one action takes
several tokens or several responses are one action. So before the updates of a step, pi(A | X) is summed over
responses (``macro_policy/enumeration.py``) in some states that the step has visited, drawn by the
experiment's seed and the step, under the learner's weights as they are. Beside them stands how probable the
oracle's action is, in the states of some demonstrations that are the same in every step: it rises while a
policy learns to do what the oracle does, and may fall where other actions lead on as well.

Nothing is drawn from anybody's random numbers and no engine is asked, so that training goes the same way
with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.core.seeds import generator
from skillpress.core.trajectory import TokenIds, Trajectory
from skillpress.models.macro_policy.actions import MacroPolicy
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.play.workers.distributed import Ranks

STATES = 32
"""Of a step, over all ranks; one by each where there are more ranks."""
MOST_LEFT_OUT = 0.05
"""Mean mass of the responses that were not looked at up to which an entropy is told: with more of it the
figure would say how far the sum went, not what the policy does."""


@dataclass(frozen=True)
class DemonstratedState:
    """A state on the way of a demonstration."""

    prompt: TokenIds
    action: str
    """What the oracle does there."""


@dataclass(frozen=True)
class ActionMetrics:
    """Columns ``actions/...`` of the training curve."""

    enumeration: Enumeration
    ranks: Ranks
    seed: int
    demonstrated: Sequence[DemonstratedState] = ()
    """This rank's; empty where there is no oracle that plays in this process."""

    def __call__(self, trajectories: Sequence[Trajectory], step: int) -> dict[str, float]:
        """Means over the states of all ranks; all of them call this.

        Args:
            trajectories: this rank's of training step ``step``.
        """
        prompts = [turn.prompt_ids for t in trajectories for turn in t.steps if turn.response_ids]
        share = max(1, STATES // self.ranks.size)
        order = generator(self.seed, "actions", step, self.ranks.rank).permutation(len(prompts))
        visited = [prompts[row] for row in order[:share]]
        found = self.enumeration([*visited, *(state.prompt for state in self.demonstrated)])
        followed = self._oracles(found[len(visited) :])
        sums = self.ranks.sum({**_sums(found[: len(visited)]), **followed})
        states, demonstrated = sums.pop("states"), sums.pop("demonstrated")
        oracle = sums.pop("oracle")
        means = {name: value / states for name, value in sums.items()} if states else {}
        if means.get("left_out", 0.0) > MOST_LEFT_OUT:
            means = {"left_out": means["left_out"]}
        if demonstrated:
            means["oracle"] = oracle / demonstrated
        return {f"actions/{name}": value for name, value in means.items()}

    def _oracles(self, followed: Sequence[MacroPolicy]) -> dict[str, float]:
        pairs = zip(followed, self.demonstrated, strict=True)
        probabilities = [policy.probability(state.action).low for policy, state in pairs]
        return {"demonstrated": float(len(probabilities)), "oracle": sum(probabilities, 0.0)}


def _sums(policies: Sequence[MacroPolicy]) -> dict[str, float]:
    return {
        "states": float(len(policies)),
        "entropy": sum((policy.entropy for policy in policies), 0.0),
        "response_entropy": sum((policy.response_entropy for policy in policies), 0.0),
        "left_out": sum((policy.left_out for policy in policies), 0.0),
    }
