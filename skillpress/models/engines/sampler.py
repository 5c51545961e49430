"""Draw tokens so that a row's sample depends only on its own seed.

A row has no generator: its t-th token maximises log-probability plus Gumbel noise over the vocabulary, and
the noise of token v is a hash of (seed, t, v). The draw does not depend on the other rows, their order, or
padding of the vocabulary. But a different batch rounds the logits differently, which can swap the two largest
sums. This is rarer than for a sampler that looks up a uniform number in the cumulative distribution: there,
each boundary between two tokens moves with all tokens before it (``benchmarks/draws.py``).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.engine import Sampling
from skillpress.models.engines.gumbel_max import GOLDEN, MIXING, NOISE_VALUES, first_of_race


def draw(
    logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample one token per row.

    Args:
        logits: [rows, vocabulary], any float type.
        sampling: temperature, top-p, top-k.
        seeds: [rows], one seed per row.
        position: position of the token in the response, from 0.

    Returns:
        ([rows] token ids, [rows] float32 log-probabilities under the distribution drawn from: after
        temperature and after renormalising over the tokens that top-p and top-k keep).
    """
    if sampling.temperature == 0:
        tokens = logits.argmax(dim=-1)
        # The distribution has a single token, so its log-probability is 0.
        return tokens, torch.zeros(len(tokens), device=logits.device)
    streams = streams_of(seeds, position)
    # On a CPU by as many rows as stay in its cache. A GPU loses more by more launches.
    rows = max(1, NOISE_VALUES["cpu"] // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    found = []
    for first in range(0, len(logits), rows):
        part = drawn_from(logits[first : first + rows], sampling)
        drawn = first_of_race(part, streams[first : first + rows])
        found.append((drawn, part.gather(1, drawn[:, None]).squeeze(1)))
    return torch.cat([drawn for drawn, _ in found]), torch.cat([own for _, own in found])


def drawn_from(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """[rows, vocabulary] float32 log-probabilities of the distribution that :func:`draw` uses: after
    temperature, and after renormalising over the tokens that top-p and top-k keep. Temperature 0 keeps only
    the largest."""
    logits = logits.float()
    if sampling.temperature == 0:
        none = torch.full_like(logits, -torch.inf)
        return none.scatter_(-1, logits.argmax(dim=-1, keepdim=True), 0.0)
    if sampling.temperature != 1:
        logits = logits / sampling.temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    if sampling.top_k or sampling.top_p < 1:
        logprobs = torch.log_softmax(_keep(logprobs, sampling), dim=-1)
    return logprobs


def _keep(logprobs: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Log-probabilities, with -inf for tokens that top-k and then top-p drop."""
    # Stable: of equal tokens the one with the smaller id stays, on every device.
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    if sampling.top_k:
        ordered[:, sampling.top_k :] = -torch.inf
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    # By the sum *before* a token, so the token that crosses top-p stays, and at least one does.
    ordered = ordered.masked_fill(before >= sampling.top_p, -torch.inf)
    return torch.empty_like(ordered).scatter_(1, order, ordered)


def streams_of(seeds: NDArray[np.uint64], position: int) -> NDArray[np.uint64]:
    """[rows] SplitMix64 of each row's seed at a position."""
    with np.errstate(over="ignore"):
        z = seeds + np.uint64(position + 1) * np.uint64(GOLDEN)
        for shift, factor in MIXING:
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    mixed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed
