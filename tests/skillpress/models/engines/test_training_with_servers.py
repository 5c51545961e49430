"""Two processes learn from the samples of two servers, one of which dies. This test runs without vLLM in
every run of the tests; ``make test-vllm`` does the same with vLLM's own servers."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from skillpress.experiment.training import train
from skillpress.models.policy import load_policy
from tests.support.models.protocol_server import ProtocolServer
from tests.support.programs.training_program import job, prepare

OVERLAY = """
environment: {max_steps: 4, max_numbers: 3}
training: {steps: 3, minibatches: 1, checkpoint_every: 5}
algorithm: {kl_coefficient: 0.1}
"""
"""The KL term changes the weights even if no rollout is better than another."""
DIES_AFTER = 40
"""Number of requests after which a server dies; a step sends about 60 to two servers."""


@pytest.mark.slow
def test_two_processes_train_with_two_servers_of_which_one_dies(tmp_path: Path) -> None:
    prepare(tmp_path, OVERLAY, demonstrations=500)
    policy = load_policy(tmp_path / "start")

    def die(server: ProtocolServer) -> None:
        if len(server.asked) == DIES_AFTER:
            threading.Thread(target=server.die).start()

    with (
        ProtocolServer(policy, policy.context_length) as stays,
        ProtocolServer(policy, policy.context_length) as dies,
    ):
        dies.before_answer = die
        engine = f"engine: {{name: server, urls: [{stays.url}, {dies.url}], answer_seconds: 120}}"
        (tmp_path / "overlay.yaml").write_text(f"{OVERLAY}\nprocesses: 2\n{engine}\n")
        curve = train(job(tmp_path, "served"))
    assert [row["step"] for row in curve] == [1, 2, 3]
    assert min(row["tokens_trained"] for row in curve) > 0
    assert max(row["mismatch/largest"] for row in curve) < 1e-4
    assert len(dies.asked) >= DIES_AFTER and stays.weights_name.endswith("-3")
