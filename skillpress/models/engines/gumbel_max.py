"""The Gumbel-max draw: the token whose log-probability plus noise is largest, without an array of noise.

The noise of token v is -log(-log u), where u is a hash of the row's stream and v. :func:`gumbel` defines it.
Its operations write and read arrays, some 390 bytes a logit in all. Two other forms give the same tokens:

    CUDA   a Triton kernel computes hash, noise, sum and maximum in registers (``gumbel_kernel.py``)
    CPU    numba computes the hash in a loop, and noise only for the few tokens that can win

The loop: token v has the largest sum if -log(u) / p is least. That is at least (1 - u) / p, which needs no
logarithm and is computed first, in float32. A token whose bound exceeds another token's exact value, with a
margin for rounding, cannot win.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.skills.compiled import COMPILES, compiled

GOLDEN = 0x9E3779B97F4A7C15
"""SplitMix64's increment from one position to the next."""
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""SplitMix64's shifts and factors."""
NOISE_VALUES = {"cpu": 1 << 18, "gpu": 1 << 24}
"""Values at a time, by kind of device: on a CPU as many as stay in its cache; on a GPU without the kernel,
half a GiB of noise and intermediate results."""
BLOCK = 1024
"""Tokens that the loop computes together."""
MARGIN = 1.0001
"""More than the rounding error of a product of three float32 numbers."""

Draw = Callable[[torch.Tensor, NDArray[np.uint64]], torch.Tensor]
"""A function from [rows, vocabulary] float32 log-probabilities and [rows] streams to [rows] tokens."""


def first_of_race(logprobs: torch.Tensor, streams: NDArray[np.uint64]) -> torch.Tensor:
    """[rows] tokens with the largest log-probability plus noise; of equal sums the smallest token.

    Args:
        logprobs: [rows, vocabulary], float32.
        streams: [rows], the SplitMix64 streams of the noise.
    """
    device = logprobs.device
    if device.type == "cpu" and COMPILES:
        return by_loop(logprobs, streams)
    kernel = None
    if device.type == "cuda" and find_spec("triton"):
        from skillpress.models.engines.gumbel_kernel import kernel_of

        kernel = kernel_of(device)
    return (kernel or by_definition)(logprobs, streams)


