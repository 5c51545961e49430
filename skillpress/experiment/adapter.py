"""Low-rank changes in an experiment's policy, the same in imitation and in training."""

from __future__ import annotations

from skillpress.core.seeds import derive
from skillpress.experiment.experiment import Experiment
from skillpress.models.policy import Policy
from skillpress.models.policy.domain_tokens import added_tokens
from skillpress.models.policy.lora import LoraAdapter, SavedAdapter
from skillpress.training.lora_parameters import LoraParameters


def insert_adapter(
    experiment: Experiment, policy: Policy, section: LoraParameters, start: SavedAdapter | None = None
) -> LoraAdapter:
    """Insert low-rank changes into the policy's model; they are trained in place of its weights.

    Args:
        start: the changes to continue from; None starts without any.
    """
    return LoraAdapter(
        policy.model,
        rank=section.rank,
        alpha=section.alpha,
        # The same in imitation and in training, so both round merged weights in the same way.
        seed=derive(experiment.params.seed, "lora"),
        rows=added_tokens(policy, experiment.domain_words),
        start=start,
        packed=experiment.params.policy.quantised is not None,
    )
