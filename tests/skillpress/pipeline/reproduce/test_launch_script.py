"""The schedulers' scripts are complete, fit the experiment, and pass all checks that need no cluster.

These checks are shellcheck (Debian's package), Kubernetes' own schemas (the package kubernetes-validate), and
for SkyPilot the fields that its manual names, since its schema comes only with a hundred dependencies. No
scheduler has run the scripts.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from skillpress.core.errors import ParamsError
from skillpress.pipeline.reproduce import __main__ as reproduce
from skillpress.pipeline.reproduce.launch_script import SCHEDULERS, Machines, launch_script
from skillpress.pipeline.reproduce.workspace import Variant

ROOT = Path(__file__).parents[4]
KUBERNETES = ("1.28", "1.37")
"""The oldest version with a schema and pod-to-pod names of indexed Jobs, and the newest with a schema."""
SKYPILOT_FIELDS = frozenset(
    {"name", "workdir", "num_nodes", "resources", "envs", "secrets", "volumes", "file_mounts", "setup", "run"}
)
"""Fields of a task in SkyPilot's reference of its YAML."""
PAPER = Variant((ROOT / "params" / "paper_alfworld.yaml",), 3)


def filled(tmp_path: Path, scheduler: str, nodes: int = 2, gpus: bool = True, processes: int = 16) -> str:
    """The script for the paper's experiment on this many processes."""
    overlay = tmp_path / "many.yaml"
    overlay.write_text(f"processes: {processes}\ntraining: {{tasks_per_step: 16}}\n")
    variant = Variant((*PAPER.overlays, overlay), 3)
    return launch_script(variant, Machines(scheduler, nodes, gpus), ROOT)


def shellcheck(script: str) -> str:
    """Shellcheck's findings in a bash script; empty if there are none."""
    command = ["shellcheck", "--shell=bash", "-"]
    return subprocess.run(command, input=script, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("gpus", [True, False])
def test_nothing_is_left_to_fill_in_and_it_says_that_it_was_never_run(
    scheduler: str, gpus: bool, tmp_path: Path
) -> None:
    script = filled(tmp_path, scheduler, gpus=gpus)
    assert "{{" not in script and "{%" not in script
    assert "This template was never run" in script
    assert f"--params {ROOT}/params/paper_alfworld.yaml" in script and "--seed 3 " in script
    assert ("gpu" in script or "accelerators:" in script) == gpus


def test_shellcheck_is_asked() -> None:
    assert "SC2086" in shellcheck("cd $HOME/x || exit; rm $1")


def test_slurms_script_passes_shellcheck_and_asks_for_one_task_a_rank(tmp_path: Path) -> None:
    script = filled(tmp_path, "slurm")
    assert shellcheck(script) == ""
    lines = script.splitlines()
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=8", "#SBATCH --gpus-per-node=8"} <= set(lines)
    last = max(row for row, line in enumerate(lines) if line.startswith("#SBATCH"))
    assert all(line.startswith("#") for line in lines[:last]), "SLURM reads options up to the first command"


def test_kubernetes_gets_a_service_and_an_indexed_job(tmp_path: Path) -> None:
    service, job = yaml.safe_load_all(filled(tmp_path, "kubernetes"))
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    spec: dict[str, Any] = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    (container,) = spec["template"]["spec"]["containers"]
    assert "--nproc-per-node=8" in container["command"] and container["command"][-2:] == [
        "tasks",
        "train_policy",
    ]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    volumes = {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("gpus", [True, False])
def test_kubernetes_own_schemas_accept_both(version: str, gpus: bool, tmp_path: Path) -> None:
    service, job = yaml.safe_load_all(filled(tmp_path, "kubernetes", gpus=gpus))
    for manifest in (service, job):
        kubernetes_validate.validate(manifest, version, strict=True)
    job["spec"]["completionsMode"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError, match="completionsMode"):
        kubernetes_validate.validate(job, version, strict=True)


def test_a_long_name_leaves_room_for_what_kubernetes_puts_behind_it(tmp_path: Path) -> None:
    overlays = []
    for number in range(4):
        overlays.append(tmp_path / f"an_overlay_with_a_long_name_{number}.yaml")
        overlays[-1].write_text("{}\n")
    names = set()
    for variant in (Variant(tuple(overlays)), Variant(tuple(overlays[:3]))):
        service, _ = yaml.safe_load_all(launch_script(variant, Machines("kubernetes", 1, False), ROOT))
        names.add(service["metadata"]["name"])
    assert len(names) == 2 and all(len(name) <= 52 for name in names)


def test_skypilot_gets_a_task_of_documented_fields_whose_commands_pass_shellcheck(tmp_path: Path) -> None:
    task = yaml.safe_load(filled(tmp_path, "skypilot"))
    assert set(task) <= SKYPILOT_FIELDS
    assert (task["num_nodes"], task["resources"]) == (2, {"accelerators": "H100:8"})
    assert shellcheck(task["run"]) == ""


def test_processes_that_the_nodes_cannot_share_evenly_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"processes: is 16, which 3 nodes \(--nodes\) cannot share evenly"):
        filled(tmp_path, "slurm", nodes=3)


def test_the_command_prints_the_script_and_submits_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--dry-run", "--launch", "slurm", "--nodes", "2"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/bash\n# the default experiment: training on 2 nodes")
    with pytest.raises(SystemExit):
        reproduce.main(["--launch", "slurm"])
    assert "submits nothing" in capsys.readouterr().err
