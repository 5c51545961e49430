"""Whether the start policy's copy stays on a GPU; the estimate of memory asks too, without torch."""

SHARE = 1 / 20
"""A copy up to this share of a GPU's memory stays there: 4 GB of 80. Qwen2.5-1.5B in bfloat16 takes 3.1 GB.
Such a copy would travel from the host in 0.1 to 0.2 s a step (computed for 16 to 32 GB/s)."""


def stays_on_gpu(size: int, memory: int, sleeps: bool) -> bool:
    """Whether a copy of ``size`` bytes stays on a GPU with ``memory`` bytes.

    Args:
        sleeps: whether the engine needs the memory that the learner does not (``EngineParameters``).
    """
    return not sleeps and size <= SHARE * memory
