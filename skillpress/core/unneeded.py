"""Packages that a library imports because they are installed, and that this process does not need."""

from __future__ import annotations

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
