"""The whole experiment, in small, with the real DVC and MLflow, in a fresh clone."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from skillpress.core.rollout_files import TRAJECTORY_KEY, scan_rollouts
from skillpress.pipeline.files import (
    BASE_ROLLOUTS,
    EVALUATION_ROLLOUTS,
    TRAINING_ADVANTAGES,
    TRAINING_ROLLOUTS,
)
from skillpress.pipeline.reproduce.workspace import FOLDER
from skillpress.skills.history import read_history
from skillpress.training.loop.describing.trained_episodes import scan_advantages
from tests.support.clone import SAID, Clone
from tests.support.recorded import tracked

pytestmark = pytest.mark.slow

STAGES = [
    "prepare_tasks", "prepare_policy", "collect_rollouts", "filter_tasks", "project_skills",
    "fit_dictionary", "train_policy", "play_floors", "evaluate_policy", "report",
]  # fmt: skip


@pytest.fixture(scope="module")
def clone(reproduced: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which the experiment has been reproduced once."""
    return reproduced.copied(tmp_path_factory.mktemp("pipeline"))


def test_a_run_makes_every_stage_and_says_where_the_report_is(reproduced: Clone) -> None:
    said = (reproduced.folder.parent / SAID).read_text()
    assert reproduced.ran(said) == STAGES
    *_, report, change = said.splitlines()
    assert report == f"report: {reproduced.folder}/results/report.html"
    number = r"[+-]\d+\.\d"
    level = r"\d+\.\d% \(\d+\.\d to \d+\.\d\)"
    assert re.match(
        rf"Success of one training on \d+ held-out tasks: {level}; start {level}, random player {level}\. "
        rf"Training changed success by {number} points \({number} to {number}\)",
        change,
    )
    first = (reproduced.folder / "results" / "report.html").read_text().partition("<h1>")[2].splitlines()[1]
    assert f"{change.partition(' docs/')[0]} In brackets" in html.unescape(first)


def test_other_users_can_read_neither_the_episodes_of_a_run_nor_its_database(reproduced: Clone) -> None:
    folder = reproduced.folder
    modes = {path: (folder / path).stat().st_mode & 0o777 for path in
             (".dvc/cache", "data/rollouts", "mlruns", "mlruns/mlflow.db")}  # fmt: skip
    assert modes == {".dvc/cache": 0o700, "data/rollouts": 0o700, "mlruns": 0o700, "mlruns/mlflow.db": 0o600}


def test_a_second_run_with_nothing_changed_runs_nothing(clone: Clone) -> None:
    again = clone.python("skillpress.pipeline.reproduce")
    assert again.returncode == 0
    assert clone.ran(again.stdout) == []


def test_a_changed_parameter_reruns_only_the_stages_that_read_it(clone: Clone) -> None:
    before = (clone.folder / "params.yaml").read_text()
    clone.set_params({"evaluation": {"runs": 3}})
    try:
        assert clone.ran(clone.python("skillpress.pipeline.reproduce").stdout) == [
            "play_floors", "evaluate_policy", "report",
        ]  # fmt: skip
    finally:
        (clone.folder / "params.yaml").write_text(before)
    back = clone.python("skillpress.pipeline.reproduce")
    assert clone.ran(back.stdout) == []  # restored from DVC's cache


def test_training_is_left_the_tasks_that_the_start_policy_wins_as_often_as_the_parameters_say(
    clone: Clone, tmp_path: Path
) -> None:
    train, kept = (clone.folder / "data" / folder / "train.parquet" for folder in ("tasks", "kept"))
    assert kept.read_bytes() == train.read_bytes(), "without tasks.keep"
    before = (clone.folder / "params.yaml").read_text()
    rates = pl.read_parquet(clone.folder / "data" / "rollouts" / "pass_rates.parquet")
    clone.set_params({"tasks": {"keep": {"at_least": 0.0, "at_most": 0.9}}})
    elsewhere = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    try:
        done = clone.python("tasks", "filter_tasks", **elsewhere)
        assert done.returncode == 0, done.stderr
        lost = rates.filter(pl.col("wins") < pl.col("rollouts"))
        assert set(pl.read_parquet(kept)["task_id"]) == set(lost["task_id"])
        counted = json.loads((clone.folder / "results" / "kept_tasks.json").read_text())
    finally:
        (clone.folder / "params.yaml").write_text(before)
        assert clone.python("tasks", "filter_tasks", **elsewhere).returncode == 0
    tasks, played = pl.read_parquet(train).height, rates.height
    assert counted == {
        "tasks": tasks, "kept": lost.height, "below": 0, "above": played - lost.height,
        "not_played": tasks - played,
    }  # fmt: skip
    assert kept.read_bytes() == train.read_bytes()


