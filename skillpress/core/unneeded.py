"""Keeps libraries from importing installed packages that this process does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unneeded(*packages: str) -> Iterator[None]:
    """Libraries do not find these packages within the block, unless they are imported already."""
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in packages if name not in modules]
    modules.update(dict.fromkeys(hidden))  # None is Python's mark of a module that cannot be imported
    try:
        yield
    finally:
        for name in hidden:
            modules.pop(name, None)


@contextmanager
def without_dynamo() -> Iterator[None]:
    """Within the block ``torch.compile`` returns its function unchanged, without importing the compiler (a
    second). Functions wrapped before the block still compile if they are first called after it.
    """
    before = os.environ.get("TORCHDYNAMO_DISABLE")
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TORCHDYNAMO_DISABLE"]
        else:
            os.environ["TORCHDYNAMO_DISABLE"] = before
