"""What the page is made from: the study's results of the critical plan, and the predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from skillpress.evaluation.study.outcomes import of_class
from skillpress.pipeline.files import TRAINED
from skillpress.pipeline.study.record import RecordedRun
from studies.critical.choices import Choices, read_choices
from studies.critical.controls.known import Controls, read_controls
from studies.critical.predictions import Predictions, read_predictions
from studies.statistics.contrasts import ClaimEvidence
from studies.statistics.gap_of_runs import COLUMNS, Agreement, agreements
from studies.study.results import FLOORS, Results, read_results

PLAN = Path("params/critical")
RECORD = Path("studies/critical")
KNOWN, UNSEEN = "known", "unseen"
"""Classes of test tasks: pairs of training's pieces and orders, and tasks of new pieces."""
ROUTINES = f"measure_by_routine in {KNOWN}"
"""The share of the wins that were by routine, where a shortcut wins too."""
YARDSTICK = "greedy"
"""The search of runs whose compression is compared: a probe measures with the run's own search, and random
phrases or those of the routines would be another measure."""
SUCCESSES = {
    KNOWN: "known",
    UNSEEN: "unseen",
    "unseen/piece": "new piece",
    "unseen/order": "new order",
    "unseen/longer": "one work more",
}
"""Classes of test tasks to their names in tables."""


@dataclass(frozen=True)
class Critical:
    """Plan, record, predictions, what starts leave to choose from, and what controls prefer."""

    results: Results
    predictions: Predictions
    choices: Choices
    controls: Controls = field(default_factory=dict)

    @cached_property
    def findings(self) -> list[ClaimEvidence]:
        """Every claim of the plan, tested and judged within its question."""
        return [
            found for question in self.results.plan.questions for found in self.results.findings(question)
        ]

    @cached_property
    def agreements(self) -> list[Agreement]:
        """Compression against the gap, in all scopes."""
        return list(agreements(self.gaps))

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """A row per probed run whose search is the yardstick: its success on known less that on unseen test
        tasks, and its last probe."""
        schema = dict.fromkeys(COLUMNS, pl.Float64) | {"cell": pl.String, "seed": pl.Int64}
        return pl.DataFrame(list(self._rows()), schema=schema)

    def methods(self, cell: str) -> list[str]:
        """The floors and the cell's methods, in the plan's order."""
        return [*FLOORS, *self.results.plan.chosen().get(cell, [])]

    def _rows(self) -> Iterator[dict[str, object]]:
        for (cell, _), runs in self.results.runs.items():
            for seed, run in runs.items():
                if run.params["skills"]["search"] != YARDSTICK:
                    continue
                if (last := _last_probe(run)) and (gap := self._gap(run)) is not None:
                    renamed = {name: last.get(name) for name in COLUMNS if name in last}
                    yield {**renamed, "cell": cell, "seed": seed, "gap": gap}

    def _gap(self, run: RecordedRun) -> float | None:
        rows = self.results.outcomes[run.id]
        classes = [of_class(rows, name)[TRAINED].explode() for name in (KNOWN, UNSEEN)]
        if not all(len(won) for won in classes):
            return None
        known, unseen = (float((won > 0).mean()) for won in classes)  # type: ignore[arg-type]
        return known - unseen


def _last_probe(run: RecordedRun) -> dict[str, object]:
    """The row of training tasks at the last probed step; empty without probes."""
    if not run.probes:
        return {}
    probes = pl.DataFrame(run.probes).filter(pl.col("split") == "train").sort("step")
    return probes.row(-1, named=True) if probes.height else {}


def read_critical(root: Path, plan: Path = PLAN, record: Path = RECORD) -> Critical:
    """The experiment of a repository; the record and the predictions may still be missing.

    Raises:
        UserError: the plan is missing or wrong, or a file is damaged.
    """
    results = read_results(root, root / plan, root / record)
    folder = root / record
    return Critical(results, read_predictions(folder), read_choices(folder), read_controls(folder))
