"""Loops compiled to machine code by numba, kept on disk between processes.

The first call of a function on a machine compiles it: 10 s for a greedy fit, 20 s for all of this package.
Later processes load it in milliseconds. By default numba keeps machine code beside the source and trusts the
file's time stamp. That misses changes in another file that the function calls into, and it compiles again in
every clone. Here the cache is one folder per user, named by the content of this package, so the code always
matches its source and is compiled once.

numba and its compiler take 200 MB, so the base layer of the package comes without them. There the same
functions run as plain Python: the results are equal to the last bit, and a log of a thousand traces takes
minutes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

from skillpress.core import waiting
from skillpress.core.storage import private_folder

try:
    import numba
except ImportError:
    numba = None

COMPILES = numba is not None
"""Whether functions are compiled."""

Function = TypeVar("Function", bound=Callable[..., Any])

if numba is not None:
    from numba.core import event

    class _Compiling(event.Listener):  # type: ignore[misc]  # numba has no types
        """Says that the process waits for the compiler."""

        def on_start(self, event: Any) -> None:
            waiting.begin("compiling loops, once on this machine")

        def on_end(self, event: Any) -> None:
            waiting.end()

    event.register("numba:compile", _Compiling())


def compiled(function: Function) -> Function:
    """The function, compiled at its first call with each set of types; unchanged without numba."""
    if numba is None:
        return function
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.ContentLocator"
    try:
        return cast(Function, numba.njit(cache=True)(function))
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


class ContentLocator:
    """Where numba keeps a function's machine code, and when that code is out of date.

    numba defines the interface (``NUMBA_CACHE_LOCATOR_CLASSES``).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._line = code.co_firstlineno
        # A function of another package calls none outside its own file.
        own = blake2b(Path(code.co_filename).read_bytes(), digest_size=8).hexdigest()
        self._stamp = f"{_fingerprint()}-{own}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> ContentLocator:
        """The locator of one function."""
        return cls(py_func)

    def get_cache_path(self) -> str:
        """The cache folder."""
        return str(_folder())

    def get_source_stamp(self) -> str:
        """The stamp of the sources that the machine code is valid for."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """The key that separates functions of the same name."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        _folder().mkdir(parents=True, exist_ok=True)


@cache
def _fingerprint() -> str:
    content = blake2b(digest_size=8)
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        content.update(source.name.encode() + b"\0" + source.read_bytes())
    return content.hexdigest()


@cache
def _folder() -> Path:
    """The folder in the user's cache, or among temporary files if the cache is not writable or not the
    user's: numba runs what it finds there."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "skillpress" / f"numba-{_fingerprint()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.stat()
        writable = os.access(folder, os.W_OK) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    except OSError:
        writable = False
    if writable:
        return folder
    return private_folder(Path(tempfile.gettempdir()) / f"skillpress-{os.getuid()}") / folder.name
