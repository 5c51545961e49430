"""The engines ``vllm`` and ``server`` with vLLM itself (its CPU build: ``make test-vllm``).

Countdown by a small policy, whose every token is scored by the learner too: where an algorithm makes one
update a step, the ratio of its first pass is that of learner and engine, and must be 1.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from training_program import job, prepare

from skillpress.engines.serve import ModelServer, ServerOptions
from skillpress.experiment import Experiment
from skillpress.experiment.training import train
from skillpress.policy import load_policy
from skillpress.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollout import requests
from skillpress.trajectory import Trajectory, read_tasks

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make test-vllm"),
]

HERE = Path(__file__).parent
OVERLAY = """
environment: {max_steps: 8, max_numbers: 3}
policy: {width: 64}
training: {steps: 3, minibatches: 1, checkpoint_every: 5}
"""
READY_SECONDS = 1800.0
"""Half a minute where nothing else runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks, and a policy that wins now and then."""
    path = tmp_path_factory.mktemp("vllm")
    prepare(path, OVERLAY)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def options(folder: Path) -> ServerOptions:
    model = folder / "start"
    longest = json.loads((model / "config.json").read_text())["max_position_embeddings"]
    return ServerOptions(
        model=str(model), port=free_port(), longest=longest, dtype="float32", slots=64, cache_gib=1.0
    )


def still_alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended within a minute; what nobody has buried counts as ended."""

    def alive(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.status() != psutil.STATUS_ZOMBIE
        return False

    until = time.monotonic() + 60
    while any(map(alive, processes)) and time.monotonic() < until:
        time.sleep(0.2)
    return [process for process in processes if alive(process)]


def use(folder: Path, engine: str) -> None:
    """The experiment of the folder with this engine."""
    (folder / "overlay.yaml").write_text(f"{OVERLAY}\n{engine}\n")


def assert_learned_from_what_was_sampled(curve: list[dict[str, float]]) -> None:
    assert [row["step"] for row in curve] == [1, 2, 3]
    for row in curve:
        assert abs(row["approximate_kl"]) < 1e-6 and row["clip_fraction"] == 0
        assert row["tokens_trained"] > 0 and np.isfinite(row["loss"])
    assert max(row["success"] for row in curve) > 0


def test_vllm_in_process_trains(folder: Path) -> None:
    use(folder, "engine: {name: vllm, cache_gib: 1.0}")
    program = f"""
import json, sys, torch
from pathlib import Path
sys.path.insert(0, {str(HERE.parent / "experiment")!r})
from training_program import job
from skillpress.experiment.training import train
torch.set_num_threads(1)
print(json.dumps(train(job(Path({str(folder)!r}), "in-process"))))
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert_learned_from_what_was_sampled(json.loads(finished.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-4), ("bfloat16", 0.3)])
def test_a_pretrained_model_with_a_tied_head_takes_new_weights_whole(dtype: str, limit: float) -> None:
    command = [sys.executable, str(HERE / "sampling_program.py"), "smollm2-135m", dtype]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(finished.stdout.splitlines()[-1])
    print(dtype, found)
    assert found["before"] < limit and found["after"] < limit < found["with the wrong weights"]
    assert found["version"] == 1


@pytest.fixture(scope="module")
def launcher(folder: Path) -> Iterator[tuple[ServerOptions, subprocess.Popen[bytes]]]:
    """A server as the command starts it."""
    chosen = options(folder)
    words = [
        "--model", chosen.model, "--port", str(chosen.port), "--longest", str(chosen.longest),
        "--slots", "64", "--cache-gib", "1", "--dtype", "float32",
        "--log", str(folder / "launched.log"), "--wait", str(READY_SECONDS),
    ]  # fmt: skip
    command = [sys.executable, "-m", "skillpress.engines.serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield chosen, process
        process.kill()


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ModelServer]:
    """A server as a program starts it."""
    with ModelServer(options(folder), folder / "server.log") as server:
        yield server


@pytest.fixture(scope="module")
def urls(launcher: tuple[ServerOptions, subprocess.Popen[bytes]], server: ModelServer) -> Iterator[list[str]]:
    """Both, ready."""
    chosen, process = launcher
    server.wait_until_ready(READY_SECONDS)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"ready: ")
    yield [chosen.url, server.options.url]
    below = psutil.Process(server.pid).children(recursive=True)
    assert below
    server.stop()
    assert still_alive(below) == []


def test_two_processes_train_with_two_servers(folder: Path, urls: list[str]) -> None:
    use(folder, f"processes: 2\nengine: {{name: server, urls: {urls}, answer_seconds: 300}}")
    assert_learned_from_what_was_sampled(train(job(folder, "served")))


def test_a_server_that_is_killed_loses_no_episode(
    folder: Path, urls: list[str], launcher: tuple[ServerOptions, subprocess.Popen[bytes]]
) -> None:
    use(folder, f"engine: {{name: server, urls: {urls}, answer_seconds: 300}}")
    experiment = Experiment(job(folder, "killed").params)
    policy = load_policy(folder / "start")
    engine = experiment.engine(policy)
    _, process = launcher
    below = psutil.Process(process.pid).children(recursive=True)
    found: dict[int, Trajectory] = {}

    def keep(number: int, trajectory: Trajectory) -> None:
        assert number not in found
        found[number] = trajectory
        if len(found) == 40:
            os.kill(process.pid, signal.SIGKILL)

    wanted = requests(read_tasks(folder / "train.parquet"), 4, 0, "killed")
    agent = experiment.agent(policy, engine, experiment.training_sampling)
    with closing(agent), experiment.collector(agent) as collector:
        collector.play(enumerate(wanted), keep)
    assert len(found) == len(wanted)
    for number, asked in enumerate(wanted):
        assert (found[number].task_id, found[number].rollout_index) == (
            asked.task.task_id,
            asked.rollout_index,
        )
    steps = [step for trajectory in found.values() for step in trajectory.steps]
    with torch.no_grad():
        scored, _ = ResponseScorer(policy.model)(
            pack_responses([(step.prompt_ids, step.response_ids) for step in steps]), 1.0
        )
    sampled = [logprob for step in steps for logprob in step.logprobs]
    assert float(np.abs(scored.numpy() - sampled).max()) < 1e-4
    assert still_alive(below) == []
