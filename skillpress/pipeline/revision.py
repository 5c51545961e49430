"""The revision of the running code."""

from __future__ import annotations

import subprocess

from skillpress.core.lab import ROOT


def revision() -> str:
    """The commit of the lab, with ``-dirty`` if files differ from it; ``unknown`` outside git."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return described.stdout.strip() or "unknown"
