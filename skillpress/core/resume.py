"""Unfinished work: a process finds what its killed predecessor had done.

There is one folder per piece of work. Its name is a key over everything that decides the result (see
:func:`content_key`). Every file in it was written whole. The folder is cleared when all results of the work
are safely written elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SHARE_OF_SAVES = 20
"""The time between two saves is at least this many times the duration of a save."""
SECONDS_BETWEEN_SAVES = 20.0
"""Seconds between two quick saves, and so the most work that a kill can destroy."""
_CLEARED = ".cleared."
"""Prefix of the name of a folder that is being removed."""
_IGNORED = frozenset({"__pycache__"})
"""Folders whose contents affect no result."""


def content_key(values: Mapping[str, Any], inputs: Iterable[str | Path]) -> str:
    """A hash (20 hex digits) of values and of the full contents of files or folders.

    Raises:
        FileNotFoundError: an input does not exist.
    """
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for root in map(Path, inputs):
        for path in _files(root):
            digest.update(f"{root.name}/{path.relative_to(root).as_posix()}".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


def _files(root: Path) -> list[Path]:
    if not root.is_dir():
        return [root]
    found = (path for path in root.rglob("*") if not _IGNORED & set(path.parts))
    return sorted(path for path in found if path.is_file())


class ResumeStore:
    """The folder of one piece of work. It is made when the first part is written."""

    def __init__(self, root: str | Path, key: str) -> None:
        self.key, self.folder = key, Path(root) / key

    def of_rank(self, rank: int) -> ResumeStore:
        """The store of one of several processes for its own part of the work; cleared with this store."""
        return ResumeStore(self.folder, f"rank-{rank}")

    def part(self, kind: str, number: int) -> Path:
        """The path of part ``number`` of a kind; write it atomically."""
        return self.folder / f"{kind}-{number:08d}.parquet"

    def parts(self, kind: str) -> list[tuple[int, Path]]:
        """(number, file) of the existing parts of a kind, in order."""
        found = sorted(self.folder.glob(f"{kind}-*.parquet"))
        return [(int(path.stem.removeprefix(f"{kind}-")), path) for path in found]

    def span(self, kind: str, first: int, last: int) -> Path:
        """The path of a part that holds items ``first`` to ``last``; write it atomically."""
        return self.folder / f"{kind}-{first:08d}-{last:08d}.parquet"

    def spans(self, kind: str) -> list[tuple[int, Path]]:
        """(last item, file) of a kind's spans from item 1 to the first gap; later items are made again."""
        there: dict[int, tuple[int, Path]] = {}
        for path in sorted(self.folder.glob(f"{kind}-*-*.parquet")):
            first, last = map(int, path.stem.removeprefix(f"{kind}-").split("-"))
            there[first] = last, path
        found: list[tuple[int, Path]] = []
        while (following := found[-1][0] + 1 if found else 1) in there:
            found.append(there[following])
        return found

    def clear(self) -> None:
        """Remove everything. The folder is renamed first, so that a process killed meanwhile leaves either
        all of it or nothing under its name; :meth:`sweep` removes the rest."""
        if not self.folder.exists():
            return
        retired = self.folder.with_name(f"{_CLEARED}{self.key}.{uuid.uuid4().hex}")
        self.folder.replace(retired)
        shutil.rmtree(retired, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the remains, for every key, of processes that were killed while they cleared."""
        for left in self.folder.parent.glob(f"{_CLEARED}*"):
            shutil.rmtree(left, ignore_errors=True)


class SaveTimer:
    """Says whether it is time to save again: after a number of seconds (0: always).

    Saves that are measured take at most a twentieth of the time; one of 135 million weights takes 10 s.
    """

    def __init__(self, seconds: float = SECONDS_BETWEEN_SAVES) -> None:
        self._seconds, self._last = seconds, time.monotonic()

    def __call__(self) -> bool:
        """Whether the time is up; if it is, the timer starts again."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the save in the block. The next one waits until this one is a twentieth of the time."""
        begun = time.monotonic()
        yield
        self._last = time.monotonic()
        if self._seconds:
            self._seconds = max(self._seconds, SHARE_OF_SAVES * (self._last - begun))
