"""A pass through the model: steps of a batch together, and their tokens on a device.

Steps of one episode whose prompts extend one another pass through the model as one sequence. For that they
must be neighbours, so the steps of an episode are cut in the order of their chains, which may differ from the
order of time (``core/chains.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.chains import in_chains
from skillpress.core.columns import Indices
from skillpress.core.trajectory import Step, Trajectory
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scoring import Responses, on_device, pack_responses
from skillpress.training.algorithms.algorithm import ScoredTokens
from skillpress.training.algorithms.batch import Batch


@dataclass(frozen=True)
class Pass:
    """One pass through the model."""

    batch: Batch
    """The steps."""
    responses: Responses
    """The steps' prompts and responses in the form that the model reads."""
    rows: Indices | None = None
    """The places of the steps in the batch that was split into passes; None for a pass that was added."""
    given: Responses | None = None
    """For lessons: the same response tokens in the same order after the prompts with knowledge, while
    ``responses`` has them after the plain prompts. None for rollouts."""

    def with_continuations(self) -> Pass:
        """See ``Responses.with_continuations``."""
        given = None if self.given is None else self.given.with_continuations()
        return replace(self, responses=self.responses.with_continuations(), given=given)

    @property
    def continued(self) -> bool:
        """Whether any response needs a second pass through the model's layers."""
        both = (self.responses, self.given)
        return any(each is not None and each.continuations.shape[1] > 0 for each in both)


def sampled_steps(trajectories: Sequence[Trajectory]) -> list[Step]:
    """All decisions at which something was sampled, in order. If a prompt did not fit, nothing was
    sampled."""
    return [step for trajectory in trajectories for step in trajectory.decisions if step.response_ids]


def sampled(batch: Batch) -> Indices:
    """The steps at which something was sampled, in the order of their chains."""
    rows = np.flatnonzero(batch.tokens > 0)
    found: Indices = rows[in_chains(batch.pairs.select(rows), batch.trajectory[rows])]
    return found


def passes(batch: Batch, token_limit: int, device: torch.device | str, shared: bool = True) -> list[Pass]:
    """The steps as passes through the model; see ``policy/passes.py``."""
    found = []
    for rows in pass_rows(batch.pairs, token_limit, shared):
        part = batch.cut(rows)
        found.append(Pass(part, pack_responses(part.pairs, device), rows))
    return found


def weightless(device: torch.device | str, **columns: Any) -> Pass:
    """A pass of one token with weight 0, for ranks that must make as many passes as others."""
    token = Step(
        prompt_ids=(0,),  # every vocabulary has token 0
        response_ids=(0,),
        logprobs=np.zeros(1, np.float32),
        thought="",
        action="",
        observation="",
        invalid=None,
        reward_parts=(),
    )
    batch = Batch.of_steps([token], **columns)
    responses = pack_responses(batch.pairs, device)
    return Pass(batch, responses, given=responses)


def scored(batch: Batch, logprobs: torch.Tensor, values: torch.Tensor | None = None) -> ScoredTokens:
    """The input of a loss, on the device of ``logprobs``.

    Args:
        logprobs: [tokens] of the steps under the current weights.
        values: [steps] of their states; None where the algorithm has no values.
    """
    # Importance weights in the advantages already make up for the policy that sampled.
    old = batch.logprobs if batch.proximal_logprobs is None else batch.proximal_logprobs
    step = np.repeat(np.arange(len(batch)), batch.tokens)

    def tensor(array: NDArray[Any] | None) -> Any:
        return None if array is None else on_device(array.astype(np.float32), logprobs.device)

    sums, factors = batch.trajectory_sums, batch.kl_factors
    return ScoredTokens(
        logprobs=logprobs,
        old_logprobs=tensor(old),
        advantages=tensor(batch.advantages),
        weights=tensor(batch.weights[step]),
        response=on_device(step, logprobs.device),
        reference_logprobs=tensor(batch.reference_logprobs),
        kl_weights=None if factors is None else tensor((batch.weights * factors)[step]),
        values=values,
        old_values=tensor(batch.values),
        value_targets=tensor(batch.value_targets),
        value_weights=tensor(batch.value_weights),
        trajectory_sums=None if sums is None else on_device(sums[step], logprobs.device),
    )
