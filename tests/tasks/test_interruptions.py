"""Ctrl-C and a full disk in every stage of a real experiment: one message, and the next run continues."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import psutil
import pytest

from tests.support.clone import Clone

pytestmark = pytest.mark.slow

STAGES = [
    "prepare_tasks", "prepare_policy", "collect_rollouts", "filter_tasks", "project_skills",
    "fit_dictionary", "train_policy", "play_floors", "evaluate_policy", "report",
]  # fmt: skip

FULL_DISK = """
import json, subprocess, sys
from pathlib import Path

def stage(name):
    return subprocess.run([sys.executable, "-m", "tasks", name], capture_output=True, text=True)

found = {}
for name in sys.argv[1:]:
    try:
        with open("filler", "wb") as filler:
            while True:
                filler.write(bytes(4096))
                filler.flush()
    except OSError:
        pass
    full = stage(name)
    Path("filler").unlink()
    found[name] = [full.returncode, full.stderr, stage(name).returncode]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def clone(reproduced: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which the experiment has been reproduced once."""
    return reproduced.copied(tmp_path_factory.mktemp("interrupted"))


def outputs(clone: Clone) -> dict[str, bytes]:
    """Path to content of everything that the stages wrote, without measured times."""
    folders = [clone.folder / name for name in ("data", "models")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(clone.folder)): path.read_bytes() for path in files}


USUAL = {"prepare_policy", "train_policy", "report"}
"""Stages that every test run includes: two that resume, and the one that ends an experiment."""


@pytest.mark.kills
@pytest.mark.parametrize(
    "stage",
    [name if name in USUAL else pytest.param(name, marks=pytest.mark.thorough) for name in STAGES],
)
def test_ctrl_c_is_one_line_and_the_next_run_makes_what_was_there(clone: Clone, stage: str) -> None:
    before = outputs(clone)
    process = clone.start("tasks", stage)
    wait_for_child(process.pid)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.strip().splitlines()[-1].startswith(f"{stage}: interrupted; ")
    assert "Traceback" not in said
    again = clone.python("skillpress.pipeline.reproduce")
    assert again.returncode == 0, again.stdout + again.stderr
    assert outputs(clone) == before


def wait_for_child(pid: int) -> None:
    """Wait until the stage has started its recorder, and so has begun."""
    wait_for(lambda: bool(psutil.Process(pid).children()), 60)


def wait_for(happened: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.thorough  # every suite kills a whole run (test_kills.py) and a training (test_training_job.py)
@pytest.mark.kills
@pytest.mark.parametrize(
    ("stage", "kind", "overlay"),
    [
        ("prepare_policy", "demonstrations", {"imitation": {"demonstrations": 12_000}}),
        ("play_floors", "episodes", {"evaluation": {"runs": 200}}),
    ],
)
def test_a_stage_that_was_stopped_in_the_middle_goes_on_and_makes_the_same(
    clone: Clone, stage: str, kind: str, overlay: dict, tmp_path: Path
) -> None:
    folder = tmp_path / "long"
    clone = clone.copied(folder)
    clone.set_params(overlay)
    assert clone.python("tasks", stage).returncode == 0
    before = outputs(clone)
    with (tmp_path / "said").open("w+") as said:
        process = clone.start("tasks", stage, output=said)
        if stage == "prepare_policy":  # saves every 10,000 steps
            wait_for(lambda: any(folder.glob(f"checkpoints/**/{kind}-*")), 60)
            process.kill()
        else:  # saves every 20 seconds, and when it gets the signal to stop
            progress = re.compile(r"% [1-9]\d*/\d+ .*episode/s")  # at least one episode is finished
            wait_for(lambda: bool(progress.search((tmp_path / "said").read_text())), 60)
            process.send_signal(signal.SIGINT)
    process.wait(60)
    parts = sorted(folder.glob(f"checkpoints/**/{kind}-*"))
    assert parts and parts[0].stat().st_size > 1000
    again = clone.python("tasks", stage)
    assert again.returncode == 0, again.stderr
    after = outputs(clone)
    same_rollouts(after.pop(FLOORS), before.pop(FLOORS))
    assert after == before
    assert not any((folder / "checkpoints").iterdir())


FLOORS = "data/rollouts/floors.parquet"


def same_rollouts(one: bytes, other: bytes) -> None:
    """Equal except for rounding, which differs between batches and may change a rare draw."""
    frames = [pl.read_parquet(io.BytesIO(content)) for content in (one, other)]
    episode = ["group_id", "rollout_index"]
    steps = [frame.group_by(episode).agg(pl.exclude("logprobs")) for frame in frames]
    assert len(steps[0]) == len(steps[1])
    shared = steps[0].join(steps[1], on=steps[0].columns)
    assert len(steps[0]) - len(shared) <= len(steps[0]) // 5000


@pytest.mark.thorough
def test_a_full_disk_is_one_line_in_every_stage_and_the_next_run_goes_on(
    clone: Clone, tmp_path: Path
) -> None:
    unshare = shutil.which("unshare")
    (clone.folder / "full_disk.py").write_text(FULL_DISK)
    used = subprocess.run(["du", "-slm", str(clone.folder)], capture_output=True, text=True, check=True)
    room = 32 + int(used.stdout.split()[0])  # MiB
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room}m", "none", str(tmp_path)]
    if unshare is None or subprocess.run([unshare, "-Urm", *mount], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk in a namespace of his own")
    inside = f'{" ".join(mount)} && cp -r "$0"/. {tmp_path} && cd {tmp_path} && exec "$@"'
    run = subprocess.run(
        [unshare, "-Urm", "sh", "-c", inside, str(clone.folder), sys.executable, "full_disk.py", *STAGES],
        env=clone.environment | {"MLFLOW_TRACKING_URI": f"sqlite:///{clone.folder}/mlruns/mlflow.db"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for stage, (full, said, after) in json.loads(run.stdout.splitlines()[-1]).items():
        assert full == 2, f"{stage} on a full disk: {said}"
        assert "Traceback" not in said and f"{stage}: " in said and "space" in said.lower(), said
        assert after == 0, f"{stage} with room again"
