"""The optimizer's side of training: DeepSpeed around a model and a loss.

The learner owns the weights that are trained; engines sample from copies that ``weights`` refreshes.
What other policies make of the samples is computed once per step, see ``scoring_passes.py``.
An update is one optimizer step over any number of microbatches. DeepSpeed averages gradients over
the ranks while the loss is a sum with weights that add up to 1 over all ranks, so it is multiplied
by their number; and a rank with fewer microbatches than another pads with weightless ones, because
collectives must meet: ZeRO-3's also within a pass, which is why all ranks pass through the model
equally often.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from skillpress.algorithms.algorithm import PolicyLoss
from skillpress.policy.agreement import check_agreement, check_family
from skillpress.policy.precision import require_masters
from skillpress.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.policy.scoring import pack_responses
from skillpress.storage import named_disk_errors
from skillpress.training.measured import Measured
from skillpress.training.optimizer import AdamW
from skillpress.training.samples import Microbatch, PerToken, Samples, microbatches
from skillpress.training.scoring_passes import ReferencePolicy, score_samples
from skillpress.workers.distributed import Ranks

CONFIGURATIONS = Path(__file__).parents[2] / "infra" / "deepspeed"
COMPARED = 4
"""Real samples whose scores are compared with the model's own before the first update."""


class Learner:
    """A policy in training."""

    def __init__(
        self,
        model: PreTrainedModel,
        loss: PolicyLoss,
        configuration: str,
        optimizer: AdamW,
        temperature: float,
        microbatch_tokens: int,
        ranks: Ranks,
        gradient_checkpointing: bool = False,
    ) -> None:
        """Hand the model to DeepSpeed; it is trained in place.

        Args:
            configuration: the name of a file in ``infra/deepspeed``.
            temperature: the sampling temperature, which log-probabilities are computed at.
            microbatch_tokens: tokens in one forward pass at most.
            gradient_checkpointing: forget activations in the forward pass and compute them again.

        Raises:
            ValueError: there is no such configuration.
            PolicyError: the model's log-probabilities cannot be computed here as it computes them, or
                the configuration would round its updates to nothing.
        """
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        settings = {**read_configuration(configuration), "gradient_clipping": optimizer.gradient_clipping}
        require_masters(next(model.parameters()).dtype, configuration, settings)
        self.loss, self.temperature, self.ranks = loss, temperature, ranks
        self.microbatch_tokens = microbatch_tokens
        self.reference = None
        if loss.kl_coefficient:
            self.reference = ReferencePolicy(model, temperature, microbatch_tokens, ranks.device)
        # Not train(): dropout would draw another policy at every pass, and no ratio would be right.
        self.model = model.eval()
        if gradient_checkpointing:
            checkpoint_layers(model)
        check_family(model)
        self._compared = False
        self.scorer = scorer = choose_scorer(model)
        self._settings, self._optimizer = optimizer, optimizer.over(scorer.parameters())
        self.engine: Any
        self.engine, *_ = deepspeed.initialize(model=scorer, optimizer=self._optimizer, config=settings)

    def begin_step(self, step: int) -> None:
        """Take the learning rate of training step ``step`` (from 1) for the updates that follow."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.rate(step)

    def own_logprobs(self, samples: Samples) -> PerToken:
        """Per sample its log-probabilities under the weights as they are now; all ranks call this."""
        limit, device = self.microbatch_tokens, self.ranks.device
        shared = self.scorer.shares_prompts
        return score_samples(self.engine, samples, self.temperature, limit, device, shared, self._in_step)

    def with_reference(self, parts: Sequence[Samples]) -> list[Samples]:
        """The parts with the start policy's log-probabilities, where the loss has a KL term."""
        if self.reference is None:
            return list(parts)
        scored = zip(parts, self.reference.logprobs(parts), strict=True)
        return [replace(part, reference_logprobs=logprobs) for part, logprobs in scored]

    def update(self, samples: Samples) -> Measured:
        """One optimizer step, or none where no rank has a sample; what it measured over all ranks.

        Args:
            samples: with the reference policy's log-probabilities, where the loss has a KL term.
        """
        shared = self.scorer.shares_prompts
        batches = list(microbatches(samples, self.microbatch_tokens, self.ranks.device, shared))
        batches = self._in_step(batches)
        count = len(batches)
        if not count:
            return Measured()
        self._compare(samples)
        totals: dict[str, float] = defaultdict(float)
        for index, batch in enumerate(batches):
            self.engine.set_gradient_accumulation_boundary(index + 1 == count)
            loss, metrics = self._loss(batch)
            self.engine.backward(loss * self.ranks.size)
            self.engine.step()
            counted = {"loss": loss.detach(), "weight": batch.weights.sum()}
            for name, value in {**metrics, **counted}.items():
                totals[name] += float(value)
        norm = self.engine.get_global_grad_norm()
        sums = self.ranks.sum(dict(totals))
        loss_sum, weight = sums.pop("loss"), sums.pop("weight")
        return Measured(loss_sum, weight, sums, None if norm is None else float(norm))

    def weights(self) -> dict[str, torch.Tensor]:
        """The model's weights as they are now, whole also where ZeRO-3 has partitioned them."""
        import deepspeed

        if self.engine.zero_optimization_stage() < 3:
            weights: dict[str, torch.Tensor] = self.model.state_dict()
            return weights
        whole = {}
        for name, value in self.model.state_dict(keep_vars=True).items():
            with deepspeed.zero.GatheredParameters([value]):  # one by one: never more than one copy
                whole[name] = value.detach().clone()
        return whole

    def save(self, folder: Path) -> None:
        """Write weights and optimizer state; every rank calls this with the same folder."""
        with named_disk_errors(folder):
            self.engine.save_checkpoint(str(folder), tag="learner")

    def load(self, folder: Path) -> None:
        """Go on from what ``save`` wrote, bit for bit.

        Raises:
            ValueError: there is nothing that can be loaded.
        """
        path, _ = self.engine.load_checkpoint(str(folder), tag="learner")
        if path is None:
            raise ValueError(f"{folder}: holds no DeepSpeed checkpoint; delete it to start afresh")

    def _compare(self, samples: Samples) -> None:
        """Before the first update: do the scores of a few real samples agree with the model's own?

        Not under ZeRO-3, where a rank without samples would leave the others waiting for its layers.
        """
        if self._compared or not len(samples) or self.engine.zero_optimization_stage() == 3:
            return
        self._compared = True
        longest = sorted(samples.steps, key=lambda step: len(step.prompt_ids))[-1:]
        few = [*samples.steps[: COMPARED - 1], *longest]
        check_agreement(self.model, [(step.prompt_ids, step.response_ids) for step in few])

    def _in_step(self, batches: list[Microbatch]) -> list[Microbatch]:
        """The batches such that every rank makes the same passes through the model."""
        second = any(batch.responses.continuations.shape[1] for batch in batches)
        count, continued = self.ranks.maximum([len(batches), int(second)])
        batches = batches + [self._weightless()] * (count - len(batches))
        if continued:
            batches = [replace(batch, responses=batch.responses.with_continuations()) for batch in batches]
        return batches

    def _loss(self, batch: Microbatch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        if (self.reference is None) != (batch.reference_logprobs is None):
            raise ValueError("samples for a loss with a KL term, and no others, come from with_reference")
        logprobs, entropies = self.engine(batch.responses, self.temperature)
        loss, metrics = self.loss(
            logprobs, batch.old_logprobs, batch.advantages, batch.weights, batch.reference_logprobs
        )
        return loss, {**metrics, "entropy": (batch.weights * entropies).sum()}

    def _weightless(self) -> Microbatch:
        """A forward pass of one token that counts for nothing."""
        zero = torch.zeros(1, device=self.ranks.device)
        reference = None if self.reference is None else zero
        return Microbatch(pack_responses([((0,), (0,))], self.ranks.device), zero, zero, zero, reference)


def read_configuration(name: str) -> dict[str, Any]:
    """A DeepSpeed configuration of ``infra/deepspeed`` by its name.

    Raises:
        ValueError: there is none of this name; the message lists those there are.
    """
    path = CONFIGURATIONS / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in CONFIGURATIONS.glob("*.json")))
        raise ValueError(f"training.deepspeed is {name!r}; allowed: {known}")
    configuration: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return configuration
