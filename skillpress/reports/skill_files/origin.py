"""Which skillpress made a skill: its version, and the commit where one is known."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from skillpress.core.version import __version__


def tool_version() -> str:
    """The version, with the commit that it was installed from or that its clone is at."""
    commit = _installed_commit() or _clone_commit(Path(__file__).resolve().parents[3])
    return f"{__version__} (commit {commit[:12]})" if commit else __version__


def _installed_commit() -> str:
    try:
        noted = distribution("skillpress").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    described = json.loads(noted or "{}")
    return str(described.get("vcs_info", {}).get("commit_id", ""))


def _clone_commit(clone: Path) -> str:
    if not (clone / ".git").exists():
        return ""
    try:
        asked = subprocess.run(
            ["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # git is not installed
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
