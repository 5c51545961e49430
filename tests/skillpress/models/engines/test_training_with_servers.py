"""Trainings with servers: one of them dies, or their responses continue under new weights. These tests run
without vLLM in every run of the tests; ``make test-vllm`` does the same with vLLM's own servers."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
import yaml

from skillpress.core.rollout_files import iterate_rollouts
from skillpress.experiment.params import merge
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


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_rollouts_continue_under_new_weights_within_the_lag(processes: int, tmp_path: Path) -> None:
    """A server is slow with every seventh token, so that updates find responses half drawn."""
    prepare(tmp_path, OVERLAY, demonstrations=500)
    policy = load_policy(tmp_path / "start")
    keys = {"lag": 2, "steps": 6, "checkpoint_every": 6, "learning_rate": 0.01}
    drawn = itertools.count()

    def pause(server: ProtocolServer, before: int) -> None:
        if next(drawn) % 7 == 0:
            threading.Event().wait(0.1)

    with ProtocolServer(policy, policy.context_length) as server:
        server.between_tokens = pause
        engine = {"name": "server", "urls": [server.url], "answer_seconds": 120}
        overlay = merge(yaml.safe_load(OVERLAY), {"training": keys, "engine": engine, "processes": processes})
        (tmp_path / "overlay.yaml").write_text(yaml.safe_dump(overlay))
        curve = train(job(tmp_path, "continuing"))
        assert server.weights_name.endswith("-6")
    assert max(row["staleness_oldest"] for row in curve) <= 2
    assert curve[0]["staleness_oldest"] == 0 < max(row["staleness"] for row in curve)
    assert all(row["groups_too_old"] >= 0 for row in curve)
    assert max(row.get("mismatch/largest", 0) for row in curve) < 1e-4
    played = list(iterate_rollouts(tmp_path / "training-continuing.parquet"))
    spans = [step.weight_spans for episode in played for step in episode.steps if step.response_ids]
    assert any(len(each) > 1 for each in spans), "a response has tokens of two weights"
    for episode in played:
        versions = [span.version for step in episode.steps for span in step.weight_spans]
        assert versions == sorted(versions) and episode.policy_version <= versions[0]
