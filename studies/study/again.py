"""A benchmark of the study that was run again by a plan of its own: what the pages show of it.

The plan in params/cooking_again repeats four methods on cooking without the word at which the study's starts
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from studies.study.results import Results, read_results
from studies.study.sections import findings, levels, state

PLAN = Path("params/cooking_again")
RECORD = Path("studies/cooking_again")


def read_again(root: Path) -> Results:
    """Plan and record of the repository.

    Raises:
        UserError: the plan is wrong, or the record damaged.
    """
    return read_results(root, root / PLAN, root / RECORD)


def again_parts(again: Results) -> dict[str, Callable[[], Iterator[str]]]:
    """Name of a part of docs/study.md to what makes its lines."""
    return {
        "again_state": lambda: state(again),
        "again_claims": lambda: (line for name in again.plan.questions for line in findings(again, name)),
        "again_levels": lambda: (line for name in again.plan.benchmarks for line in levels(again, name)),
    }
