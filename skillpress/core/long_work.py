"""How Python and the C library treat memory in a process that imports much and computes for minutes."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from skillpress.core.waiting import waiting

KEPT_BYTES = 1 << 28
"""Freed memory that stays with the process, and the largest array that is part of it. The logits of a chunk
(``token_scores.py``) are half as large."""
COLLECTED_AFTER = (10_000, 20, 50)
"""Python's thresholds of collections during long work; by default 700, 10 and 10."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The numbers of these options in glibc's malloc.h."""


@contextmanager
def importing(packages: str) -> Iterator[None]:
    """The process waits for the imports within the block, in which the garbage collector is off.

    What modules make is no garbage: looking for it was a quarter of the imports' time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        with waiting(f"importing {packages}"):
            yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def long_work() -> Iterator[None]:
    """Inside, the garbage collector passes over all objects that exist now, such as what imports have made,
    and looks less often for others. Freed memory is used again, also afterwards.

    After torch and transformers the objects are a million, which each full collection visits. In the default
    training all collections took a tenth of the processor's time; so they take one percent.
    """
    before = gc.get_threshold()
    keep_freed_memory()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory; returns False for other C libraries, whose behaviour stays as it is.

    It would give the memory of large tensors back at once, and the kernel would clear the next one's pages
    again: in one process a tenth of the time of the default training, in two, with smaller tensors, little.
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # Before glibc 2.35 the first is refused. The second alone would fix the limit at 128 KiB.
    return bool(change(_MMAP_THRESHOLD, KEPT_BYTES) and change(_TRIM_THRESHOLD, KEPT_BYTES))
