"""The predictions of the critical experiment: the calculation, and the committed figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from skillpress.evaluation.study.plan import read_plan
from skillpress.experiment.params import Params, check_params
from skillpress.pipeline.study.runs import planned_runs
from studies.critical.predict import FURTHER, PLAN, RECORD, SHARES, batches, differences, preference, sign
from studies.critical.predictions import FILE, disagreements, read_predictions


@pytest.fixture(scope="module")
def cells(repository: Path) -> dict[tuple[str, str], Params]:
    """Cell and method to its parameters."""
    plan = read_plan(PLAN)
    runs = planned_runs(plan, plan.chosen(), repository)
    return {
        (run.benchmark, run.method): check_params(dict(run.params), source=run.name)
        for run in runs
        if run.seed == plan.benchmarks[run.benchmark].seeds[0]
    }


def test_groups_of_one_kind_say_nothing_and_others_count_alike() -> None:
    penalty = np.array([1.0, 1.0, 5.0, 2.0, 4.0, 0.0])
    by_routine = np.array([True, True, False, True, False, False])
    assert differences(penalty, by_routine, 2) == [3.0]
    assert differences(penalty, by_routine, 3) == [4.0, 0.0]


@pytest.mark.parametrize(("cell", "skills"), [("equal", 7), ("shorter", 4), ("longer", 10), ("noisy", 7)])
def test_length_prefers_the_shorter_kind_by_the_skills_that_it_saves(
    cells: dict[tuple[str, str], Params], cell: str, skills: int
) -> None:
    params = cells[cell, "round_length"]
    expected = params.reward.shaping_weight * (skills - 7) / params.environment.max_steps
    assert preference(params, 0.5) == pytest.approx(expected)


def test_both_kinds_win_and_the_share_is_that_of_routines(cells: dict[tuple[str, str], Params]) -> None:
    params = cells["repeated", "segcost"]
    for played in batches(params, 0.9, 0):
        assert all(trajectory.won for trajectory in played.trajectories)
        assert [len(trajectory.steps) for trajectory in played.trajectories] == [7] * 128
        assert 0.75 < played.by_routine.mean() < 1


@pytest.mark.parametrize(
    ("cell", "method"), [("alike", "segcost"), ("repeated_short", "each_task_once"), ("compressible", "bits")]
)
def test_the_committed_figures_are_those_of_the_code(
    cells: dict[tuple[str, str], Params], cell: str, method: str
) -> None:
    known = json.loads((RECORD / FILE).read_text())[cell][method]
    found = preference(cells[cell, method], 0.5)
    assert known["preference"] == pytest.approx(found, abs=0.001)
    assert known["sign"] == sign(found, success=10.0)


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 3.0])
def test_a_predicted_sign_does_not_depend_on_the_scale_of_rewards(scale: float) -> None:
    """A hundredth of a success decides, so 0.09 of 10 has no sign and 0.09 of 1 has one."""
    signs = {0.09: "0", 0.11: "+", -0.11: "-"}
    assert {value: sign(value * scale, 10 * scale) for value in signs} == signs
    assert sign(0.09, success=1.0) == "+"


def test_every_planned_method_is_predicted_in_every_cell_at_every_share(
    cells: dict[tuple[str, str], Params],
) -> None:
    known = json.loads((RECORD / FILE).read_text())
    assert {(cell, method) for cell, methods in known.items() for method in methods} >= set(cells)
    assert all(
        list(one["by_share"]) == list(map(str, SHARES))
        for methods in known.values()
        for one in methods.values()
    )


def test_the_further_plan_claims_what_is_predicted() -> None:
    known = read_predictions(RECORD, "further.json")
    assert known["noisy_one"]["segcost"].sign == "-" and known["equal_one"]["segcost"].sign == "0"
    assert disagreements(read_plan(FURTHER), known) == []
