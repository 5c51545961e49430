"""The exact probabilities of whole actions under a policy in training, in a few states of each step.

An update measures the entropy of tokens. This says little about actions if one action takes several tokens or
several responses are one action. So before the updates of a step, pi(A | X) is summed over responses
(``macro_policy/enumeration.py``) under the learner's current weights, in some states that the step has
visited, drawn by the experiment's seed and the step. Another metric is the probability of the oracle's
action, in the states of some demonstrations that are the same in every step. It rises while a policy learns
to act like the oracle, and may fall if other actions are as good.

These metrics use no other part's random numbers and no engine, so training is the same with and without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillpress.core.seeds import generator
from skillpress.core.trajectory import TokenIds, Trajectory
from skillpress.models.macro_policy.actions import MacroPolicy
from skillpress.models.macro_policy.enumeration import Enumeration
from skillpress.rollouts.workers.distributed import Ranks

STATES = 32
"""Number of states per step, over all ranks; each rank looks at one if there are more ranks."""
MOST_LEFT_OUT = 0.05
"""Entropy is reported only if the mean probability of the responses not enumerated is at most this. With
more, the figure would describe the enumeration and not the policy."""


@dataclass(frozen=True)
class DemonstratedState:
    """A state that a demonstration passes through."""

    prompt: TokenIds
    action: str
    """The oracle's action there."""


@dataclass(frozen=True)
class ActionMetrics:
    """Columns ``actions/...`` of the training curve."""

    enumeration: Enumeration
    ranks: Ranks
    seed: int
    demonstrated: Sequence[DemonstratedState] = ()
    """This rank's demonstrated states; empty if no oracle plays in this process."""

    def __call__(self, trajectories: Sequence[Trajectory], step: int) -> dict[str, float]:
        """Means over the states of all ranks; all ranks call this with their trajectories of ``step``."""
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
