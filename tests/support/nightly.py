"""``make nightly``: runs long tests of a day's changes, one after another, and prints a table at the end.

``python -m tests.support.nightly FOLDER [TARGET ...]`` runs targets of make, continues after a failure, and
stores each target's output in FOLDER. Its exit code is 1 if any failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TARGETS = ("test-thorough", "test-laws", "test-vllm", "test-agents", "kill-test", "docs", "wheel-test")


@dataclass(frozen=True)
class Outcome:
    """The result of one target."""

    target: str
    code: int
    """make's exit code; below 0 for the signal that ended make."""
    seconds: float
    log: Path


def run(target: str, folder: Path) -> Outcome:
    """Run ``make TARGET``, with all its output in a log."""
    log = folder / f"{target}.log"
    begun = time.monotonic()
    with log.open("w") as said:
        code = subprocess.run(["make", target], stdout=said, stderr=subprocess.STDOUT, check=False).returncode
    return Outcome(target, code, time.monotonic() - begun, log)


def table(outcomes: Sequence[Outcome]) -> str:
    """One line per target, under a line of titles."""
    rows = [("name", "result", "minutes", "log")]
    for each in outcomes:
        result = "passed" if each.code == 0 else f"failed ({each.code})"
        rows.append((each.target, result, f"{each.seconds / 60:.1f}", str(each.log)))
    name, result, minutes, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(f"{a:<{name}}  {b:<{result}}  {c:>{minutes}}  {d}" for a, b, c, d in rows)


def main(arguments: Sequence[str]) -> int:
    folder, targets = Path(arguments[0]), arguments[1:] or TARGETS
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for target in targets:
        print(f"make {target} ...", flush=True)
        outcomes.append(run(target, folder))
    print(table(outcomes))
    return int(any(each.code for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