def test_dvc_shows_metrics_and_plots(clone: Clone) -> None:
    shown = json.loads(clone.python("dvc", "metrics", "show", "--json").stdout)
    metrics = shown[""]["data"]["results/metrics.json"]["data"]
    assert set(metrics) == {"explorer", "start", "trained"}
    assert 0 <= metrics["trained"]["pass_at_1"] <= 1
    plots = clone.python("dvc", "plots", "show")
    page = Path(plots.stdout.strip().splitlines()[-1].removeprefix("file://")).read_text()
    assert all(title in page for title in ("Success while training", "Success within a step budget"))


def test_mlflow_has_one_parent_and_one_nested_run_per_stage(clone: Clone) -> None:
    client, runs = tracked(clone)
    parents = [
        run
        for run in runs
        if run.data.tags["level"] == "experiment" and run.data.params["evaluation.runs"] == "2"
    ]
    assert len(parents) == 1
    nested = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parents[0].info.run_id]
    assert sorted(run.data.tags["dvc.stage"] for run in nested) == sorted(STAGES)
    assert {run.info.status for run in [*nested, *parents]} == {"FINISHED"}
    training = next(run for run in nested if run.data.tags["dvc.stage"] == "train_policy")
    history = client.get_metric_history(training.info.run_id, "success")
    assert [point.step for point in history] == [1, 2, 3, 4]
    assert "dvc.dep.models/base" in training.data.tags
    assert "report.html" in {item.path for item in client.list_artifacts(parents[0].info.run_id)}


def test_a_sample_of_the_episodes_of_each_stage_that_plays_stands_in_mlflow(clone: Clone) -> None:
    client, runs = tracked(clone)
    experiment = runs[0].info.experiment_id
    played = {"collect_rollouts": BASE_ROLLOUTS, "train_policy": TRAINING_ROLLOUTS}
    for stage, path in (played | {"evaluate_policy": EVALUATION_ROLLOUTS}).items():
        of_stage = [run for run in runs if run.data.tags.get("dvc.stage") == stage]
        run = min(of_stage, key=lambda run: run.info.start_time)  # later ones had other parameters
        traces = client.search_traces(locations=[experiment], run_id=run.info.run_id)
        groups = {trace.info.tags["group_id"] for trace in traces}
        assert 0 < len(traces) <= 8
        assert groups <= set(scan_rollouts(clone.folder / path).collect()["group_id"])


def test_training_leaves_groups_of_its_episodes_with_what_they_taught(clone: Clone) -> None:
    """Four steps of four groups are few enough to keep all of them."""
    rollouts = scan_rollouts(clone.folder / TRAINING_ROLLOUTS).collect()
    lessons = scan_advantages(clone.folder / TRAINING_ADVANTAGES).collect()
    key = list(TRAJECTORY_KEY)
    assert rollouts[key].equals(lessons[key])
    groups = lessons.group_by("training_step", "group_id").agg(pl.col("rollout_index").n_unique())
    assert groups["rollout_index"].to_list() == [4] * 16
    taught = lessons.group_by("training_step").agg(pl.col("advantage").abs().max()).sort("training_step")
    curve = pl.read_csv(clone.folder / "results" / "training.csv", infer_schema_length=None)
    assert (taught["advantage"] > 0).to_list() == (curve["zero_advantage"] < 1).to_list()
    returns = lessons.unique([*key, "training_step"]).group_by("training_step").agg(pl.col("return").mean())
    assert returns.sort("training_step")["return"].to_list() == pytest.approx(curve["return"].to_list())


