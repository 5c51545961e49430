"""Makes tokens for a loss in one line."""

from __future__ import annotations

import torch

from skillpress.training.algorithms.algorithm import ScoredTokens


def scored(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    weights: torch.Tensor,
    reference_logprobs: torch.Tensor | None = None,
    lengths: list[int] | None = None,
) -> ScoredTokens:
    """Tokens of responses of these ``lengths``; None means a single response."""
    counts = torch.tensor([len(logprobs)] if lengths is None else lengths)
    return ScoredTokens(
        logprobs=logprobs,
        old_logprobs=old_logprobs,
        advantages=advantages,
        weights=weights,
        response=torch.repeat_interleave(torch.arange(len(counts)), counts),
        reference_logprobs=reference_logprobs,
    )
