"""``make nightly``: runs long tests of a day's changes, one after another, and prints a table at the end.

``python -m tests.support.nightly FOLDER [TARGET ...]`` runs targets of make, continues after a failure, and
stores each target's output in FOLDER. Its exit code is 1 if any failed. An audit without its database has
neither passed nor failed, and the table says so.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.audit import NOT_AUDITED

TARGETS = (
    "test-thorough", "test-laws", "test-vllm", "test-agents", "kill-test", "docs", "wheel-test", "audit",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of one target."""

    target: str
    code: int
    """make's exit code; below 0 for the signal that ended make."""
    seconds: float
    log: Path

    @property
    def result(self) -> str:
        """What the table says of it."""
        if self.code == 0:
            return "passed"
        return NOT_AUDITED if self.not_audited else f"failed ({self.code})"

    @property
    def not_audited(self) -> bool:
        """Whether the audit could not ask its database: make's exit code does not say why a target failed."""
        said = self.log.read_text(errors="replace") if self.target == "audit" else ""
        return any(line.startswith(NOT_AUDITED) for line in said.splitlines())


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
        rows.append((each.target, each.result, f"{each.seconds / 60:.1f}", str(each.log)))
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
    return int(any(each.code and not each.not_audited for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
