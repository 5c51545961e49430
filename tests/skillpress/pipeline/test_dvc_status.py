"""What an edit reruns, as DVC itself says: what describes a result never decides one."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from skillpress.pipeline.graph import read_stage
from tests.support.clone import Clone

TRAINED = {"train_policy"}
PLAYED = {"prepare_policy", "collect_rollouts", "train_policy", "play_floors", "evaluate_policy"}
EVERYWHERE = {"prepare_tasks", "prepare_policy", "collect_rollouts", "project_skills", "fit_dictionary",
              "train_policy", "play_floors", "evaluate_policy", "report"}  # fmt: skip


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which DVC takes every stage for done: its outputs are there, whatever is in them."""
    clone = Clone(repository, tmp_path_factory.mktemp("status"))
    values = yaml.safe_load((clone.folder / "params.yaml").read_text())
    stages = yaml.safe_load((clone.folder / "dvc.yaml").read_text())["stages"]
    for name in stages:
        for output in read_stage(name, values, clone.folder / "dvc.yaml").outputs:
            path = clone.folder / output
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(f"{output}\n")
    committed = clone.python("dvc", "commit", "--force", "--quiet")
    assert committed.returncode == 0, committed.stderr
    return clone


def changed_stages(clone: Clone) -> set[str]:
    """The stages that ``dvc status`` names, but for the one that always runs."""
    status = clone.python("dvc", "status")
    assert status.returncode == 0, status.stderr
    names = {line.rstrip(":") for line in status.stdout.splitlines() if line and not line[0].isspace()}
    return names & EVERYWHERE


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("skillpress/measure/paper/text.py", {"report"}),
        ("skillpress/measure/paper/printed_figures.csv", {"report"}),
        ("skillpress/show/report/templates/report.css", {"report"}),
        ("skillpress/measure/analysis/drift.py", {"fit_dictionary", "report"}),
        ("skillpress/learn/algorithms/rloo.py", set()),
        ("infra/deepspeed/zero3_bf16.json", set()),
        ("skillpress/environments/alfworld/searcher.py", set()),
        ("docs/evaluation.md", set()),
        ("skillpress/pipeline/tracking/recorder.py", set()),
        ("infra/deepspeed/zero1_fp32.json", TRAINED),
        ("skillpress/learn/algorithms/grpo.py", {"train_policy", "report"}),  # its parameters are printed
        ("skillpress/learn/training/learner.py", TRAINED),
        ("skillpress/core/trajectory.py", EVERYWHERE),
        ("data/inputs.json", PLAYED),
    ],
)
def test_an_edit_reruns_the_stages_that_it_decides(file: str, stages: set[str], finished: Clone) -> None:
    path = finished.folder / file
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    try:
        assert changed_stages(finished) == stages
    finally:
        path.write_bytes(before)


def test_the_contents_of_the_model_that_is_named_are_an_input(finished: Clone, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    finished.set_params({"policy": {"model": str(model), "rendering": "text"}})
    found = []
    for content in ("{}", '{"a": 1}'):
        (model / "config.json").write_text(content)
        written = finished.python("skillpress.pipeline.inputs")
        assert written.returncode == 0, written.stderr
        found.append((finished.folder / "data" / "inputs.json").read_text())
    assert found[0] != found[1]
    subprocess.run(["git", "checkout", "--quiet", "params.yaml"], cwd=finished.folder, check=True)


@pytest.mark.parametrize(
    ("engine", "pinned"),
    [
        ({"name": "local"}, {"torch", "transformers", "deepspeed"}),
        (
            {"name": "server", "urls": ["http://127.0.0.1:1"], "answer_seconds": 60.0},
            {"torch", "transformers", "deepspeed", "vllm"},
        ),
    ],
)
def test_the_version_of_what_samples_is_an_input(
    engine: dict[str, object], pinned: set[str], finished: Clone
) -> None:
    finished.set_params({"engine": engine})
    written = finished.python("skillpress.pipeline.inputs")
    assert written.returncode == 0, written.stderr
    inputs = json.loads((finished.folder / "data" / "inputs.json").read_text())
    assert inputs["libraries"].keys() == pinned
    subprocess.run(["git", "checkout", "--quiet", "params.yaml"], cwd=finished.folder, check=True)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_an_engine_that_is_not_installed_is_said_before_any_stage(finished: Clone) -> None:
    finished.set_params({"processes": 1, "engine": {"name": "vllm", "cache_gib": 1.0}})
    refused = finished.python("skillpress.pipeline.inputs")
    assert refused.returncode == 2 and "which is not installed here" in refused.stderr
    subprocess.run(["git", "checkout", "--quiet", "params.yaml"], cwd=finished.folder, check=True)
