"""A stage says its place in the run, and the time that is left only where it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.pipeline import whole_run as module
from skillpress.pipeline.graph import read_stages
from skillpress.pipeline.whole_run import ALL, STAGES, remember, whole_run

GRAPH = {
    "pin": {"cmd": "x", "outs": ["pinned.json"]},
    "tasks": {"cmd": "x", "deps": ["pinned.json"], "params": ["seed", "tasks"], "outs": ["tasks"]},
    "start": {"cmd": "x", "deps": ["tasks"], "params": ["seed", "policy"], "outs": ["start"]},
    "floors": {"cmd": "x", "deps": ["start"], "params": ["seed"], "outs": ["floors"]},
    "train": {"cmd": "x", "deps": ["start"], "params": ["seed", "steps"], "outs": ["trained"]},
    "report": {"cmd": "x", "deps": ["trained", "floors"], "params": ["seed"], "outs": ["page"]},
}
VALUES = {"seed": 0, "tasks": 8, "policy": {"width": 4}, "steps": 3}
SECONDS = {"tasks": 10.0, "start": 20.0, "floors": 40.0, "train": 80.0, "report": 160.0}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with these stages in which nothing has been run, and a run of all of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STAGES, ALL)
    Path(".dvc/tmp").mkdir(parents=True)
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": GRAPH}, sort_keys=False))
    return tmp_path


def finished(*names: str, values: dict[str, Any] = VALUES, **changed: str) -> None:
    """DVC's state after these stages: their outputs and a lock file, with other digests for ``changed``."""
    lock: dict[str, Any] = {}
    for name in names:
        stage = GRAPH[name]
        for output in stage["outs"]:
            Path(output).touch()
        digest = {path: {"path": path, "md5": changed.get(path, path)} for path in stage["outs"]}
        lock[name] = {
            "deps": [{"path": path, "md5": path} for path in stage.get("deps", [])],
            "params": {"params.yaml": {key: values[key] for key in stage.get("params", [])}},
            "outs": list(digest.values()),
        }
    Path("dvc.lock").write_text(yaml.safe_dump({"stages": lock}))


def ran_before(*names: str, values: dict[str, Any] = VALUES) -> None:
    for stage in read_stages():
        if stage.name in names:
            remember(stage, values, SECONDS[stage.name])


def words(name: str, values: dict[str, Any] = VALUES, rest: float | None = None) -> str:
    found = whole_run(name, values)
    assert found is not None
    return found.words(rest)


def test_where_nothing_is_known_only_the_place_is_said() -> None:
    assert words("start") == "stage 3 of 6"
    ran_before("start", "floors", "train")
    assert words("start") == "stage 3 of 6", "the report never ran here"


def test_what_is_left_is_this_stage_and_the_later_ones_by_their_last_runs() -> None:
    ran_before(*SECONDS)
    assert words("start", {**VALUES, "seed": 5}) == "stage 3 of 6, 5 min left for the whole run"  # 300 s
    assert words("report", rest=30.0) == "stage 6 of 6, 30 s left for the whole run"


def test_the_own_rate_of_a_stage_counts_more_than_its_last_run_and_other_parameters_are_unknown() -> None:
    ran_before("floors", "train", "report")
    more = {**VALUES, "steps": 300}
    finished("pin", "tasks", "start", "floors")
    assert words("train", more) == "stage 5 of 6"
    assert words("train", more, rest=7200.0) == "stage 5 of 6, 2 h 03 min left for the whole run"


def test_stages_that_are_up_to_date_take_no_time() -> None:
    ran_before("train", "report")
    finished("pin", "tasks", "start", "floors", "train", "report", values={**VALUES, "steps": 2})
    assert words("tasks") == "stage 2 of 6", "all that follows runs again, and the start never ran here"
    assert words("train") == "stage 5 of 6, 4 min left for the whole run", "80 s and the report's 160"
    assert words("floors", rest=10.0) == "stage 4 of 6, 4 min left for the whole run", (
        "250 s: its steps changed"
    )


def test_a_stage_whose_input_was_made_anew_runs_again() -> None:
    ran_before(*SECONDS)
    finished("pin", "tasks", "start", "floors", "train", "report", start="another")
    assert words("floors", rest=0.0) == "stage 4 of 6, 4 min left for the whole run", "train and report"


def test_a_run_of_some_stages_counts_these_and_what_they_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAGES, "floors")
    ran_before(*SECONDS)
    assert words("start") == "stage 3 of 4, 60 s left for the whole run"
    assert whole_run("train", VALUES) is None


def test_a_stage_by_itself_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STAGES)
    assert whole_run("train", VALUES) is None


def test_workspaces_share_what_the_repository_knows(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = inside / "workspaces" / "grpo-seed1"
    workspace.mkdir(parents=True)
    (workspace / "dvc.yaml").write_text(Path("dvc.yaml").read_text())
    monkeypatch.chdir(workspace)
    ran_before(*SECONDS)
    assert (inside / module.TIMES).is_file() and not (workspace / ".dvc").exists()
    monkeypatch.chdir(inside)
    assert words("floors", rest=0.0).endswith("left for the whole run")


def test_half_a_line_of_a_killed_stage_is_passed_over(inside: Path) -> None:
    ran_before(*SECONDS)
    file = inside / module.TIMES
    file.write_text('{"key": "tr\n' + file.read_text() + "[]\n")
    assert words("floors", rest=0.0).endswith("left for the whole run")
