"""Log-probabilities and entropies of tokens, from the hidden states before them, by chunks of tokens.

A vocabulary of 150,000 words makes a token's logits a hundred times larger than its hidden state. Their
softmax, its gradient and the entropy are each as large again. So they never exist for all tokens at once:
each chunk is scored and dropped. The backward pass scores it again and keeps only the gradients of hidden
states and of the output embeddings. This repeats the output embeddings' share of the forward pass. A batch
whose logits fit one chunk is scored in one piece, and nothing is computed twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from skillpress.models.policy.linear_layers import (
    gradient_of_weight,
    is_linear,
    linear,
    product,
    suits_onednn,
)
from skillpress.models.policy.logits import scaled_logits
from skillpress.models.policy.trained_rows import trained_rows, with_changes

CHUNK_LOGITS = 1 << 25
"""The most logits of a chunk: 128 MiB of float32, 223 tokens of a vocabulary of 150,000."""


Own = tuple[torch.Tensor, torch.Tensor]
"""Changes of some rows of the output embeddings, and the tokens of these rows (``trained_rows.py``)."""


class TokenScores(nn.Module):
    """The part of a model after its final hidden states, up to log-probabilities.

    Like the model, it owns the output embeddings' weight and trained rows (the same parameters, not copies).
    Under ZeRO-3 a weight is gathered for the module that owns it, here once for all chunks, so ranks may have
    different numbers of chunks.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Use the output embeddings. If they are more than a matrix and a bias (LoRA), all logits exist at
        once."""
        super().__init__()
        self._config: PretrainedConfig = model.config
        head = model.get_output_embeddings()
        self._plain = is_linear(head)
        if self._plain:
            self.weight, self.bias = head.weight, head.bias
        else:
            self.head = head
        self._trained = trained_rows(model)
        if self._trained is not None:
            self.rows = self._trained.output

    def forward(
        self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float, whole: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score tokens.

        Args:
            hidden: [tokens, width] final hidden states that predict them.
            targets: [tokens].
            temperature: divides the logits.
            whole: return whole distributions; only for few tokens, since all their logits exist at once.

        Returns:
            ([tokens] log-probabilities in nats, [tokens] entropies in nats), both float32; the entropies
            carry no gradient. With ``whole``, the first is [tokens, vocabulary].
        """
        own: Own | None = None
        if self._plain and self._trained is not None and self._trained.on:
            own = self._trained.changes(self.weight), self._trained.ids
        if whole:
            raw = _raw(hidden, self.weight, self.bias, own) if self._plain else self.head(hidden)
            logprobs = _distribution(self._config, raw, temperature)
            return logprobs, _entropies(logprobs)
        if not self._plain:
            return _scores(self._config, self.head(hidden), targets, temperature)
        rows = max(1, CHUNK_LOGITS // len(self.weight))
        if len(targets) <= rows:
            raw = _raw(hidden, self.weight, self.bias, own)
            return _scores(self._config, raw, targets, temperature)
        arguments = (hidden, self.weight, self.bias, *(own or (None, None)), targets)
        settings = (temperature, self._config, rows)
        logprobs, entropies = _Chunked.apply(*arguments, *settings)  # type: ignore[no-untyped-call]
        return logprobs, entropies


def _raw(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, own: Own | None
) -> torch.Tensor:
    """The result of the output embeddings."""
    raw = linear(hidden, weight, bias)
    return raw if own is None else with_changes(raw, hidden, *own)


def _scores(
    config: PretrainedConfig, raw: torch.Tensor, targets: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies from the result of the output embeddings."""
    logprobs = _distribution(config, raw, temperature)
    return _of(targets, logprobs), _entropies(logprobs)


@torch.no_grad()
def _entropies(logprobs: torch.Tensor) -> torch.Tensor:
    return -(logprobs.exp() * logprobs).sum(dim=-1)


def _distribution(config: PretrainedConfig, raw: torch.Tensor, temperature: float) -> torch.Tensor:
    """[tokens, vocabulary] log-probabilities."""
    return torch.log_softmax(scaled_logits(config, raw) / temperature, dim=-1)


def _of(targets: torch.Tensor, logprobs: torch.Tensor) -> torch.Tensor:
    return logprobs.gather(1, targets[:, None]).squeeze(1)


class _Chunked(torch.autograd.Function):
    """:func:`_scores` of one chunk of tokens after another, in both directions."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        changes: torch.Tensor | None,
        ids: torch.Tensor | None,
        targets: torch.Tensor,
        temperature: float,
        config: PretrainedConfig,
        rows: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        needed = (hidden, weight, bias, changes, ids, targets)
        ctx.save_for_backward(*needed)
        ctx.temperature, ctx.config, ctx.rows = temperature, config, rows
        logprobs = torch.empty(len(targets), dtype=torch.float32, device=hidden.device)
        entropies = torch.empty_like(logprobs)
        for part in _parts(len(targets), rows):
            raw = _raw(hidden[part], weight, bias, _own(changes, ids))
            logprobs[part], entropies[part] = _scores(config, raw, targets[part], temperature)
        ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, bias, changes, ids, targets = ctx.saved_tensors
        own, (of_hidden, of_weight, of_bias, of_own, *_) = _own(changes, ids), ctx.needs_input_grad
        hidden_gradient = torch.empty_like(hidden) if of_hidden else None
        # A sum over chunks in bfloat16 would round at every chunk.
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if of_weight else None
        bias_gradient = torch.zeros_like(bias, dtype=torch.float32) if of_bias else None
        own_gradient = torch.zeros_like(changes, dtype=torch.float32) if of_own else None
        for part in _parts(len(targets), ctx.rows):
            # A new leaf: the gradient stops at the logits, and the products below go on by hand.
            raw = _raw(hidden[part], weight, bias, own).requires_grad_()
            # A backward pass runs without gradients; this chunk is scored again with them.
            with torch.enable_grad():
                logprobs = _of(targets[part], _distribution(ctx.config, raw, ctx.temperature))
            (slope,) = torch.autograd.grad(logprobs, raw, gradient[part])
            # Their memory is as large as the gradient's, and the products do not need it.
            del raw, logprobs
            if hidden_gradient is not None:
                hidden_gradient[part] = product(slope, weight)
                if own is not None:
                    hidden_gradient[part] += slope[:, own[1]] @ own[0]
            if weight_gradient is not None:
                _add_product(weight_gradient, slope, hidden[part])
            if bias_gradient is not None:
                bias_gradient += slope.sum(dim=0, dtype=torch.float32)
            if own_gradient is not None:
                _add_product(own_gradient, slope[:, ids], hidden[part])
        return (
            hidden_gradient,
            None if weight_gradient is None else weight_gradient.to(weight.dtype),
            None if bias_gradient is None else bias_gradient.to(bias.dtype),
            None if own_gradient is None else own_gradient.to(changes.dtype),
            *(None,) * 5,
        )


def _own(changes: torch.Tensor | None, ids: torch.Tensor | None) -> Own | None:
    return None if changes is None or ids is None else (changes, ids)


def _parts(tokens: int, rows: int) -> list[slice]:
    return [slice(first, first + rows) for first in range(0, tokens, rows)]


def _add_product(total: torch.Tensor, slope: torch.Tensor, hidden: torch.Tensor) -> None:
    """total += slope^T hidden."""
    if slope.dtype == total.dtype and not suits_onednn(hidden, slope):
        total.addmm_(slope.T, hidden)  # without a second matrix of that size
    else:
        total += gradient_of_weight(slope, hidden)
