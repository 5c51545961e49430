"""``make audit``: asks pip-audit whether a pinned version has a known vulnerability.

``python -m tests.support.audit LOCK ...`` ends with 0 if every package was looked up and none has a known
vulnerability, with 1 if some have, and with 2 if the database did not answer for all of them. Its last line
says which.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NOT_AUDITED = "not audited: the database of known vulnerabilities could not be reached"
"""Begins the last line where it is true; ``make nightly`` looks for it."""
LEFT_OUT = ("torch-cpu.txt",)
"""The database knows this version by the name that torch-cuda.txt has."""


def ask(locks: Sequence[Path]) -> list[dict[str, Any]] | str:
    """What pip-audit says of each package, or why it says nothing."""
    files = [part for lock in locks for part in ("--requirement", str(lock))]
    command = ["pip-audit", "--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"]
    try:
        done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except OSError as error:
        return f"pip-audit could not be started: {error}"
    except (json.JSONDecodeError, KeyError, TypeError):
        return (done.stderr.strip().splitlines() or [f"pip-audit ended with {done.returncode}"])[-1]
    return found


def main(arguments: Sequence[str]) -> int:
    found = ask([path for path in map(Path, arguments) if path.name not in LEFT_OUT])
    if isinstance(found, str):
        print(f"{NOT_AUDITED} ({found})")
        return 2
    weak = [each for each in found if each.get("vulns")]
    for each in weak:
        names = ", ".join(known["id"] for known in each["vulns"])
        mended = sorted({version for known in each["vulns"] for version in known.get("fix_versions", [])})
        print(f"{each['name']} {each['version']}: {names}; mended in {', '.join(mended) or 'no version yet'}")
    if weak:
        print(f"{len(weak)} of {len(found)} packages have known vulnerabilities")
        return 1
    skipped = [each["name"] for each in found if "skip_reason" in each]
    if skipped or not found:
        print(f"{NOT_AUDITED} for {len(skipped)} of {len(found)} packages: {', '.join(skipped[:5])}")
        return 2
    print(f"no known vulnerability in {len(found)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
