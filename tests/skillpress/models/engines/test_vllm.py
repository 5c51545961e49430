"""The engines ``vllm`` and ``server`` with vLLM itself (its CPU build: ``make test-vllm``).

A small policy and SmolLM2-135M play Countdown, and the learner scores each of their tokens too. If an
algorithm makes one update per step, the ratio of its first pass is that between learner and engine, and must
be 1.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import yaml

from skillpress.core.engine import Completion, Request, Sampling
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory, WeightSpan
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import merge
from skillpress.experiment.training import train
from skillpress.models.engines.launcher import SCRATCH
from skillpress.models.engines.serve import ModelServer, ServerOptions
from skillpress.models.policy import load_policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.collection import requests
from tests.support.programs import PROGRAMS, importing
from tests.support.programs.training_program import job, parameters, prepare

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make test-vllm"),
]

PRETRAINED = "smollm2-135m"


@dataclass(frozen=True)
class Case:
    """A policy that plays and learns."""

    overlay: str
    demonstrations: int
    """Number of demonstrations that it is trained on first; 0 for none."""
    episodes: int
    """Number of episodes played while a server is killed."""
    killed_after: int
    """Number of these episodes after which the server is killed."""
    wins: bool
    """Whether it wins now and then."""
    transfer: str
    """How a training's weights reach the servers."""


CASES = {
    "small": Case(
        overlay="""
environment: {max_steps: 8, max_numbers: 3}
policy: {width: 64}
training: {steps: 3, minibatches: 1, checkpoint_every: 5}
""",
        demonstrations=4000,
        episodes=256,
        killed_after=40,
        wins=True,
        transfer="collective",
    ),
    # It never wins, so its advantages are 0 and only the KL term changes its weights.
    PRETRAINED: Case(
        overlay="""
environment: {max_steps: 2, max_numbers: 3}
policy: {model: smollm2-135m, context_tokens: 128}
sampling: {max_new_tokens: 8}
algorithm: {kl_coefficient: 0.1}
training: {steps: 3, tasks_per_step: 2, rollouts_per_task: 2, minibatches: 1, checkpoint_every: 5}
""",
        demonstrations=0,
        episodes=32,
        killed_after=8,
        wins=False,
        transfer="http",
    ),
}
LARGEST_DIFFERENCE = 1e-4
"""Maximum difference, in nats, between the engine's and the learner's log-probability of a token, both in
float32."""
READY_SECONDS = 1800.0
"""Maximum wait; it takes half a minute on an idle machine."""


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each of them."""
    return CASES[request.param]


@pytest.fixture(scope="module")
def folder(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its tasks and its policy."""
    path = tmp_path_factory.mktemp("vllm")
    prepare(path, case.overlay, case.demonstrations)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def options(folder: Path) -> ServerOptions:
    model, params = folder / "start", parameters(folder, smoke=True)
    most = json.loads((model / "config.json").read_text())["max_position_embeddings"]
    longest = min(most, params.policy.context_tokens + params.sampling.max_new_tokens)
    return ServerOptions(
        model=str(model), port=free_port(), longest=longest, dtype="float32", slots=64, cache_gib=0.25
    )


