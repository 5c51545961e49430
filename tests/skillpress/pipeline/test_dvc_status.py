"""The stages that an edit reruns according to DVC itself, after the first stage has run."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillpress.pipeline.graph import read_stages
from tests.support.clone import Clone

EVERYWHERE = {"prepare_tasks", "prepare_policy", "collect_rollouts", "filter_tasks", "project_skills",
              "fit_dictionary", "train_policy", "play_floors", "evaluate_policy", "report"}  # fmt: skip


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which DVC considers every stage done: the outputs exist, whatever they contain."""
    clone = Clone(repository, tmp_path_factory.mktemp("status"))
    pin(clone)
    for stage in read_stages(clone.folder / "dvc.yaml"):
        for output in stage.outputs:
            path = clone.folder / output
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(f"{output}\n")
    committed = clone.python("dvc", "commit", "--force", "--quiet")
    assert committed.returncode == 0, committed.stderr
    return clone


def pin(clone: Clone) -> str:
    """Run the first stage; returns what it says has changed."""
    done = clone.python("skillpress.pipeline.inputs")
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if ": changed: " in line)


def changed_stages(clone: Clone) -> set[str]:
    """The stages that ``dvc status`` names, except the one that always runs."""
    status = clone.python("dvc", "status")
    assert status.returncode == 0, status.stderr
    names = {line.rstrip(":") for line in status.stdout.splitlines() if line and not line[0].isspace()}
    return names & EVERYWHERE


@pytest.mark.parametrize(
    ("file", "line", "stages"),
    [
        ("skillpress/training/algorithms/grpo.py", "MORE = 1", {"train_policy"}),
        ("skillpress/training/algorithms/grpo.py", "# a comment", set()),
        ("skillpress/training/loop/describing/probes.py", "MORE = 1", set()),
        ("skillpress/core/trajectory.py", "MORE = 1", EVERYWHERE),
        ("docs/evaluation.md", "More.", set()),
    ],
)
def test_an_edit_reruns_the_stages_that_it_decides(
    file: str, line: str, stages: set[str], finished: Clone
) -> None:
    path = finished.folder / file
    before = path.read_bytes()
    path.write_bytes(before + f"\n{line}\n".encode())
    try:
        said = pin(finished)
        assert {each.partition(":")[0] for each in said.splitlines()} == stages
        assert changed_stages(finished) == stages
    finally:
        path.write_bytes(before)
        pin(finished)


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
    pin(finished)
    fingerprint = json.loads((finished.folder / "data" / "fingerprints" / "train_policy.json").read_text())
    assert fingerprint["libraries"].keys() == pinned
    subprocess.run(["git", "checkout", "--quiet", "params.yaml"], cwd=finished.folder, check=True)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_an_engine_that_is_not_installed_is_said_before_any_stage(finished: Clone) -> None:
    finished.set_params({"processes": 1, "engine": {"name": "vllm", "cache_gib": 1.0}})
    refused = finished.python("skillpress.pipeline.inputs")
    assert refused.returncode == 2 and "which is not installed here" in refused.stderr
    subprocess.run(["git", "checkout", "--quiet", "params.yaml"], cwd=finished.folder, check=True)
