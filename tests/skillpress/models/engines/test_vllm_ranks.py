"""Engine ``vllm`` in each of two processes, with vLLM's CPU build (``make test-vllm``)."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from skillpress.experiment.training import train
from skillpress.rollouts.workers.ranks import free_port, run_ranks
from tests.support.experiment.small_training import prepared
from tests.support.models.vllm_ranks import engines_end
from tests.support.programs.training_program import job

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM: make test-vllm"),
]

OVERLAY = """
environment: {max_steps: 8, max_numbers: 3}
policy: {width: 64}
training: {steps: 3, minibatches: 1, checkpoint_every: 5}
engine: {name: vllm, cache_gib: 0.25}
processes: 2
"""
CLOCK = ("seconds/", "time_share/", "environment_steps_per_second")
"""Beginnings of metrics that measure time."""


folder = prepared(OVERLAY, demonstrations=1000)


def trained(folder: Path, output: str) -> list[dict[str, float]]:
    """The training's curve, without measurements of time."""
    curve = train(job(folder, output))
    return [{key: value for key, value in row.items() if not key.startswith(CLOCK)} for row in curve]


def test_two_processes_train_each_with_its_own_engine(folder: Path) -> None:
    curve = trained(folder, "two")
    assert [row["step"] for row in curve] == [1, 2, 3]
    for row in curve:
        assert row["tokens_trained"] > 0 and row["mismatch/largest"] < 1e-4
    below = psutil.Process().children(recursive=True)
    assert [each for each in below if "resource_tracker" not in " ".join(each.cmdline())] == []
    # Environments in the process step when the engine has nothing to do, so no clock decides what is batched.
    assert trained(folder, "again") == curve


@pytest.mark.parametrize("connected", [True, False])
def test_the_end_of_an_engine_leaves_ranks_as_it_found_them(folder: Path, connected: bool) -> None:
    port = free_port() if connected else None
    found = run_ranks(partial(engines_end, str(folder / "start"), port), 2)
    for first, second, there, group in found:
        assert first == second, "of the same weights and seeds"
        assert there == ([0, 1] if connected else []) and group == connected
    assert found[0][0] != found[1][0], "each rank has samples of its own"
