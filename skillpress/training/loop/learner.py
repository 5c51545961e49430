"""The optimizer's side of training: DeepSpeed around a model, and updates made of parts.

The learner owns the weights that are trained; engines sample from copies that ``weights`` refreshes. An
update is one optimizer step over any number of passes through the model. Its parts (``update.py``) bring the
passes and compute their losses. Collective operations need all ranks, and ZeRO-3 has some within each pass.
So all ranks make the same number of passes: a rank with fewer adds weightless ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import PreTrainedModel

from skillpress.core.columns import Indices
from skillpress.core.errors import StorageError
from skillpress.core.logprobs import Logprobs
from skillpress.core.storage import named_disk_errors
from skillpress.core.unneeded import without_dynamo
from skillpress.models.policy.agreement import check_agreement, check_family
from skillpress.models.policy.compiled_layers import compile_layers
from skillpress.models.policy.lora import LoraAdapter, SavedAdapter
from skillpress.models.policy.precision import require_masters
from skillpress.models.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.lessons import Lessons
from skillpress.training.loop.measured import Measured, Totals
from skillpress.training.loop.model_pass import Pass, weightless
from skillpress.training.loop.optimizer import AdamW
from skillpress.training.loop.scoring_passes import ScoringPasses, by_sample
from skillpress.training.loop.update import Update, UpdatePart
from skillpress.training.loop.value_head import ValuedScorer

COMPARED = 4
"""Number of real samples whose scores are compared with the model's own before the first update."""


@dataclass(frozen=True)
class Passing:
    """How samples pass through the model."""

    temperature: float
    """The sampling temperature, at which log-probabilities are computed."""
    token_limit: int
    """The most tokens of one forward pass; a longer sample has a pass of its own."""
    gradient_checkpointing: bool = False
    """Drop activations in the forward pass and compute them again."""
    compile: Literal["auto", "always", "never"] = "never"
    """Whether torch compiles the layers; ``auto`` does on GPUs."""