def by_definition(logprobs: torch.Tensor, streams: NDArray[np.uint64]) -> torch.Tensor:
    """The draw of :func:`first_of_race` on any device, by arrays of noise."""
    rows = max(1, NOISE_VALUES["cpu" if logprobs.device.type == "cpu" else "gpu"] // logprobs.shape[1])
    parts = zip(logprobs.split(rows), as_tensor(streams, logprobs.device).split(rows), strict=True)
    return torch.cat([(part + gumbel(own, part.shape[1])).argmax(dim=-1) for part, own in parts])


def gumbel(streams: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """[rows, vocabulary] float64 standard Gumbel noise -log(-log u).

    The uniform numbers u = (n + 1/2) / 2^52 are exact and never 0 or 1, so a token's probability is accurate
    to 2^-52.

    Args:
        streams: [rows] int64; n of token v is the SplitMix64 value of the row's stream at position v.
    """
    tokens = torch.arange(1, vocabulary + 1, device=streams.device)
    z = streams[:, None] + tokens * signed(GOLDEN)  # int64 products wrap, as SplitMix64's do
    for shift, factor in MIXING:
        z ^= _shifted(z, shift)
        z *= signed(factor)
    z ^= _shifted(z, 31)
    uniform = _shifted(z, 12).double().add_(0.5).mul_(2.0**-52)
    return uniform.log_().neg_().log_().neg_()


def by_loop(logprobs: torch.Tensor, streams: NDArray[np.uint64]) -> torch.Tensor:
    """The draw of :func:`first_of_race` on a CPU, by numba."""
    tokens = np.zeros(len(streams), np.int64)
    blocks = -(-logprobs.shape[1] // BLOCK)
    memory = np.empty(blocks * BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(blocks, np.int32)
    _loop(logprobs.detach().contiguous().numpy(), streams, tokens, memory)
    return torch.from_numpy(tokens)


# numba takes these as constants.
_A, _B, _C, _TWELVE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
_STEP, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(MIXING[0][1]), np.uint64(MIXING[1][1])
_LARGEST = np.uint64((1 << 52) - 1)
_ZERO, _HALF, _MOST = np.float32(0), np.float32(0.5), np.float32(120)
_LOG2E = np.float32(1.4426950408889634)
_P0, _P1, _P2, _P3, _P4 = (np.float32(c) for c in (1.0000026, 0.69300384, 0.24144275, 0.05201146, 0.01353417))
"""2^f for f from 0 to 1, within 2.6e-6."""


@compiled
def _loop(
    logprobs: NDArray[np.float32],
    streams: NDArray[np.uint64],
    tokens: NDArray[np.int64],
    memory: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]],
) -> None:
    """Write each row's token; ``memory`` is for a row's bounds, a block's powers of 2, and least bounds."""
    bounds, powers, least = memory
    # Positive floats are ordered as the integers with their bits, whose minimum is computed faster.
    bits = bounds.view(np.int32)
    exact = np.empty(1, np.float32)
    for row in range(len(logprobs)):
        own, stream = logprobs[row], streams[row]
        for block in range(len(least)):
            first = block * BLOCK
            part = own[first : first + BLOCK]
            _bound(part, stream + np.uint64(first) * _STEP, bounds[first : first + BLOCK], powers)
            smallest = bits[first]
            for bound in bits[first : first + len(part)]:
                smallest = min(smallest, bound)
            least[block] = smallest
        shortest = int(np.argmin(least)) * BLOCK
        shortest += int(np.argmin(bits[shortest : min(shortest + BLOCK, len(own))]))
        exact[0] = _time(stream, shortest) * math.exp(-np.float64(own[shortest])) * 2.0**52 * MARGIN
        limit = exact.view(np.int32)[0]
        best = -np.inf
        for block in range(len(least)):
            if least[block] > limit:
                continue
            for v in range(block * BLOCK, min((block + 1) * BLOCK, len(own))):
                if bits[v] <= limit:
                    total = np.float64(own[v]) - math.log(_time(stream, v))
                    if total > best:
                        best = total
                        tokens[row] = v


@compiled
def _bound(
    logprobs: NDArray[np.float32],
    stream: np.uint64,
    bounds: NDArray[np.float32],
    powers: NDArray[np.float32],
) -> None:
    """Write 2^52 (1 - u) / p of a block's tokens; ``stream`` is the row's, advanced to the block."""
    exponents = powers.view(np.int32)
    # 1 / p = 2^y, at most 2^120: a less likely token loses to the most likely one anyway. Whole powers first,
    # in a loop of their own: the compiler vectorises both.
    for v in range(len(logprobs)):
        y = min(max(-logprobs[v] * _LOG2E, _ZERO), _MOST)
        exponents[v] = (np.int32(y) + np.int32(127)) << np.int32(23)
    for v in range(len(logprobs)):
        z = stream + np.uint64(v + 1) * _STEP
        z = (z ^ (z >> _A)) * _FIRST
        z = (z ^ (z >> _B)) * _SECOND
        z = (z ^ (z >> _C)) >> _TWELVE
        y = min(max(-logprobs[v] * _LOG2E, _ZERO), _MOST)
        f = y - np.float32(np.int32(y))
        power = (((_P4 * f + _P3) * f + _P2) * f + _P1) * f + _P0
        bounds[v] = (np.float32(np.int64(_LARGEST - z)) + _HALF) * power * powers[v]


@compiled
def _time(stream: np.uint64, v: int) -> float:
    """-log u of a token."""
    z = stream + np.uint64(v + 1) * _STEP
    z = (z ^ (z >> _A)) * _FIRST
    z = (z ^ (z >> _B)) * _SECOND
    n = np.int64((z ^ (z >> _C)) >> _TWELVE)
    return -math.log((np.float64(n) + 0.5) * 2.0**-52)


def as_tensor(streams: NDArray[np.uint64], device: torch.device) -> torch.Tensor:
    """The streams as int64 with the same bits: torch computes little with uint64."""
    return torch.from_numpy(streams.view(np.int64)).to(device)


def signed(value: int) -> int:
    """The int64 with the same bits as an unsigned number."""
    return value - (1 << 64) if value >> 63 else value


def _shifted(values: torch.Tensor, places: int) -> torch.Tensor:
    """Bits moved to the right, filled with zeros as for unsigned numbers."""
    return (values >> places).bitwise_and_((1 << (64 - places)) - 1)
