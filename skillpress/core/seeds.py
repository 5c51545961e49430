"""Every random choice is a pure function of the experiment's seed and of *where* it is made.

No generator is passed around: the sample of step 3 of rollout 5 of task ``x`` at training step 17
comes from ``derive(seed, "sample", 17, "x", 5, 3)``. A run that resumes therefore has no generator
to restore, the rows of a batch do not share one, and two processes never draw the same numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np


def derive(*parts: int | str) -> int:
    """A 63-bit seed from parts that identify a place in the experiment (BLAKE2b of their text)."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*parts: int | str) -> np.random.Generator:
    """A NumPy generator seeded by :func:`derive` of the same parts."""
    return np.random.default_rng(derive(*parts))
