"""Both flows with the real Prefect, DVC and MLflow, in a fresh clone with the smoke overlay."""

import json
from uuid import UUID

import pytest
from mlflow import MlflowClient

from tests.support.clone import Clone
from tests.support.recorded import recorded

pytestmark = pytest.mark.slow

HOLD = """
import time
from pathlib import Path
from skillpress.pipeline.reproduce.lock import exclusive, workspace_lock
with exclusive(workspace_lock(Path("workspaces/grpo-seed0")), "it"):
    print("held", flush=True)
    time.sleep(600)
"""
GRPO = ("--params", "params/grpo.yaml", "--seed", "0")


@pytest.fixture(scope="module")
def clone(reproduced: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Make the experiment of seed 0 there, with SegCost."""
    return reproduced.copied(tmp_path_factory.mktemp("flows"))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seeds", [("0",), pytest.param(("0", "1"), marks=pytest.mark.thorough)])
def test_an_ablation_runs_methods_by_seeds_and_compares_them(clone: Clone, seeds: tuple[str, ...]) -> None:
    methods = ["--params", "params/grpo.yaml", "--params", "params/segcost.yaml"]
    run = clone.python("flows.ablation", *methods, "--seeds", *seeds)
    assert run.returncode == 0, run.stdout + run.stderr
    results = json.loads((clone.folder / "results" / "ablation.json").read_text())
    rows = {row["method"]: row for row in results["methods"]}
    assert list(rows) == ["random explorer", "imitation start", "grpo", "segcost"]
    for row in rows.values():
        assert row["seeds"] == len(seeds)
        assert row["low"] <= row["pass_at_1"] <= row["high"]
    floors = {f"{method} against random explorer" for method in ("grpo", "segcost")}
    assert set(results["comparisons"]) == {"segcost against grpo", *floors}
    for comparison in results["comparisons"].values():
        assert comparison["tasks"] == 32 * len(seeds)  # each seed has its own
    assert (clone.folder / "results" / "ablation.html").stat().st_size > 10_000
    client = MlflowClient(f"sqlite:///{clone.folder}/mlruns/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    logged, *_ = client.search_runs([experiment.experiment_id], "tags.level = 'comparison'")
    assert {item.path for item in client.list_artifacts(logged.info.run_id)} == {
        "ablation.html",
        "ablation.json",
    }
    restored = (clone.folder / "workspaces" / "segcost-seed0.log").read_text()
    assert "'prepare_policy' is cached" in restored


@pytest.mark.timeout(900)
def test_an_experiment_is_reproduced_stage_by_stage_and_tied_to_its_flow_run(clone: Clone) -> None:
    name = "grpo-evaluation.temperature=0.9-seed0"  # only a stage that runs has a run of MLflow
    run = clone.python("flows.run", *GRPO, "--set", "evaluation.temperature=0.9")
    assert run.returncode == 0, run.stdout + run.stderr
    folder = clone.folder / "workspaces" / name
    assert run.stdout.splitlines()[-2] == f"report: {folder / 'results' / 'report.html'}"
    completed = f"SELECT id FROM flow_run WHERE name = '{name}' AND state_type = 'COMPLETED'"
    ((flow,),) = recorded(clone, completed)
    client = MlflowClient(f"sqlite:///{clone.folder}/mlruns/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'skillpress'")
    tagged = f"tags.`prefect.flow_run_id` = '{UUID(flow)}'"
    runs = client.search_runs([experiment.experiment_id], tagged)
    assert "evaluate_policy" in {run.data.tags.get("dvc.stage") for run in runs}


@pytest.mark.kills
@pytest.mark.timeout(900)
def test_a_second_start_waits_says_for_whom_and_gives_up_with_a_clear_error(clone: Clone) -> None:
    (clone.folder / "hold.py").write_text(HOLD)
    first = clone.start("hold")
    try:
        assert first.stdout.readline() == "held\n"
        second = clone.python("flows.run", "--params", "params/grpo.yaml", "--seed", "0", "--wait", "2")
    finally:
        first.kill()
        first.wait()
        (clone.folder / "hold.py").unlink()
    assert second.returncode == 2
    assert f"waiting for process {first.pid} (since 20" in second.stderr
    assert f"is still in use by process {first.pid}" in second.stderr.strip().splitlines()[-1]


@pytest.mark.timeout(900)
def test_a_wrong_overlay_fails_the_flow_with_the_key_and_no_stage_is_run(clone: Clone) -> None:
    (clone.folder / "params" / "typo.yaml").write_text("training:\n  stepps: 3\n")
    run = clone.python("flows.run", "--params", "params/typo.yaml")
    assert run.returncode == 2
    assert "training.stepps: unknown key" in run.stderr
    assert clone.ran(run.stdout) == []
