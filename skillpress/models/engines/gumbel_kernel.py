"""The Gumbel-max draw as one Triton kernel: a logit is read once, and hash, noise, sum and maximum stay in
registers. Only CUDA devices import it.

It never ran on a GPU. Tests carry out its code with numpy in place of Triton, and with Triton's interpreter
where that is installed. So :func:`kernel_of` compares it with the definition before a device uses it.
"""

from __future__ import annotations

import logging
from functools import cache
from subprocess import SubprocessError
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from skillpress.models.engines.gumbel_max import GOLDEN, MIXING, Draw, as_tensor, by_definition, signed

_log = logging.getLogger(__name__)

BLOCK = 1024
"""Tokens that a program computes together."""
PROGRAMS = 512
"""Rows are divided among several programs if there are fewer programs than this: a GPU has some 130
processors."""
TRIED = (3, 70_001)
"""Rows and tokens on which the kernel is compared with the definition."""


def first_sums(
    logprobs: Any, streams: Any, sums: Any, tokens: Any, vocabulary: Any, width: Any,
    GOLDEN: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
) -> None:  # fmt: skip
    """The kernel: the largest sum, and its token, among ``width`` tokens of a row. It computes what
    ``gumbel_max.gumbel`` does, with int64 too."""
    row, part = tl.program_id(0), tl.program_id(1)
    stream = tl.load(streams + row)
    best = tl.full([BLOCK], float("-inf"), tl.float64)
    at = tl.full([BLOCK], 0, tl.int64)
    # int64: rows times vocabulary may exceed 2^31.
    own = logprobs + row.to(tl.int64) * vocabulary
    for start in range(part * width, part * width + width, BLOCK):
        token = (start + tl.arange(0, BLOCK)).to(tl.int64)
        z = stream + (token + 1) * GOLDEN
        z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * FIRST
        z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * SECOND
        z = z ^ ((z >> 31) & 0x1FFFFFFFF)
        uniform = (((z >> 12) & 0xFFFFFFFFFFFFF).to(tl.float64) + 0.5) * 2.220446049250313e-16
        logprob = tl.load(own + token, mask=token < vocabulary, other=float("-inf"))
        total = logprob.to(tl.float64) - tl.log(-tl.log(uniform))
        at = tl.where(total > best, token, at)
        best = tl.where(total > best, total, best)
    largest = tl.max(best, axis=0)
    place = row * tl.num_programs(1) + part
    tl.store(sums + place, largest)
    # Of equal sums the smallest token, as argmax takes.
    tl.store(tokens + place, tl.min(tl.where(best == largest, at, vocabulary), axis=0))


class Kernel:
    """Draws by the kernel."""

    def __init__(self, kernel: Any) -> None:
        """``kernel``: :func:`first_sums`, compiled or interpreted."""
        self._kernel = kernel

    def __call__(self, logprobs: torch.Tensor, streams: NDArray[np.uint64]) -> torch.Tensor:
        """See ``gumbel_max.first_of_race``."""
        rows, vocabulary = logprobs.shape
        blocks = -(-vocabulary // BLOCK)
        parts = min(blocks, -(-PROGRAMS // rows))
        width = -(-blocks // parts) * BLOCK
        sums = torch.empty(rows, parts, dtype=torch.float64, device=logprobs.device)
        tokens = torch.empty(rows, parts, dtype=torch.int64, device=logprobs.device)
        self._kernel[(rows, parts)](
            logprobs.contiguous(), as_tensor(streams, logprobs.device), sums, tokens,
            vocabulary=vocabulary, width=width, GOLDEN=signed(GOLDEN), FIRST=signed(MIXING[0][1]),
            SECOND=signed(MIXING[1][1]), BLOCK=BLOCK,
        )  # fmt: skip
        # argmax takes the first of equal sums, and so the smallest token.
        return tokens.gather(1, sums.argmax(dim=1, keepdim=True)).squeeze(1)


@cache
def kernel_of(device: torch.device) -> Draw | None:
    """The kernel, compiled and compared with the definition on this device. If it does not compile or
    differs: None, and a warning."""
    kernel = Kernel(triton.jit(first_sums, do_not_specialize=["vocabulary", "width"]))
    try:
        why = why_not(kernel, device)
    except (RuntimeError, OSError, SubprocessError, triton.TritonError) as error:
        why = f"{type(error).__name__}: {error}"
    if why is not None:
        _log.warning("engine local draws tokens without its Triton kernel, which is slower: %s", why)
        return None
    return kernel


def why_not(kernel: Draw, device: torch.device) -> str | None:
    """How the kernel differs from the definition on made-up rows; None if it does not."""
    random = np.random.default_rng(0)
    logits = torch.from_numpy(random.normal(scale=3, size=TRIED)).float().to(device)
    streams = random.integers(0, 2**64, TRIED[0], dtype=np.uint64)
    logprobs = torch.log_softmax(logits, dim=-1)
    found, expected = kernel(logprobs, streams).tolist(), by_definition(logprobs, streams).tolist()
    return None if found == expected else f"it drew {found} in place of {expected}"
