"""The optimizer's side of training: DeepSpeed around a model and an algorithm's loss.

The learner owns the weights that are trained; engines sample from copies that ``weights`` refreshes. Other
policies score the samples once per step, see ``scoring_passes.py``. An update is one optimizer step over any
number of passes through the model. DeepSpeed averages gradients over the ranks, but the loss is a sum whose
weights add up to 1 over all ranks, so it is multiplied by the number of ranks. Collective operations need all
ranks, and ZeRO-3 has some within each pass. So all ranks make the same number of passes: a rank with fewer
adds weightless ones.

If the algorithm asks for values, the same optimizer also trains a value head.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from skillpress.core.columns import members
from skillpress.core.errors import StorageError
from skillpress.core.logprobs import Logprobs
from skillpress.core.storage import named_disk_errors
from skillpress.models.policy import token_scores
from skillpress.models.policy.agreement import check_agreement, check_family
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.precision import require_masters
from skillpress.models.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.algorithm import Algorithm
from skillpress.training.algorithms.batch import Batch, Floats
from skillpress.training.algorithms.importance_weights import TruncatedImportance
from skillpress.training.experience.experience import LessonLoss
from skillpress.training.loop.lessons import lesson_loss, lesson_passes
from skillpress.training.loop.lora import LoraAdapter, SavedAdapter
from skillpress.training.loop.measured import Measured
from skillpress.training.loop.model_pass import Pass, passes, scored, weightless
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.own_scores import completed, prepared
from skillpress.training.loop.parameters import DEEPSPEED
from skillpress.training.loop.scoring_passes import (
    ReferencePolicy,
    ScoringPasses,
    by_sample,
)
from skillpress.training.loop.value_head import ValuedScorer, ValueHead

_OF_LESSONS = "lesson/"
COMPARED = 4
"""Number of real samples whose scores are compared with the model's own before the first update."""


