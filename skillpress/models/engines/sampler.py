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

GOLDEN = 0x9E3779B97F4A7C15
"""SplitMix64's increment from one position to the next."""
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""SplitMix64's shifts and factors."""
NOISE_VALUES = {"cpu": 1 << 18, "gpu": 1 << 24}
"""Noise values at a time, by kind of device: on a CPU as many as stay in its cache; on a GPU half a GiB with
all that is computed on the way. There each part costs some 22 launches, and with a CPU's number 1,024 rows of
49,152 tokens would be 205 parts."""


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
    logprobs = drawn_from(logits, sampling)
    # torch computes little with uint64; products of int64 have the same bits.
    streams = torch.from_numpy(_streams(seeds, position).view(np.int64)).to(logits.device)
    rows = max(1, NOISE_VALUES["cpu" if logits.device.type == "cpu" else "gpu"] // logits.shape[1])
    parts = zip(logprobs.split(rows), streams.split(rows), strict=True)
    tokens = torch.cat([(part + gumbel(own, part.shape[1])).argmax(dim=-1) for part, own in parts])
    return tokens, logprobs.gather(1, tokens[:, None]).squeeze(1)


def gumbel(streams: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """[rows, vocabulary] float64 standard Gumbel noise -log(-log u).

    The uniform numbers u = (n + 1/2) / 2^52 are exact and never 0 or 1, so a token's probability is accurate
    to 2^-52.

    Args:
        streams: [rows] int64; n of token v is the SplitMix64 value of the row's stream at position v.
    """
    tokens = torch.arange(1, vocabulary + 1, device=streams.device)
    z = streams[:, None] + tokens * _signed(GOLDEN)  # int64 products wrap, as SplitMix64's do
    for shift, factor in MIXING:
        z ^= _shifted(z, shift)
        z *= _signed(factor)
    z ^= _shifted(z, 31)
    uniform = _shifted(z, 12).double().add_(0.5).mul_(2.0**-52)
    return uniform.log_().neg_().log_().neg_()


def drawn_from(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """[rows, vocabulary] float32 log-probabilities of the distribution that :func:`draw` uses: after
    temperature, and after renormalising over the tokens that top-p and top-k keep. Temperature 0 keeps only
    the largest."""
    logits = logits.float()
    if sampling.temperature == 0:
        none = torch.full_like(logits, -torch.inf)
        return none.scatter_(-1, logits.argmax(dim=-1, keepdim=True), 0.0)
    logprobs = torch.log_softmax(logits / sampling.temperature, dim=-1)
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


def _streams(seeds: NDArray[np.uint64], position: int) -> NDArray[np.uint64]:
    """[rows] SplitMix64 of each row's seed at a position."""
    with np.errstate(over="ignore"):
        z = seeds + np.uint64(position + 1) * np.uint64(GOLDEN)
        for shift, factor in MIXING:
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    mixed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def _signed(value: int) -> int:
    """The int64 with the same bits as an unsigned number."""
    return value - (1 << 64) if value >> 63 else value


def _shifted(values: torch.Tensor, places: int) -> torch.Tensor:
    """Bits moved to the right, filled with zeros as for unsigned numbers."""
    return (values >> places).bitwise_and_((1 << (64 - places)) - 1)
