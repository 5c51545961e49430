"""Programs that tests start as processes of their own, and what they need to import ``tests.support``."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The repository."""
PROGRAMS = Path(__file__).parent


def importing() -> dict[str, str]:
    """This process's variables, with the repository first where Python looks for modules."""
    elsewhere = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), elsewhere]))}
