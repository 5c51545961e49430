"""The study's flow with the real pipeline: two small runs, killed in between, and started again."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from skillpress.pipeline.study import store
from tests.support.clone import Clone
from tests.support.pipeline.small_study import write_plan

pytestmark = pytest.mark.slow

OPTIONS = ("--plan", "params/small_study", "--record", "record", "--at-once", "1", "--seeds", "10")
TINY = {
    "tasks": {"train": 64, "validation": 8, "test": 16},
    "imitation": {"demonstrations": 300},
    "training": {"steps": 2, "probe": {"every": 2, "tasks": 4}},
    "rollouts": {"tasks": 4},
}


@pytest.fixture(scope="module")
def clone(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    clone = Clone(repository, tmp_path_factory.mktemp("study"))
    clone.set_params(TINY)
    (clone.folder / "params" / "smoke.yaml").write_text("processes: 1\n")
    folder = clone.folder / "params" / "small_study"
    write_plan(folder, runs={"small": ["grpo", "segcost"]}, families={})
    return clone


def recorded(clone: Clone) -> list[str]:
    path = clone.folder / "record" / store.RUNS
    return [run["id"] for run in json.loads(path.read_text())["runs"]] if path.exists() else []


@pytest.mark.kills
@pytest.mark.timeout(1800)
def test_a_killed_study_goes_on_with_what_its_record_lacks(clone: Clone) -> None:
    log = clone.folder.parent / "study.log"
    with log.open("w") as output:
        first = clone.start("flows.study", *OPTIONS, output=output)
        deadline = time.monotonic() + 600
        while not recorded(clone):
            assert first.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert recorded(clone) == ["small-grpo-seed10"]
    before = (clone.folder / "record" / store.RUNS).read_text().splitlines()[1]

    dry = clone.python("flows.study", *OPTIONS, "--dry-run")
    assert dry.stdout.startswith("small-segcost-seed10\n1 of 2 runs are recorded; "), dry.stdout + dry.stderr
    second = clone.python("flows.study", *OPTIONS)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "study: 2 of 2 runs are recorded" in second.stdout
    assert "small-grpo-seed10 starts" not in second.stdout
    assert recorded(clone) == ["small-grpo-seed10", "small-segcost-seed10"]

    record = store.read_record(clone.folder / "record")
    assert (clone.folder / "record" / store.RUNS).read_text().splitlines()[1].rstrip(",") == before
    assert record.outcomes.group_by("id").len().sort("id")["len"].to_list() == [16, 16]
    assert record.outcomes["trained"].list.len().unique().to_list() == [2]  # evaluation.runs of smoke
    for run in record.runs:
        assert run.curve["step"][-1] == 2
        assert (run.probes["step"], run.probes["split"]) == ([0, 2], ["train", "train"])
        rate = record.outcomes.filter(pl.col("id") == run.id)["trained"].list.eval(pl.element() > 0)
        assert run.behavior["trained"]["1/all"][0] == pytest.approx(rate.list.mean().mean(), abs=1e-4)
    assert not list((clone.folder / "workspaces").glob("*seed1*/"))


@pytest.mark.timeout(600)
def test_a_run_that_takes_too_long_is_stopped_and_its_log_is_named(clone: Clone) -> None:
    options = ("--plan", "params/small_study", "--record", "other", "--at-once", "1")
    run = clone.python("flows.study", *options, "--limit-minutes", "0.02", "--start-minutes", "0.01")
    assert run.returncode == 2
    log = clone.folder / "workspaces" / "smoke-grpo-seed10.log"
    assert "did not finish within 0 minutes and was stopped; if it is started again, it resumes" in run.stderr
    assert f"See {log}" in run.stderr
    assert not (clone.folder / "other" / store.RUNS).exists()