def still_alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """The processes that have not ended within a minute; zombies count as ended."""

    def alive(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.status() != psutil.STATUS_ZOMBIE
        return False

    until = time.monotonic() + 60
    while any(map(alive, processes)) and time.monotonic() < until:
        time.sleep(0.2)
    return [process for process in processes if alive(process)]


def use(case: Case, folder: Path, engine: str) -> None:
    """Use this engine in the folder's experiment."""
    (folder / "overlay.yaml").write_text(f"{case.overlay}\n{engine}\n")


def assert_learned_from_what_was_sampled(case: Case, curve: list[dict[str, float]]) -> None:
    """Every step has compared the engine with the learner, whose weights the previous step changed."""
    assert [row["step"] for row in curve] == [1, 2, 3]
    print(*(f"{row['step']:.0f}: {row['mismatch/mean']:.2g} {row['mismatch/largest']:.2g}" for row in curve))
    for row in curve:
        assert row["mismatch/largest"] < LARGEST_DIFFERENCE
        assert abs(row["approximate_kl"]) < 1e-6 and row["clip_fraction"] == 0
        assert row["tokens_trained"] > 0 and np.isfinite(row["loss"])
    assert not case.wins or max(row["success"] for row in curve) > 0


def test_vllm_in_process_trains(case: Case, folder: Path) -> None:
    use(case, folder, "engine: {name: vllm, cache_gib: 0.25}")
    program = f"""
import json, torch
from pathlib import Path
from tests.support.programs.training_program import job
from skillpress.experiment.training import train
torch.set_num_threads(1)
print(json.dumps(train(job(Path({str(folder)!r}), "in-process"))))
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=importing()
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert_learned_from_what_was_sampled(case, json.loads(finished.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-4), ("bfloat16", 0.3)])
def test_a_tied_head_takes_new_weights_whole_and_a_second_engine_starts_from_its_own(
    dtype: str, limit: float
) -> None:
    command = [sys.executable, str(PROGRAMS / "sampling_program.py"), PRETRAINED, dtype]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=importing())
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = json.loads(finished.stdout.splitlines()[-1])
    print(dtype, found)
    assert found["before"] < limit and found["after"] < limit < found["with the wrong weights"]
    assert found["version"] == 1 and found["of a second engine"] < limit
    assert found["share computed again"] < 0.6, "of 58 to 60 tokens, a block of 32 was in the prefix cache"


@pytest.fixture(scope="module")
def launcher(folder: Path) -> Iterator[tuple[ServerOptions, subprocess.Popen[bytes]]]:
    """A server started by the command."""
    chosen = options(folder)
    words = [
        "--model", chosen.model, "--port", str(chosen.port), "--longest", str(chosen.longest),
        "--slots", "64", "--cache-gib", "0.25", "--dtype", "float32",
        "--log", str(folder / "launched.log"), "--wait", str(READY_SECONDS),
    ]  # fmt: skip
    command = [sys.executable, "-m", "skillpress.models.engines.serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield chosen, process
        process.kill()


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ModelServer]:
    """A server started by a program."""
    with ModelServer(options(folder), folder / "server.log") as server:
        yield server


@pytest.fixture(scope="module")
def urls(launcher: tuple[ServerOptions, subprocess.Popen[bytes]], server: ModelServer) -> Iterator[list[str]]:
    """The URLs of both servers, once they are ready."""
    chosen, process = launcher
    server.wait_until_ready(READY_SECONDS)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"ready: ")
    yield [chosen.url, server.options.url]
    below = psutil.Process(server.pid).children(recursive=True)
    assert below
    server.stop()
    assert still_alive(below) == [] and not server.scratch.exists()


def test_a_web_page_calls_nothing_of_a_server(urls: list[str]) -> None:
    call = b'{"method": "check_health"}'
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        for path in ("collective_rpc", "v1/models"):
            plain = urllib.request.Request(
                f"{urls[0]}/{path}", call, {"Content-Type": "text/plain", **headers}
            )
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(plain, timeout=60)


def test_two_processes_train_with_two_servers(
    case: Case, folder: Path, urls: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    engine = f"{{name: server, urls: {urls}, answer_seconds: 1200, transfer: {case.transfer}}}"
    use(case, folder, f"processes: 2\nengine: {engine}")
    assert_learned_from_what_was_sampled(case, train(job(folder, "served")))
    assert "gets weights over HTTP" not in capfd.readouterr().err


def test_open_responses_continue_under_new_weights(case: Case, folder: Path, urls: list[str]) -> None:
    """The log-probability of every token is that of the weights that its span names, given all tokens before
    it: what was computed by older weights is computed again."""
    use(case, folder, f"engine: {{name: server, urls: {urls}, answer_seconds: 1200}}")
    params = parameters(folder, smoke=True)
    policy, changed = load_policy(folder / "start"), load_policy(folder / "start")
    with torch.no_grad():
        for number, weight in enumerate(changed.model.parameters()):
            generator = torch.Generator().manual_seed(number)
            weight += 0.02 * weight.std() * torch.randn(weight.shape, generator=generator)
    engine = Experiment(params).engine(policy)
    sampling = Sampling(max_new_tokens=params.sampling.max_new_tokens)
    length = min(40, options(folder).longest - sampling.max_new_tokens)
    prompts = [tuple(range(5 + key, 5 + key + length)) for key in range(case.episodes)]
    answers: list[tuple[tuple[int, ...], Completion]] = []
    crossing: list[Completion] = []
    try:
        for version in range(1, 21):  # an update may find all responses between their ends and beginnings
            engine.submit([Request(key, prompt, sampling, key) for key, prompt in enumerate(prompts)])
            found: dict[int, Completion] = {}
            while len(found) < len(prompts) // 8:
                found |= dict(engine.completed(600.0))
            engine.update_weights((changed if version % 2 else policy).model.state_dict(), version)
            while len(found) < len(prompts):
                found |= dict(engine.completed(600.0))
            answers += [(prompts[key], found[key]) for key in range(len(prompts))]
            crossing = [each for _, each in answers if len(each.weight_spans) > 1]
            if crossing:
                break
    finally:
        engine.close()
    print(len(crossing), "of", len(answers), "responses have tokens of both weights")
    assert crossing
    pairs = pack_responses([(prompt, each.token_ids) for prompt, each in answers])
    sampled = np.concatenate([each.logprobs for _, each in answers])
    for weights, odd in ((policy, 0), (changed, 1)):
        with torch.no_grad():
            scored, _ = ResponseScorer(weights.model)(pairs, 1.0)
        drew = np.concatenate([_drew(each, odd) for _, each in answers])
        assert np.abs(scored.numpy() - sampled)[drew].max() < LARGEST_DIFFERENCE


def _drew(completion: Completion, odd: int) -> np.ndarray:
    """[tokens] whether weights of an odd version drew each, or of an even one."""
    drew = np.zeros(len(completion.token_ids), np.bool_)
    for span in completion.weight_spans:
        drew[span.start : span.end] = span.version % 2 == odd
    return drew


def test_a_training_continues_its_rollouts_under_new_weights(
    case: Case, folder: Path, urls: list[str]
) -> None:
    keys = "{steps: 4, checkpoint_every: 8, lag: 2}"
    overlay = merge(yaml.safe_load(case.overlay), {"training": yaml.safe_load(keys)})
    engine = {"name": "server", "urls": urls, "answer_seconds": 1200}
    (folder / "overlay.yaml").write_text(yaml.safe_dump({**overlay, "engine": engine}))
    curve = train(job(folder, "continuing"))
    print(*(f"{row['step']:.0f}: {row['staleness']:.2f} {row['groups_too_old']:.0f}" for row in curve))
    assert curve[0]["staleness_oldest"] == 0 and curve[0]["mismatch/largest"] < LARGEST_DIFFERENCE
    assert 0 < max(row["staleness_oldest"] for row in curve) <= 2


@pytest.mark.kills
def test_a_server_that_is_killed_loses_no_episode(
    case: Case,
    folder: Path,
    urls: list[str],
    launcher: tuple[ServerOptions, subprocess.Popen[bytes]],
) -> None:
    use(case, folder, f"engine: {{name: server, urls: {urls}, answer_seconds: 1200}}")
    experiment = Experiment(job(folder, "killed").params)
    policy = load_policy(folder / "start")
    engine = experiment.engine(policy)
    _, process = launcher
    below = psutil.Process(process.pid).children(recursive=True)
    scratch = Path(below[0].environ()[SCRATCH])
    assert any(scratch.iterdir()), "its sockets"
    found: dict[int, Trajectory] = {}

    def keep(number: int, trajectory: Trajectory) -> None:
        assert number not in found
        found[number] = trajectory
        if len(found) == case.killed_after:
            os.kill(process.pid, signal.SIGKILL)

    wanted = requests(read_tasks(folder / "train.parquet")[: case.episodes // 4], 4, 0, "killed")
    agent = experiment.agent(policy, engine, experiment.training_sampling)
    with closing(agent), experiment.collector(agent) as collector:
        collector.play(enumerate(wanted), keep)
    assert len(found) == len(wanted) == case.episodes
    for number, asked in enumerate(wanted):
        assert (found[number].task_id, found[number].rollout_index) == (
            asked.task.task_id,
            asked.rollout_index,
        )
    steps = [step for trajectory in found.values() for step in trajectory.steps]
    assert {step.weight_spans for step in steps} == {
        (WeightSpan(0, 0, len(step.response_ids)),) for step in steps
    }
    with torch.no_grad():
        scored, _ = ResponseScorer(policy.model)(
            pack_responses([(step.prompt_ids, step.response_ids) for step in steps]), 1.0
        )
    sampled = [logprob for step in steps for logprob in step.logprobs]
    assert float(np.abs(scored.numpy() - sampled).max()) < LARGEST_DIFFERENCE
    assert still_alive(below) == [] and not scratch.exists()
