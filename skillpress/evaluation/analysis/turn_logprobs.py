"""log p(v_k | X_k) of the turns of trajectories under any policy of the same vocabulary.

The sampled tokens are scored as training scores them: prompts that responses share pass through the model
once, and turns that continue one another form one sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Step
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import PASS_TOKENS
from skillpress.models.policy.scorers import choose_scorer
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.scoring_passes import ScoringPasses


class TurnScorer:
    """One policy as a function from turns to their log-probabilities."""

    def __init__(self, policy: Policy, temperature: float) -> None:
        """The policy is on the device that scores; the temperature divides its logits."""
        scorer = choose_scorer(policy.model.eval())
        self._passes = ScoringPasses(
            score=scorer,
            temperature=temperature,
            token_limit=PASS_TOKENS,
            device=policy.model.device,
            shared=scorer.shares_prompts,
        )

    def __call__(self, turns: Sequence[Step]) -> NDArray[np.float64]:
        """[turns] the sum over each turn's tokens, in nats; 0 if nothing was sampled."""
        found = np.zeros(len(turns))
        sampled = [number for number, turn in enumerate(turns) if turn.response_ids]
        if not sampled:
            return found
        samples = Batch.of_steps([turns[number] for number in sampled])
        scored = np.split(self._passes.logprobs(samples), np.cumsum(samples.tokens)[:-1])
        found[sampled] = [logprobs.sum(dtype=np.float64) for logprobs in scored]
        return found