def test_the_dictionary_comes_with_its_bounds_its_savings_and_its_history(clone: Clone) -> None:
    fitted = json.loads((clone.folder / "results" / "dictionary.json").read_text())
    assert fitted["description_length"] <= fitted["description_length_of_singletons"]
    assert fitted["bounds.empirical.learned_bits"] == pytest.approx(fitted["description_length"])
    assert 0 < fitted["bounds.half_sample.singletons_loss"] <= 1
    phrases = pl.read_csv(clone.folder / "results" / "phrases.csv")
    assert len(phrases) == fitted["phrases"]
    history = read_history(clone.folder / "results" / "dictionaries.json")
    curve = pl.read_csv(clone.folder / "results" / "training.csv", infer_schema_length=None)
    assert list(history) == [0, *curve.filter(pl.col("success") > 0)["step"]], "it begins with the start's"
    client, runs = tracked(clone)
    training = next(run for run in runs if run.data.tags.get("dvc.stage") == "train_policy")
    assert "dictionaries.json" in {item.path for item in client.list_artifacts(training.info.run_id)}
    fitting = next(run for run in runs if run.data.tags.get("dvc.stage") == "fit_dictionary")
    assert fitting.data.metrics["dictionary/bounds.half_sample.learned_bits"] > 0


def test_the_registered_policy_can_be_loaded_by_mlflow_and_is_the_trained_one(clone: Clone) -> None:
    code = (
        "import mlflow, torch\n"
        "from skillpress.models.policy import load_policy\n"
        "found = mlflow.transformers.load_model('models:/skillpress-countdown/1', return_type='components')\n"
        "ours = load_policy('models/policy').model.state_dict()\n"
        "theirs = found['model'].state_dict()\n"
        "assert ours.keys() == theirs.keys()\n"
        "assert all(torch.equal(ours[k], theirs[k]) for k in ours)\n"
    )
    uri = f"sqlite:///{clone.folder}/mlruns/mlflow.db"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=clone.folder,
        check=True,
        env=clone.environment | {"MLFLOW_TRACKING_URI": uri},
    )


def test_every_policy_played_every_test_task_in_every_run(clone: Clone) -> None:
    rollouts = pl.read_parquet(clone.folder / "data" / "rollouts" / "evaluation.parquet")
    episodes = rollouts.select("policy", "run", "task_id", "rollout_index").unique()
    counts = episodes.group_by("policy", "run").len().sort("policy", "run")
    played = [(policy, run) for policy in ("explorer", "start", "trained") for run in (0, 1)]
    assert counts.rows() == [(*each, 32) for each in played]
    groups = rollouts.select("group_id", "policy", "run", "task_id").unique()
    assert len(groups) == groups["group_id"].n_unique() == 6 * 32, "a group is one task's rollouts of one run"
    assert rollouts["first_observation"].str.len_chars().min() > 0
    assert set(rollouts["reward_parts"].explode().struct.field("name")) == {"success", "invalid"}


def test_a_damaged_file_is_made_again_by_the_next_run(clone: Clone) -> None:
    damaged = clone.folder / "data" / "rollouts" / "base.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    stage = clone.python("tasks", "project_skills")
    assert stage.returncode == 2
    assert stage.stderr.strip().startswith(
        "project_skills: data/rollouts/base.parquet: not a readable Parquet"
    )
    assert clone.python("skillpress.pipeline.reproduce").returncode == 0
    assert damaged.read_bytes() == whole


def test_splits_that_overlap_are_refused(clone: Clone) -> None:
    test, train = (clone.folder / "data" / "tasks" / f"{split}.parquet" for split in ("test", "train"))
    clean = test.read_bytes()
    stray = pl.read_parquet(train).head(1).with_columns(split=pl.lit("test"))
    metadata = pl.read_parquet_metadata(test)
    pl.concat([pl.read_parquet(test), stray]).write_parquet(
        test, metadata={"skillpress": metadata["skillpress"]}
    )
    try:
        stage = clone.python("tasks", "evaluate_policy")
    finally:
        test.write_bytes(clean)
    assert stage.returncode == 2
    assert "evaluate_policy: splits overlap: puzzle" in stage.stderr


def test_a_model_folder_that_is_none_is_refused(clone: Clone) -> None:
    before = (clone.folder / "params.yaml").read_text()
    clone.set_params({"policy": {"model": "results", "rendering": "text"}})
    try:
        stage = clone.python("tasks", "prepare_policy")
    finally:
        (clone.folder / "params.yaml").write_text(before)
    assert stage.returncode == 2
    assert "prepare_policy: results: not a Hugging Face causal language model" in stage.stderr


def test_a_wrong_parameter_stops_the_run_before_any_stage(clone: Clone) -> None:
    before = (clone.folder / "params.yaml").read_text()
    clone.set_params({"training": {"stepps": 3}})
    try:
        run = clone.python("skillpress.pipeline.reproduce")
    finally:
        (clone.folder / "params.yaml").write_text(before)
    assert run.returncode == 2
    assert "training.stepps: unknown key" in run.stderr
    assert clone.ran(run.stdout) == []


