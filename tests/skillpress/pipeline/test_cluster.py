"""``--cluster`` reaches the stage that trains on the cluster."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from skillpress.pipeline.cluster import VARIABLE, add_cluster_options, name_gang, named_gang
from skillpress.pipeline.reproduce.launch_script import add_launch_options
from skillpress.rollouts.workers.gang import Gang
from skillpress.rollouts.workers.ray_cluster import ClusterError


def chosen(*words: str):
    parser = ArgumentParser()
    add_launch_options(parser)
    add_cluster_options(parser)
    return parser.parse_args(words)


def test_a_stage_finds_the_cluster_that_the_command_line_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    name_gang(chosen("--cluster", "node0:6379", "--nodes", "2", "--gpus", "--restarts", "5"), processes=4)
    assert named_gang() == Gang("node0:6379", nodes=2, gpus=True, restarts=5)
    found = named_gang(["tasks/train_policy.py", "skillpress/core/seeds.py", "my_lab/method.py"])
    assert found is not None and found.code == ("my_lab/method.py", "tasks/train_policy.py")


def test_without_one_training_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert named_gang() is None


def test_nodes_that_cannot_share_the_processes_evenly_are_refused() -> None:
    with pytest.raises(ClusterError, match="processes: is 3, which 2 nodes cannot share evenly"):
        name_gang(chosen("--cluster", "node0:6379", "--nodes", "2"), processes=3)
