"""What a library imports because it is installed, and this process does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unneeded(*packages: str) -> Iterator[None]:
    """Inside, libraries find that these packages are not installed, unless they are imported already."""
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
    """Inside, ``torch.compile`` returns its function as it is, and does not import the compiler (a second).

    What was compiled before, and compiles when it is first called, is not affected after the block.
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