def test_a_variant_runs_in_a_workspace_of_its_own_and_shares_what_is_the_same(clone: Clone) -> None:
    here = (clone.folder / "results" / "evaluation.json").read_bytes()
    run = clone.python("skillpress.pipeline.reproduce", "--params", "params/grpo.yaml")
    assert run.returncode == 0, run.stdout + run.stderr
    assert clone.ran(run.stdout) == ["train_policy", "evaluate_policy", "report"]
    assert (clone.folder / FOLDER / "grpo" / "results" / "report.html").exists()
    assert (clone.folder / "results" / "evaluation.json").read_bytes() == here


WATCHED_STAGES = """
import json, sys
from importlib import import_module
from pydantic import BaseModel
from skillpress.experiment.params import load_params
from skillpress.core.resume import ResumeStore
from skillpress.pipeline.stage import Stage
from skillpress.pipeline.tracking.recorder import Recorder

params = load_params()
sections = {type(value): name for name, value in params if isinstance(value, BaseModel)}
read = set()
plain = BaseModel.__getattribute__

def watched(self, name):
    if name in type(self).model_fields:
        if type(self) in sections:
            read.add(f"{sections[type(self)]}.{name}")
        elif self is params and name not in sections.values():
            read.add(name)
    return plain(self, name)

BaseModel.__getattribute__ = watched
found = {}
for stage in sys.argv[1:]:
    run = Recorder(stage, params, "key")
    read.clear()
    work = import_module(f"tasks.{stage}").main
    work(Stage(stage, params, run, ResumeStore(f"checkpoints/{stage}", "key")))
    run.finish("FINISHED")
    found[stage] = sorted(read)
print(json.dumps(found))
"""

OTHER_WAY = {
    "filter_tasks": {"tasks.train", "tasks.validation", "tasks.test"},
    "fit_dictionary": {"skills.library"},
    "prepare_policy": {"policy.dtype"},
    "train_policy": {
        "algorithm.importance_cap", "algorithm.name", "experience.name", "policy.domain_tokens",
        "policy.heads", "policy.layers", "policy.model", "policy.width", "skills.start",
    },
}  # fmt: skip
"""Keys that a stage does not read here. ``tasks.keep``, ``skills.dictionaries`` and ``policy.quantised`` are
not in params.yaml, so their sections are named whole; the policy's shape reaches training by models/base.
``policy.dtype`` is for pretrained models, and ``importance_cap`` for importance weights. Names of the
algorithm and of the experience select classes before any stage reads. What ``skills.start`` decides is in a
file that training reads."""


def test_a_stage_reads_the_parameters_that_dvc_yaml_names_and_no_others(clone: Clone) -> None:
    """The report prints all parameters; the sections ``environment`` and ``engine`` are passed on whole, and
    ``workers`` decides no result. A whole section in dvc.yaml includes its keys that params.yaml leaves at
    their defaults."""
    stages = [stage for stage in STAGES if stage != "report"]
    (clone.folder / "watched_stages.py").write_text(WATCHED_STAGES)
    run = clone.python("watched_stages", *stages)
    assert run.returncode == 0, run.stdout + run.stderr
    read = {stage: set(keys) for stage, keys in json.loads(run.stdout.splitlines()[-1]).items()}
    params = yaml.safe_load((clone.folder / "params.yaml").read_text())
    graph = yaml.safe_load((clone.folder / "dvc.yaml").read_text())["stages"]
    wrong = {}
    for stage in stages:
        keys = graph[stage]["params"]
        named = {leaf for key in keys for leaf in leaves(params, key)}
        named |= {key for key in read[stage] if key.split(".")[0] in keys}
        different = (named ^ read[stage]) - OTHER_WAY.get(stage, set())
        elsewhere = ("environment.", "engine.", "workers.")
        wrong[stage] = {key for key in different if not key.startswith(elsewhere)}
    assert not any(wrong.values()), wrong


def leaves(params: dict, key: str) -> list[str]:
    """Turns ``training`` into its keys; ``training.steps`` and ``seed`` stay as they are."""
    section = params[key.split(".")[0]]
    return [f"{key}.{name}" for name in section] if isinstance(section, dict) and "." not in key else [key]
