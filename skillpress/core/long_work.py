"""How Python and the C library treat memory in a process that imports much and computes for minutes."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from skillpress.core.waiting import waiting

KEPT_BYTES = 1 << 28
"""Freed bytes that stay with the process, and the size of the largest array in them. The logits of a chunk
(``token_scores.py``) are half as large."""
COLLECTED_AFTER = (10_000, 20, 50)
"""The garbage collector's thresholds during long work; Python's own are 700, 10 and 10."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The numbers of these options in glibc's malloc.h."""


@contextmanager
def importing(packages: str) -> Iterator[None]:
    """The process waits for imports within the block, and the garbage collector is off.

    What modules make is not garbage, and looking for it took a quarter of the imports' time.
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
    """The garbage collector ignores, within the block, all objects that exist now, such as those of imports,
    and runs less often. Freed memory is used again, also after the block.

    torch and transformers make a million objects, and each full collection visits them. Collections took a
    tenth of the default training's CPU time; within the block they take one percent.
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

    By default it returns the memory of large tensors at once, and the kernel clears pages for the next one.
    This took a tenth of the default training's time in one process; in two, with smaller tensors, little.
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # Before glibc 2.35 the first is refused. The second alone would fix the limit at 128 KiB.
    return bool(change(_MMAP_THRESHOLD, KEPT_BYTES) and change(_TRIM_THRESHOLD, KEPT_BYTES))
