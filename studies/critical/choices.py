"""What the start policies of each benchmark leave a segmentation cost to choose from.

``choices.json`` holds ``{benchmark: {seed: {...}}}``, as ``measure_choices.py`` measured it. What others
published of their agents' runs is there too, under the name of the log and ``"log"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PublicLog:
    """Runs that others published."""

    words: str
    address: str
    """The repository, its commit, and the file or folder in it."""
    success: str | None = None
    """What counts as a success, as ``skillpress skills --success`` takes it; None for the log's own field."""


LOG = "log"
"""The key of a log, which has no seeds."""
LOGS = {
    "tau_bench": PublicLog(
        words="tau-bench, airline, gpt-4o, four runs of a task",
        address="https://github.com/sierra-research/tau-bench@59a200c6d575d595120f1cb70fea53cef0632f6b "
        "historical_trajectories/gpt-4o-airline.json",
    ),
    "swe_agent": PublicLog(
        words="SWE-agent's demonstrations",
        address="https://github.com/SWE-agent/SWE-agent@3ea751c087f32b16e039a2233dd6eefecef325d5 "
        "trajectories/demonstrations",
        success="info.exit_status=submitted",
    ),
}

Choices = Mapping[str, Mapping[str, Choice]]
"""Benchmark to seed to what was measured."""


def read_choices(folder: Path) -> Choices:
    """What is measured so far, empty if there is no file yet; ``StorageError`` for a wrong one."""
    return read_committed(
        folder / FILE, dict[str, dict[str, Choice]], "studies/critical/measure_choices.py makes it"
    )
