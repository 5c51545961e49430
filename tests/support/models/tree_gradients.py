"""Responses whose prompts form trees, and a scorer's log-probabilities and gradients of them."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from skillpress.models.policy.agreement import example_pairs
from skillpress.models.policy.scoring import Scorer, pack_responses

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def branches(model: PreTrainedModel) -> list[Pair]:
    """Groups, a growing context with two branches, and a prompt that begins as another does."""
    rows = example_pairs(model)
    grown = rows[0][0] + rows[0][1] + (7, 8)
    return [*rows, (grown, (9, 4, 5)), (grown, (9, 4, 6, 3)), ((*rows[2][0][:-3], 3), (4, 4))]


def scored(scorer: Scorer, rows: list[Pair]) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities, and the gradients of all weights relative to the largest."""
    scorer.model.zero_grad()
    logprobs, _ = scorer(pack_responses(rows), 0.8)
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    found = torch.cat(
        [weight.grad.flatten() for weight in scorer.model.parameters() if weight.grad is not None]
    )
    return logprobs.detach(), found / found.abs().max()
