"""What each control prefers in every cell and under every naming: no policy is trained or asked.

    python -m studies.critical.controls.calculate

Delta(1/2) as ``predict.py`` calculates it, of SegCost and of its controls, for the same episodes: under the
cell's own φ, and with other names for their actions. SegCost also has finer steps of naming in one cell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tqdm import tqdm

from skillpress.core.storage import write_json
from skillpress.environments.workshop.parameters import WorkshopParameters
from skillpress.evaluation.study.plan import read_plan
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study.runs import planned_runs
from studies.critical.controls.known import (
    CONTROLS,
    FILE,
    NAMINGS,
    PHI,
    SEGCOST,
    SWEEP,
    SWEPT,
)
from studies.critical.controls.naming import Naming
from studies.critical.predict import PLAN, preference, sign

RECORD = ROOT / "studies" / "critical"
START = 0.5
"""p, the share of routines at which training starts."""


def main() -> int:
    """Write studies/critical/controls.json; returns the exit code."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    of_cell = cells()
    for cell, naming, score in tqdm([*points(of_cell)], unit="preference", disable=not sys.stderr.isatty()):
        params = scored(of_cell[cell], score)
        value = named_preference(params, naming)
        entry = {"preference": round(value, 3), "sign": sign(value, params.reward.success)}
        found.setdefault(cell, {}).setdefault(naming, {})[score] = entry
    write_json(RECORD / FILE, found)
    return 0


def points(of_cell: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Cell, naming and score of every figure that is calculated."""
    for cell in of_cell:
        for naming in (PHI, *NAMINGS):
            yield from ((cell, naming, score) for score in (SEGCOST, *CONTROLS))
    yield from ((SWEPT, naming, SEGCOST) for naming in SWEEP if naming not in NAMINGS)


def cells() -> dict[str, dict[str, Any]]:
    """Cell to the parameters of SegCost's runs in it."""
    plan = read_plan(PLAN)
    runs = planned_runs(plan, {cell: [SEGCOST] for cell in plan.benchmarks}, ROOT)
    return {run.benchmark: dict(run.params) for run in runs}


def scored(of_segcost: Mapping[str, Any], score: str) -> Params:
    """SegCost's parameters, or those of a control."""
    overlay = {} if score == SEGCOST else read_yaml(PLAN / "methods" / f"{score}.yaml")
    return check_params(merge(of_segcost, overlay), source=score)


def named_preference(params: Params, naming: str) -> float:
    """Delta(1/2) with these names for the actions; ``PHI`` leaves the cell's own."""
    section = params.environment
    assert isinstance(section, WorkshopParameters), "the plan's cells are workshops"
    return preference(params, START, None if naming == PHI else Naming(naming, section.shortcut.skills))


if __name__ == "__main__":
    sys.exit(main())
