"""Work that is not finished: what a killed process had done, its successor finds.

One folder per piece of work, named by a key over everything that decides its result: the parameters,
the input files and this library's source. What is in it was written whole, part by part. Whoever does
the work forgets the folder once all that came out of it is safely written elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SECONDS_BETWEEN_SAVES = 20.0
"""What a killed process has to do again, at most, where it saves by the clock."""

_DECISIVE = ("agents", "assembly.py", "environments", "policy", "rollout", "seeds.py", "skills", "training")
"""The parts of the library that decide the result of long work."""


def experiment_key(values: Mapping[str, Any], inputs: Iterable[str | Path]) -> str:
    """A hash (20 hex digits) of parameters, input files or folders, and the library's source."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    package = Path(__file__).parent
    for root in (*map(Path, inputs), *(package / part for part in _DECISIVE)):
        for path in sorted(p for p in (root.rglob("*") if root.is_dir() else [root]) if p.is_file()):
            if path.suffix != ".pyc":
                digest.update(path.name.encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


class Unfinished:
    """The folder of one piece of work, made when its first part is written."""

    def __init__(self, root: str | Path, key: str) -> None:
        self.key, self.folder = key, Path(root) / key

    def part(self, kind: str, number: int) -> Path:
        """Where part ``number`` of a kind goes; to be written atomically."""
        return self.folder / f"{kind}-{number:08d}.parquet"

    def parts(self, kind: str) -> list[tuple[int, Path]]:
        """(number, file) of the parts of a kind that are there, in their order."""
        found = sorted(self.folder.glob(f"{kind}-*.parquet"))
        return [(int(path.stem.removeprefix(f"{kind}-")), path) for path in found]

    def forget(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Every:
    """A clock that strikes once in so many seconds, when it is looked at."""

    def __init__(self, seconds: float = SECONDS_BETWEEN_SAVES) -> None:
        self._seconds, self._last = seconds, time.monotonic()

    def __call__(self) -> bool:
        """Whether the time is up; if so it begins anew."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True
