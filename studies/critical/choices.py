"""What the start policies of each benchmark leave a segmentation cost to choose from.

``choices.json`` holds ``{benchmark: {seed: {...}}}``, as ``measure_choices.py`` measured it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docs.committed import read_committed
from skillpress.evaluation.analysis.choice import Choice

FILE = "choices.json"
CELLS = (
    "equal", "shorter", "longer", "repeated", "repeated_short", "alike", "compressible", "noisy",
)  # fmt: skip
PUBLIC = {
    "countdown": ("study/countdown",),
    "wordle": ("wordle_smoke",),
    "cooking": ("study/cooking", "study/runs/cooking", "cooking_again/without_refusals"),
    "alfworld": ("study/alfworld", "study/runs/alfworld"),
}
"""Benchmarks of others to the overlays that make a start policy for them."""
OVERLAYS = {cell: ("workshop", "critical/runs", f"critical/{cell}") for cell in CELLS} | PUBLIC

Choices = Mapping[str, Mapping[str, Choice]]
"""Benchmark to seed to what was measured."""


def read_choices(folder: Path) -> Choices:
    """What is measured so far, empty if there is no file yet; ``StorageError`` for a wrong one."""
    return read_committed(
        folder / FILE, dict[str, dict[str, Choice]], "studies/critical/measure_choices.py makes it"
    )