class Learner:
    """A policy in training."""

    def __init__(
        self,
        model: PreTrainedModel,
        parts: Sequence[UpdatePart],
        optimizer: AdamW,
        passing: Passing,
        ranks: Ranks,
        adapter: LoraAdapter | None = None,
    ) -> None:
        """Pass the model to DeepSpeed, which trains it in place.

        Args:
            parts: the parts of an update; a head that a part has is trained too.
            adapter: the adapter in the model, which is trained instead of its weights; None trains all
                weights.

        Raises:
            ValueError: the optimizer's configuration does not exist.
            PolicyError: the scorer cannot reproduce the model's log-probabilities, or the configuration would
                round its updates to 0.
        """
        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        settings = optimizer.deepspeed
        require_masters(next(model.parameters()).dtype, optimizer.configuration, settings)
        self.parts, self.ranks, self.adapter = parts, ranks, adapter
        # Not train(): dropout would change the policy at every pass, and every ratio would be wrong.
        self.model = model.eval()
        if passing.gradient_checkpointing:
            checkpoint_layers(model)
        check_family(model)
        self._compared = False
        self.scorer = scorer = choose_scorer(model)
        if passing.compile == "always" or (passing.compile == "auto" and model.device.type == "cuda"):
            compile_layers(scorer, settings.get("zero_optimization", {}).get("stage", 0))
        if adapter is not None:
            saved: torch.nn.Module = scorer
            saved.register_state_dict_post_hook(_leave_out_second_names)
        head = next((part.head for part in parts if part.head is not None), None)
        module = scorer if head is None else ValuedScorer(scorer, head)
        trained = [weight for weight in scorer.parameters() if weight.requires_grad]
        self._settings, self._optimizer = optimizer, optimizer.over(trained)
        if head is not None:
            self._optimizer.add_param_group({"params": list(head.parameters()), "factor": head.rate})
        self.engine: Any
        with without_dynamo():  # to know an optimizer of its own, DeepSpeed imports one that is compiled
            self.engine, *_ = deepspeed.initialize(model=module, optimizer=self._optimizer, config=settings)
        # Imported here: it imports DeepSpeed, which takes seconds.
        from skillpress.training.loop.flat_gradients import FlatGradients

        FlatGradients.adopt(self.engine.optimizer)
        self.scoring = ScoringPasses(
            score=self.engine,
            temperature=passing.temperature,
            token_limit=passing.token_limit,
            device=ranks.device,
            shared=scorer.shares_prompts,
            valued=head is not None,
            in_step=lambda passes: self._in_step([passes])[0],
        )

    def begin_step(self, step: int) -> None:
        """Set the learning rate of training step ``step`` (from 1) for the updates that follow."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._settings.rate(step) * group.get("factor", 1.0)

    def judge(self, batch: Batch, rows: Indices) -> Batch:
        """The batch with the columns that its advantages need, such as values; all ranks call this.

        Args:
            rows: the steps at which something was sampled.
        """
        for part in self.parts:
            batch = part.judge(batch, rows, self.scoring, self.ranks.sum)
        return batch

    def prepare(self, shares: Sequence[Batch]) -> Sequence[Batch]:
        """The samples of a step's updates with what must be computed before the first of them, such as the
        reference's log-probabilities; all ranks call this with equally many."""
        for part in self.parts:
            shares = part.prepare(shares, self.scoring)
        return shares

    def update(
        self,
        samples: Batch,
        lessons: Batch | None = None,
        compare: Callable[[Batch, Logprobs], None] | None = None,
    ) -> Measured:
        """One optimizer step, or no step if no rank has a pass. Returns its measurements over all ranks.

        Args:
            samples: as :meth:`judge` and :meth:`prepare` return them. If the loss asks for whole
                trajectories, they are whole.
            lessons: lessons of the same optimizer step; None on all ranks or on no rank.
            compare: the learner calls it with the samples and their log-probabilities [tokens] under the
                weights before the update, if there is an update. If it raises an error, no weight has
                changed. All ranks pass one, or none does.
        """
        if lessons is not None and not any(isinstance(part, Lessons) for part in self.parts):
            raise ValueError("lessons were given, but no part of the learner is Lessons; add it to the parts")
        update = Update(samples, lessons)
        brought = self._in_step([part.passes(update, self.scoring) for part in self.parts])
        due = [(part, each) for part, some in zip(self.parts, brought, strict=True) for each in some]
        if not due:
            return Measured()
        self._compare(samples)
        totals = Totals()
        for number, (part, each) in enumerate(due, 1):
            last = number == len(due)
            # DeepSpeed would count passes up to a constant, but updates differ in their number of passes.
            self.engine.set_gradient_accumulation_boundary(last)
            loss, metrics = part.loss(each, update, self.scoring)
            # DeepSpeed averages gradients over the ranks, but the weights of this sum add up to 1 over all
            # ranks.
            self.engine.backward(loss * self.ranks.size)
            # After the last pass all samples are scored, and the optimizer has not changed a weight yet.
            if compare is not None and last:
                compare(samples, by_sample(samples, update.scored))
            # This changes weights at the boundary alone.
            self.engine.step()
            totals.add({**metrics, "loss": loss.detach()})
        sums, norm = totals.read(self.engine.get_global_grad_norm())
        return Measured.of(self.ranks.sum(sums), norm)

    def weights(self) -> dict[str, torch.Tensor]:
        """The policy's current weights, under the start policy's names; all ranks call this."""
        if self.adapter is not None:
            return self.adapter.merged(self._whole)
        # ``keep_vars``: only the parameters themselves know where ZeRO-3 keeps their parts.
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
            raise StorageError(f"{folder}: holds no DeepSpeed checkpoint; delete it to start again")
        strict = self.adapter is None  # untrained weights are there already
        self.engine.load_checkpoint(str(folder), tag="learner", load_module_strict=strict)

    def _whole(self, weight: torch.Tensor) -> torch.Tensor:
        """The full current weight. If ZeRO-3 has partitioned it, this is a copy."""
        import deepspeed

        if self.engine.zero_optimization_stage() < 3:
            return weight.detach()
        with deepspeed.zero.GatheredParameters([weight]):  # one at a time: never more than one copy
            return weight.detach().clone()

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
        check_agreement(self.model, [*pairs[: COMPARED - 1], *longest], self.scoring.token_limit)

    def _in_step(self, brought: Sequence[list[Pass]]) -> list[list[Pass]]:
        """The passes of each part, padded so that every rank makes the same ones through the model."""
        mine = [(len(passes), any(each.continued for each in passes)) for passes in brought]
        most = self.ranks.maximum([int(number) for each in mine for number in each])
        found = []
        for passes, count, continued in zip(brought, most[::2], most[1::2], strict=True):
            passes = passes + [self._weightless()] * (count - len(passes))
            found.append([each.with_continuations() for each in passes] if continued else passes)
        return found

    def _weightless(self) -> Pass:
        columns = {name: value for part in self.parts for name, value in part.columns.items()}
        return weightless(self.ranks.device, **columns)


def _leave_out_second_names(scorer: torch.nn.Module, state: dict[str, Any], prefix: str, _: object) -> None:
    """Keep weights that have several names out of checkpoints, except under their first name. The output
    embeddings belong to the model and to the scorer, and tied ones to the input embeddings too; DeepSpeed
    leaves out untrained weights under one of their names only."""
    first = {name for name, _weight in scorer.named_parameters()}
    for name, _weight in scorer.named_parameters(remove_duplicate=False):
        if name not in first:
            del state[prefix + name]