class Learner:
    """A policy in training."""

    def __init__(
        self,
        model: PreTrainedModel,
        algorithm: Algorithm,
        configuration: str,
        optimizer: AdamW,
        temperature: float,
        microbatch_tokens: int,
        ranks: Ranks,
        gradient_checkpointing: bool = False,
        adapter: LoraAdapter | None = None,
        value_head: ValueHead | None = None,
        lesson_loss: LessonLoss | None = None,
    ) -> None:
        """Pass the model to DeepSpeed, which trains it in place.

        Args:
            algorithm: it defines the loss that updates minimise.
            configuration: the name of a file in ``infra/deepspeed``.
            temperature: the sampling temperature, at which log-probabilities are computed.
            microbatch_tokens: the most tokens of one forward pass.
            gradient_checkpointing: drop activations in the forward pass and compute them again.
            adapter: the adapter in the model, which is trained instead of its weights; None trains all
                weights.
            value_head: the model's value head, which is trained too; None where the algorithm asks for no
                values.
            lesson_loss: the loss of lessons; needed if updates receive lessons.

        Raises:
            ValueError: there is no such configuration.
            PolicyError: the scorer cannot reproduce the model's log-probabilities, or the configuration would
                round its updates to 0.
        """
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        settings = {**read_configuration(configuration), "gradient_clipping": optimizer.gradient_clipping}
        require_masters(next(model.parameters()).dtype, configuration, settings)
        self.algorithm, self.temperature, self.ranks = algorithm, temperature, ranks
        self.lesson_loss = lesson_loss
        self.microbatch_tokens = microbatch_tokens
        self.adapter = adapter
        self._reference = None
        if algorithm.kl_coefficient and adapter is None:
            self._reference = ReferencePolicy(model, temperature, microbatch_tokens, ranks.device)
        # Not train(): dropout would change the policy at every pass, and every ratio would be wrong.
        self.model = model.eval()
        if gradient_checkpointing:
            checkpoint_layers(model)
        check_family(model)
        self._compared = False
        self.scorer = scorer = choose_scorer(model)
        if adapter is not None:
            saved: torch.nn.Module = scorer
            saved.register_state_dict_post_hook(_leave_out_second_names)
        self.valued = value_head is not None
        module = scorer if value_head is None else ValuedScorer(scorer, value_head)
        trained = [weight for weight in scorer.parameters() if weight.requires_grad]
        self._settings, self._optimizer = optimizer, optimizer.over(trained)
        if value_head is not None:
            own = {"params": list(value_head.parameters()), "factor": value_head.rate}
            self._optimizer.add_param_group(own)
        self.engine: Any
        self.engine, *_ = deepspeed.initialize(model=module, optimizer=self._optimizer, config=settings)

    def begin_step(self, step: int) -> None:
        """Set the learning rate of training step ``step`` (from 1) for the updates that follow."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.rate(step) * group.get("factor", 1.0)

    @property
    def _passes(self) -> ScoringPasses:
        return ScoringPasses(
            temperature=self.temperature,
            token_limit=self.microbatch_tokens,
            device=self.ranks.device,
            shared=self.scorer.shares_prompts,
            in_step=self._in_step,
        )

    def own_logprobs(self, samples: Batch) -> Logprobs:
        """[tokens] the samples' log-probabilities under the current weights; all ranks call this."""
        return self._passes.logprobs(self.engine, samples)

    def values(self, samples: Batch) -> Floats:
        """[samples] values of their states under the current weights; all ranks call this.

        The learner must have a value head, and the samples must have targets.
        """
        return self._passes.values(self.engine, samples)

    def with_reference(self, parts: Sequence[Batch]) -> list[Batch]:
        """The parts with the start policy's log-probabilities, if the loss has a KL term. If only some
        samples are drawn for it (``kl_share.py``), no others are scored."""
        if not self.algorithm.kl_coefficient:
            return list(parts)
        drawn = [
            np.arange(len(part)) if part.kl_factors is None else np.flatnonzero(part.kl_factors)
            for part in parts
        ]
        few = self._reference_logprobs([part.cut(rows) for part, rows in zip(parts, drawn, strict=True)])
        found = []
        for part, rows, logprobs in zip(parts, drawn, few, strict=True):
            reference = np.full_like(part.logprobs, np.nan)
            reference[members(rows, part.tokens)] = logprobs
            found.append(replace(part, reference_logprobs=reference))
        return found

    def update(
        self,
        samples: Batch,
        lessons: Batch | None = None,
        compare: Callable[[Batch, Logprobs], None] | None = None,
        importance: TruncatedImportance | None = None,
    ) -> Measured:
        """One optimizer step, or no step if no rank has a sample. Returns its measurements over all ranks.

        Args:
            samples: they have the reference policy's log-probabilities if the loss has a KL term, and targets
                if there is a value head. If the loss asks for whole trajectories, they are whole; those
                that no pass has as a whole are scored once more before the update.
            lessons: lessons of the same optimizer step; None on all ranks or on no rank.
            compare: the learner calls it with the samples and their log-probabilities [tokens] under the
                weights before the update, if there is an update. If it raises an error, no weight has
                changed. All ranks pass one, or none does.
            importance: weights the advantages of samples without proximal log-probabilities, which become
                those of the weights before the update (``own_scores.py``).
        """
        shared = self.scorer.shares_prompts
        if self.algorithm.whole_trajectories:
            together = list(pass_rows(samples.pairs, self.microbatch_tokens, shared))
            samples = prepared(samples, together, self.own_logprobs, importance)
        rows, parts = passes(samples, self.microbatch_tokens, self.ranks.device, shared)
        logprobs: list[torch.Tensor] = []
        losses = [partial(self._loss, each, logprobs, importance) for each in self._in_step(parts)]
        losses += [partial(self._lesson, each) for each in self._lessons_in_step(lessons)]
        if not losses:
            return Measured()
        self._compare(samples)
        totals: dict[str, float] = defaultdict(float)
        for index, compute in enumerate(losses):
            self.engine.set_gradient_accumulation_boundary(index + 1 == len(losses))
            loss, metrics = compute()
            self.engine.backward(loss * self.ranks.size)
            if compare is not None and index + 1 == len(losses):
                compare(samples, by_sample(samples, rows, logprobs))
            self.engine.step()
            for name, value in {**metrics, "loss": loss.detach()}.items():
                totals[name] += float(value)
        norm = self.engine.get_global_grad_norm()
        sums = self.ranks.sum(dict(totals))
        taught = [name for name in sums if name.startswith(_OF_LESSONS)]
        return Measured(
            loss=sums.pop("loss"),
            weight=sums.pop("weight", 0.0),
            reference_weight=sums.pop("reference_weight", 0.0),
            lessons={name.removeprefix(_OF_LESSONS): sums.pop(name) for name in taught},
            sums=sums,
            gradient_norm=None if norm is None else float(norm),
            optimized=True,
        )

    def weights(self) -> dict[str, torch.Tensor]:
        """The policy's current weights, under the start policy's names; all ranks call this."""
        if self.adapter is not None:
            return self.adapter.merged(self._whole)
        return {name: self._whole(value) for name, value in self.model.state_dict(keep_vars=True).items()}

    def saved_adapter(self) -> SavedAdapter | None:
        """The current adapter; None if all weights are trained. All ranks call this."""
        return None if self.adapter is None else self.adapter.saved(self._whole)

    def save(self, folder: Path) -> None:
        """Write the trained weights and the optimizer's state; all ranks pass the same folder."""
        with named_disk_errors(folder):
            self.engine.save_checkpoint(str(folder), tag="learner", exclude_frozen_parameters=True)

    def load(self, folder: Path) -> None:
        """Restore the state that ``save`` wrote, bit for bit.

        Raises:
            StorageError: the folder has no state that can be loaded.
        """
        if not any(folder.glob("learner/*")):
            raise StorageError(f"{folder}: holds no DeepSpeed checkpoint; delete it to start afresh")
        strict = self.adapter is None  # untrained weights are there already
        self.engine.load_checkpoint(str(folder), tag="learner", load_module_strict=strict)

    def _whole(self, weight: torch.Tensor) -> torch.Tensor:
        """The current weight, as a whole. If ZeRO-3 has partitioned it, this is a copy."""
        import deepspeed

        if self.engine.zero_optimization_stage() < 3:
            return weight.detach()
        with deepspeed.zero.GatheredParameters([weight]):  # one at a time: never more than one copy
            return weight.detach().clone()

    def _reference_logprobs(self, parts: Sequence[Batch]) -> list[Logprobs]:
        """Log-probabilities of each part under the start policy: a copy, or the model without its adapter."""
        if self._reference is not None:
            return self._reference.logprobs(parts)
        assert self.adapter is not None
        with self.adapter.switched_off():
            return [self.own_logprobs(part) for part in parts]

    def _compare(self, samples: Batch) -> None:
        """Before the first update, check that the scores of a few real samples agree with the model's own.

        There is no check under ZeRO-3, where a rank without samples would leave the others waiting for its
        layers.
        """
        if self._compared or not len(samples) or self.engine.zero_optimization_stage() == 3:
            return
        self._compared = True
        pairs = samples.pairs.rows
        longest = sorted(pairs, key=lambda pair: len(pair[0]))[-1:]
        check_agreement(self.model, [*pairs[: COMPARED - 1], *longest], self.microbatch_tokens)

    def _in_step(self, parts: list[Pass]) -> list[Pass]:
        """The passes, padded so that every rank makes the same ones through the model."""
        second = any(each.continued for each in parts)
        count, continued = self.ranks.maximum([len(parts), int(second)])
        parts = parts + [self._weightless()] * (count - len(parts))
        return [each.with_continuations() for each in parts] if continued else parts

    def _loss(
        self, part: Pass, logprobs_of: list[torch.Tensor], importance: TruncatedImportance | None
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of a pass, and metrics; its log-probabilities are appended to ``logprobs_of``."""
        samples = part.batch
        if bool(self.algorithm.kl_coefficient) != (samples.reference_logprobs is not None):
            raise ValueError("only samples for a loss with a KL term come from with_reference")
        if self.valued != (samples.value_targets is not None):
            raise ValueError("samples for a learner with a value head, and no others, have targets")
        made = {}
        if self.valued:
            made["made"] = torch.tensor(samples.made, dtype=torch.float32, device=self.ranks.device)
        logprobs, entropies, *values = self.engine(part.responses, self.temperature, **made)
        logprobs_of.append(logprobs.detach())
        if importance is not None or samples.trajectory_sums is not None:
            samples = completed(samples, logprobs.detach().cpu().numpy(), importance)
        tokens = scored(samples, logprobs, *values)
        loss, metrics = self.algorithm.loss(tokens)
        counted = {"entropy": (tokens.weights * entropies).sum(), "weight": tokens.weights.sum()}
        if tokens.reference_logprobs is not None:
            drawn = tokens.weights if tokens.kl_weights is None else tokens.kl_weights
            counted["reference_weight"] = drawn.sum()
        return loss, {**metrics, **counted}

    def _lessons_in_step(self, lessons: Batch | None) -> list[Pass]:
        """The lessons as passes, padded so that every rank makes the same ones."""
        if lessons is None:
            return []
        most = max(1, token_scores.CHUNK_LOGITS // self.model.config.get_text_config().vocab_size)
        shared, limit = self.scorer.shares_prompts, self.microbatch_tokens
        return self._in_step(lesson_passes(lessons, limit, most, self.ranks.device, shared))

    def _lesson(self, taught: Pass) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        if self.lesson_loss is None:
            raise ValueError("lessons for a learner that was made without a loss for them")
        loss, metrics = lesson_loss(self.engine, taught, self.lesson_loss, self.temperature)
        return loss, {f"{_OF_LESSONS}{name}": value for name, value in metrics.items()}

    def _weightless(self) -> Pass:
        zero, sums = np.zeros(1), np.array([[0.0, 1.0, 0.0, 0.0]])
        valued = {"values": zero, "value_targets": zero, "value_weights": zero} if self.valued else {}
        return weightless(
            self.ranks.device,
            reference_logprobs=np.zeros(1, np.float32) if self.algorithm.kl_coefficient else None,
            trajectory_sums=sums if self.algorithm.whole_trajectories else None,
            **valued,
        )


def _leave_out_second_names(scorer: torch.nn.Module, state: dict[str, Any], prefix: str, _: object) -> None:
    """Keep weights that have several names out of checkpoints, except under their first name. The output
    embeddings belong to the model and to the scorer, and tied ones to the input embeddings too; DeepSpeed
    leaves out untrained weights under one of their names only."""
    first = {name for name, _weight in scorer.named_parameters()}
    for name, _weight in scorer.named_parameters(remove_duplicate=False):
        if name not in first:
            del state[prefix + name]


def read_configuration(name: str) -> dict[str, Any]:
    """The DeepSpeed configuration of ``infra/deepspeed`` with this name.

    Raises:
        ValueError: no configuration has this name; the message lists all names.
    """
    path = DEEPSPEED / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in DEEPSPEED.glob("*.json")))
        raise ValueError(f"training.deepspeed is {name!r}; allowed: {known}")
    configuration: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return configuration
