"""The start policy, which a KL term pulls towards: a copy, or the model without its adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from transformers import PreTrainedModel

from skillpress.core.columns import members
from skillpress.core.logprobs import Logprobs
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import choose_scorer
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.reference_memory import stays_on_gpu
from skillpress.training.loop.scoring_passes import ScoringPasses, alone
from skillpress.training.loop.update import UpdatePart


class Reference(UpdatePart):
    """The start policy's log-probabilities of samples; it is kept in no checkpoint."""

    def __init__(
        self, model: PreTrainedModel, adapter: LoraAdapter | None = None, sleeps: bool = False
    ) -> None:
        """Copy the current model; a learner must not have it yet. A model with an adapter needs no copy.

        A small copy stays on its device (:func:`stays_on_gpu`). A larger one stays in the host's memory: a
        GPU gets its weights while it scores, and copies none back.
        """
        self._adapter = adapter
        self.columns = {"reference_logprobs": np.zeros(1, np.float32)}
        if adapter is None:
            self._scorer = choose_scorer(copy_model(model)).requires_grad_(False)
            size = sum(weight.nbytes for weight in _tensors(self._scorer))
            if model.device.type != "cpu" and not stays_on_gpu(size, _memory(model.device), sleeps):
                for weight in _tensors(self._scorer):
                    # Pinned memory is copied several times as fast, and the host need not wait.
                    weight.data = weight.data.to("cpu").pin_memory()

    def prepare(self, shares: Sequence[Batch], scoring: ScoringPasses) -> Sequence[Batch]:
        """The updates' samples with the start policy's log-probabilities. If only some samples are drawn for
        the KL term (``kl_share.py``), no others are scored."""
        drawn = [
            np.arange(len(share)) if share.kl_factors is None else np.flatnonzero(share.kl_factors)
            for share in shares
        ]
        few = self._logprobs([share.cut(rows) for share, rows in zip(shares, drawn, strict=True)], scoring)
        found = []
        for share, rows, logprobs in zip(shares, drawn, few, strict=True):
            reference = np.full_like(share.logprobs, np.nan)
            # Scores that were not drawn stay NaN: a loss that reads one is NaN, and not wrong in silence.
            reference[members(rows, share.tokens)] = logprobs
            found.append(replace(share, reference_logprobs=reference))
        return found

    def _logprobs(self, parts: Sequence[Batch], scoring: ScoringPasses) -> list[Logprobs]:
        """[tokens] of each part. A copy needs no communication, since every rank has one."""
        if self._adapter is not None:
            with self._adapter.switched_off():
                return [scoring.logprobs(part) for part in parts]
        shared = self._scorer.shares_prompts
        own = replace(scoring, score=self._scorer, shared=shared, valued=False, in_step=alone)
        with _lent(self._scorer, scoring.device):
            return [own.logprobs(part) for part in parts]


def _memory(gpu: torch.device) -> int:
    """Bytes of its memory."""
    return torch.cuda.get_device_properties(gpu).total_memory


def _tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    """All weights and buffers, each once."""
    return [*module.parameters(), *module.buffers()]


@contextmanager
def _lent(module: torch.nn.Module, device: torch.device | str) -> Iterator[None]:
    """The module's weights are on the device within the block; afterwards they are the same tensors as
    before."""
    tensors = _tensors(module)
    kept = [each.data for each in tensors]
    for each in tensors:
        each.data = each.data.to(device, non_blocking=True)
    try:
        yield
    finally:
        for each, data in zip(tensors, kept, strict=True):
            each.data = data
