"""Which runs are planned, which are recorded, which is next, and how long the others take."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.evaluation.study.plan import PlanError, read_plan
from skillpress.pipeline.study import store
from skillpress.pipeline.study.clearing import LARGE_BYTES, clear
from skillpress.pipeline.study.forecast import describe, in_words, remaining
from skillpress.pipeline.study.runs import Queue, planned_runs
from tests.support.pipeline.small_study import REPOSITORY, SHARED, outcomes, recorded, tiny_runs


def test_all_methods_of_the_first_seed_come_before_any_of_the_second(tmp_path: Path) -> None:
    names = [run.name for run in tiny_runs(tmp_path)]
    first = ["small-grpo", "small-segcost", "large-grpo", "large-segcost"]
    assert names == [f"{name}-seed{seed}" for seed in (10, 11) for name in first]


def test_a_run_has_every_parameter_and_its_seed(tmp_path: Path) -> None:
    run = tiny_runs(tmp_path)[-1]
    assert run.params["seed"] == 11
    assert run.params["training"]["lag"] == 1
    assert run.params["reward"]["shaping"] == "segcost"
    assert run.variant.name == "lag-segcost-seed11"


def test_two_names_for_one_experiment_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHARED["methods"]["segcost"], "overlays", ["grpo"])
    with pytest.raises(PlanError, match="grpo and segcost have the same parameters"):
        tiny_runs(tmp_path)


def test_a_recorded_run_counts_whatever_code_made_it_and_other_parameters_do_not(tmp_path: Path) -> None:
    runs = tiny_runs(tmp_path / "plan")
    first, second = runs[:2]
    without = {key: value for key, value in first.params.items() if key != "experience"}
    former = {"shaping_weight": "efficiency"}
    without["reward"] = {former.get(key, key): value for key, value in first.params["reward"].items()}
    store.add(tmp_path, replace(recorded(first), params=without, revision="older"), outcomes([3]))
    other = {**second.params, "reward": {**second.params["reward"], "shaping_weight": 1.0}}
    store.add(tmp_path, replace(recorded(second), params=other), outcomes([3]))
    unknown = {**second.params, "gone": 1}
    store.add(tmp_path, replace(recorded(second), params=unknown), outcomes([3]))
    assert list(store.read_record(tmp_path).matching(runs, REPOSITORY)) == [first.name]


def test_the_record_gives_back_what_was_added_and_keeps_runs_of_one_name_apart(tmp_path: Path) -> None:
    first, second = tiny_runs(tmp_path / "plan")[:2]
    store.add(tmp_path, recorded(first), outcomes([3, 0], [0, 4]))
    store.add(tmp_path, recorded(second), outcomes([1, 1], [0, 0]))
    again = store.add(tmp_path, recorded(second, seconds=5.0), outcomes([2, 2], [2, 2]))
    record = store.read_record(tmp_path)
    assert record.runs == (recorded(first), recorded(second), again)
    assert again.id == f"{second.name}-2"
    rows = {(row["id"], row["task_id"]): row["trained"] for row in record.outcomes.to_dicts()}
    assert rows[first.name, "a"] == [3, 0]
    assert rows[second.name, "b"] == [0, 0]
    assert rows[again.id, "b"] == [2, 2]


def test_outcomes_whose_line_was_not_written_any_more_do_not_count(tmp_path: Path) -> None:
    first, second = tiny_runs(tmp_path / "plan")[:2]
    store.add(tmp_path, recorded(first), outcomes([3]))
    before = (tmp_path / store.RUNS).read_text()
    store.add(tmp_path, recorded(second), outcomes([4]))
    (tmp_path / store.RUNS).write_text(before)  # as after a kill between the two files
    record = store.read_record(tmp_path)
    assert [run.id for run in record.runs] == [first.name]
    assert set(record.outcomes["id"]) == {first.name}
    store.add(tmp_path, recorded(second), outcomes([5]))
    rows = store.read_record(tmp_path).outcomes.to_dicts()
    assert {row["id"]: row["trained"] for row in rows} == {first.name: [3], second.name: [5]}


def test_a_run_without_its_outcomes_is_refused(tmp_path: Path) -> None:
    first, second = tiny_runs(tmp_path / "plan")[:2]
    store.add(tmp_path, recorded(first), outcomes([3]))
    before = (tmp_path / store.OUTCOMES).read_bytes()
    store.add(tmp_path, recorded(second), outcomes([4]))
    (tmp_path / store.OUTCOMES).write_bytes(before)
    with pytest.raises(StorageError, match=f"no outcomes of {second.name}; restore it from git"):
        store.read_record(tmp_path)


def test_who_shares_a_start_waits_for_the_first_and_other_starts_go_meanwhile(tmp_path: Path) -> None:
    queue = Queue(tiny_runs(tmp_path))
    taken = [queue.next() for _ in range(5)]
    assert [run and run.name for run in taken] == [
        "small-grpo-seed10",
        "large-grpo-seed10",
        "small-grpo-seed11",
        "large-grpo-seed11",
        None,
    ]
    queue.done(taken[1])
    assert queue.next().name == "large-segcost-seed10"
    assert queue.next() is None
    queue.done(taken[0])
    assert queue.next().name == "small-segcost-seed10"


def test_benchmarks_that_differ_in_training_alone_share_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SHARED["benchmarks"]["large"], "base", ["smoke", "dr_grpo"])  # its algorithm
    queue = Queue(tiny_runs(tmp_path))
    taken = [queue.next() for _ in range(3)]
    assert [run and run.name for run in taken] == ["small-grpo-seed10", "small-grpo-seed11", None]
    queue.done(taken[0])
    assert [queue.next().name for _ in range(3)] == [
        "small-segcost-seed10", "large-grpo-seed10", "large-segcost-seed10"
    ]  # fmt: skip


def test_the_forecast_goes_by_whole_runs_of_the_method_then_of_the_benchmark(tmp_path: Path) -> None:
    runs = tiny_runs(tmp_path)
    grpo, segcost, large, _ = runs[:4]
    done = [recorded(grpo, 100.0), recorded(segcost, 200.0), recorded(segcost, 7.0, resumed=True)]
    missing = [run for run in runs[4:] if run.benchmark == "small"]
    assert remaining(missing, done, at_once=2) == 150.0
    assert remaining([*missing, large], done, at_once=2) is None
    lines = list(describe(missing, done, 4, 2, datetime(2026, 1, 1, 12, tzinfo=UTC)))
    assert lines == [
        "2 of 4 runs are recorded; 2.5 min to go, 2 at once, until Thu 12:02",
        "  small: 2 missing, 2.5 min each, 2.5 min to go",
    ]
    assert in_words(3 * 3600 + 5 * 60) == "3 h 05 min"


def test_clearing_takes_the_workspace_and_the_runs_own_large_files_alone(tmp_path: Path) -> None:
    cache, workspace = tmp_path / "cache", tmp_path / "workspace"
    sizes = {"aa01": LARGE_BYTES, "aa02": 10, "aa03": LARGE_BYTES}
    for digest, size in sizes.items():
        (cache / digest[:2]).mkdir(parents=True, exist_ok=True)
        (cache / digest[:2] / digest[2:]).write_bytes(bytes(size))
    workspace.mkdir()
    (workspace / "dvc.lock").write_text(
        "stages:\n"
        "  prepare_policy: {outs: [{path: models/base, md5: aa03}]}\n"
        "  evaluate_policy: {outs: [{path: a, md5: aa01}, {path: b, md5: aa02}]}\n"
    )
    assert clear(workspace, cache) >= LARGE_BYTES
    assert not workspace.exists()
    assert sorted(path.name for path in (cache / "aa").iterdir()) == ["02", "03"]


def test_the_plan_of_the_study_resolves_where_its_small_policies_are_there(repository: Path) -> None:
    plan = read_plan(repository / "params" / "study")
    for benchmark, methods in plan.chosen().items():
        bases = [repository / "params" / f"{name}.yaml" for name in plan.benchmarks[benchmark].base]
        if all(base.is_file() for base in bases):
            assert {
                run.params["processes"] for run in planned_runs(plan, {benchmark: methods}, repository)
            } == {1}


def test_clearing_leaves_what_the_start_has_too_such_as_its_tokenizer(tmp_path: Path) -> None:
    cache, workspace = tmp_path / "cache", tmp_path / "workspace"
    folders = {"aa11.dir": ["bb01", "bb02"], "aa12.dir": ["bb01", "bb03"]}  # bb01: the tokenizer
    for digest, files in folders.items():
        path = cache / digest[:2] / digest[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{"md5": file, "relpath": file} for file in files]))
    (cache / "bb").mkdir()
    for name in ("01", "02", "03"):
        (cache / "bb" / name).write_bytes(bytes(LARGE_BYTES))
    workspace.mkdir()
    (workspace / "dvc.lock").write_text(
        "stages:\n"
        "  prepare_policy: {outs: [{path: models/base, md5: aa11.dir}]}\n"
        "  train_policy: {outs: [{path: models/policy, md5: aa12.dir}]}\n"
    )
    clear(workspace, cache)
    assert sorted(path.name for path in (cache / "bb").iterdir()) == ["01", "02"]
