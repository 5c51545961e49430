"""Programs that tests start as separate processes, and the variables they need to import
``tests.support``."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The repository."""
PROGRAMS = Path(__file__).parent


def importing() -> dict[str, str]:
    """This process's variables, with the repository first in Python's module path."""
    elsewhere = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), elsewhere]))}
