"""The schedulers' scripts are complete, fit the experiment, and pass all checks that need no cluster.

The script for one machine is run, with a stand-in for Python that starts nothing heavy: it shows which GPUs
each process gets, and what ends when. The other checks are shellcheck (Debian's package), Kubernetes'
own schemas (the package kubernetes-validate), and for SkyPilot the fields that its manual names, since its
schema comes only with a hundred dependencies. No scheduler has run the scripts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
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
    script = filled(tmp_path, scheduler, nodes=1 if scheduler == "machine" else 2, gpus=gpus)
    assert "{{" not in script and "{%" not in script
    assert ("This template was never run" in script) == (scheduler != "machine")
    assert f"--params {ROOT}/params/paper_alfworld.yaml" in script and "--seed 3 " in script
    asked = ("gpus-per-node", "nvidia.com/gpu", "accelerators:", "CUDA_VISIBLE_DEVICES")
    assert any(word in script for word in asked) == gpus


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


SERVERS = Variant((*PAPER.overlays, ROOT / "params" / "servers.yaml"))


@pytest.mark.parametrize("gpus", [True, False])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_node_with_servers_gets_one_script_that_passes_shellcheck(scheduler: str, gpus: bool) -> None:
    script = launch_script(SERVERS, Machines(scheduler, 1, gpus), ROOT)
    if scheduler == "kubernetes":
        _, job = yaml.safe_load_all(script)
        kubernetes_validate.validate(job, KUBERNETES[-1], strict=True)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["command"][:2] == ["bash", "-c"]
        assert ("resources" in container) == gpus
        assert not gpus or container["resources"]["limits"] == {"nvidia.com/gpu": 8}
        script = container["command"][2]
    elif scheduler == "skypilot":
        task = yaml.safe_load(script)
        assert not gpus or task["resources"] == {"accelerators": "H100:8"}
        script = task["run"]
    elif scheduler == "slurm":
        asked = {"#SBATCH --nodes=1", "#SBATCH --ntasks-per-node=1"} | (
            {"#SBATCH --gpus-per-node=8"} if gpus else set()
        )
        assert asked <= set(script.splitlines())
    assert shellcheck(script) == ""
    assert ("CUDA_VISIBLE_DEVICES" in script) == gpus
    assert "--longest 2560" in script and "--dtype bfloat16 --slots 32 --cache-gib 4.0" in script


def test_servers_at_an_address_of_one_machine_cannot_serve_several_nodes() -> None:
    with pytest.raises(ParamsError, match=r"http://127.0.0.1:8801 is another server on each of 2 nodes"):
        launch_script(SERVERS, Machines("slurm", 2, True), ROOT)
    with pytest.raises(ParamsError, match="--launch machine is for one"):
        launch_script(PAPER, Machines("machine", 2, True), ROOT)


def test_a_script_for_gpus_that_do_not_suffice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dry-run", "--launch", "machine", "--params", str(PAPER.overlays[0])]
    assert reproduce.main([*options, "--devices", "8", "--device-memory", "40"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "refused: does not fit 8 devices of 40 GB" in shown.err


STAND_IN = """#!/bin/bash
case "$*" in
  *engines.serve*)
    words="$*"; port=${words#*--port }; port=${port%% *}
    [ "$port" = "$BROKEN" ] && { echo "no memory"; exit 2; }
    echo "server $port on $CUDA_VISIBLE_DEVICES" >>"$SEEN"
    trap 'echo "server $port ended" >>"$SEEN"; exit 0' TERM
    echo "ready: http://127.0.0.1:$port"
    while :; do sleep 0.05; done ;;
  *--stages*) echo "prepared on $CUDA_VISIBLE_DEVICES" >>"$SEEN" ;;
  *)
    echo "trained on $CUDA_VISIBLE_DEVICES" >>"$SEEN"
    [ -n "$SLOW" ] && exec sleep 60
    exit "${CODE:-0}" ;;
esac
"""
"""A program in place of Python, which writes into the file SEEN what would run where."""


def node(tmp_path: Path, **variables: str) -> tuple[subprocess.Popen[str], Path]:
    """The script of a node of two ranks and two servers, started with the stand-in; and the file SEEN."""
    repository, seen = tmp_path / "repository", tmp_path / "seen"
    (repository / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(ROOT / "infra", repository / "infra")
    shutil.copy(ROOT / "params.yaml", repository)
    stand_in = repository / ".venv" / "bin" / "python"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    overlay = tmp_path / "node.yaml"
    overlay.write_text(
        "processes: 2\nengine: {name: server, answer_seconds: 9.0, "
        "urls: ['http://127.0.0.1:1', 'http://127.0.0.1:2']}"
    )
    script = launch_script(Variant((overlay,)), Machines("machine", 1, True), repository)
    environment = {**os.environ, "SEEN": str(seen), "BROKEN": "", "SLOW": "", **variables}
    process = subprocess.Popen(
        ["bash", "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return process, seen


def test_each_process_gets_its_gpus_and_servers_end_with_the_experiment(tmp_path: Path) -> None:
    process, seen = node(tmp_path, CUDA_VISIBLE_DEVICES="4,5,6,7")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    lines = seen.read_text().splitlines()
    assert lines[0] == "prepared on 4,5"
    assert sorted(lines[1:3]) == ["server 1 on 6", "server 2 on 7"] and lines[3] == "trained on 4,5"
    assert sorted(lines[4:]) == ["server 1 ended", "server 2 ended"]
    assert "ready: http://127.0.0.1:2" in said


def test_a_lost_rank_is_tried_again_with_new_servers_and_a_mistake_is_not(tmp_path: Path) -> None:
    process, seen = node(tmp_path, CODE="1")
    process.communicate(timeout=90)
    lines = seen.read_text().splitlines()
    assert (
        process.returncode == 1 and lines.count("trained on 0,1") == 3 and lines.count("server 1 on 2") == 3
    )
    shutil.rmtree(tmp_path / "repository")
    seen.unlink()
    process, seen = node(tmp_path, CODE="2")
    process.communicate(timeout=60)
    assert process.returncode == 2 and seen.read_text().count("trained") == 1


def test_a_server_that_does_not_come_is_named_with_its_log_and_the_other_is_ended(tmp_path: Path) -> None:
    process, seen = node(tmp_path, BROKEN="2")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the server on port 2 did not come; its log is " in said and "/logs/server-2.log" in said
    assert "no memory" in said
    assert "trained" not in seen.read_text() and "server 1 ended" in seen.read_text()


def test_a_script_that_is_ended_ends_what_it_started(tmp_path: Path) -> None:
    process, seen = node(tmp_path, SLOW="yes")
    until = time.monotonic() + 60
    while not (seen.exists() and "trained" in seen.read_text()):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert sorted(seen.read_text().splitlines()[-2:]) == ["server 1 ended", "server 2 ended"]


def test_too_few_gpus_are_said_before_anything_starts(tmp_path: Path) -> None:
    process, seen = node(tmp_path, CUDA_VISIBLE_DEVICES="0,1,2")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2 and not seen.exists()
    assert "this script needs 4 GPUs, and CUDA_VISIBLE_DEVICES gives it 3" in said
