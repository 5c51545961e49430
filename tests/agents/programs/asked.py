"""What every program here is asked, and what its tool answers."""

from __future__ import annotations

import json
import os
from typing import Any

TASK: dict[str, Any] = json.loads(os.environ["SKILLPRESS_TASK"])
QUESTION = f"Please add {TASK['a']} and {TASK['b']} with the tool, and say the sum."


def sum_of(a: int, b: int) -> str:
    """The tool's answer."""
    return f"sum={int(a) + int(b)}"
