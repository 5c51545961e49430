"""Loops compiled to machine code by numba, kept on disk between processes.

The first call of a function on a machine compiles it (about 20 s for all of this package); later
processes load it from the cache in a fraction of a second. numba notices when the file of a function
has changed but not when a file it calls into has, and would then run stale code. So the cache lives
in a folder that is named by the content of this whole package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function, compiled at its first call; where the folder is read-only, numba's own cache serves."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_cache_folder())
    try:
        return cast(Function, numba.njit(cache=True)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def _cache_folder() -> Path:
    package = Path(__file__).parent
    content = blake2b(digest_size=8)
    for source in sorted(package.glob("*.py")):
        content.update(source.name.encode() + b"\0" + source.read_bytes())
    return package / "__pycache__" / f"numba-{content.hexdigest()}"
