"""What the paper's trainings cost at most, by hand from their parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.evaluation.paper.manifest import PLACE, Manifest, read_manifest
from skillpress.pipeline.papers.cost import forecast, hours, node_cost
from skillpress.pipeline.papers.planned import Machine, planned, scaled_params
from skillpress.pipeline.reproduce.devices import GB


@pytest.fixture(scope="module")
def manifest(repository: Path) -> Manifest:
    return read_manifest(repository / PLACE)


def test_the_hours_of_a_training_by_hand(manifest: Manifest) -> None:
    """Countdown: T = 30 and 2,560 tokens a step; 300 x 16 x 8 episodes of training, 1,024 of the start's
    rollouts, and 3 x 1,024 of the explorer, of the start and of the trained policy."""
    node = manifest.scales["paper"].node
    assert node is not None
    trained, others, explored = 38_400, 1_024 + 2 * 3_072, 3_072
    sampled = 30 * 2_560 * (trained + others) / 20_000
    learned = 30 * 2_560 * trained * (1 + 0.25 / 3) / 8_000
    played = 30 * (trained + others + explored) * 0.005
    assert hours(scaled_params(manifest.scales["paper"], "countdown"), node) == pytest.approx(
        (sampled + learned + played) / 8 / 3_600
    )


def test_a_training_fits_the_node_that_the_manifest_names_and_leaves_models_rollouts_and_checkpoints(
    manifest: Manifest,
) -> None:
    scale = manifest.scales["paper"]
    run = planned(manifest, ["Table 4"], "paper", Machine()).runs()[0]
    assert scale.node is not None
    found = node_cost(run, scale.node)
    assert found.fitting.startswith("fits 8 GPUs of 80 GB, 66.4 GB of each while sampling")
    weights, step = 1_543_714_304, 256 + 4 * 2_560 + 16 * 512
    rollouts = (1_024 + 3 * 3_072) * 30 * step
    checkpoints = 2 * 14 * weights
    assert found.disk_gb * GB == pytest.approx(2 * (2 * 2 * weights + rollouts) + checkpoints)


def test_a_forecast_sums_all_runs_and_says_that_its_rates_are_examples(manifest: Manifest) -> None:
    needed = planned(manifest, ["Table 1"], "paper", Machine())
    *benchmarks, every = forecast(needed, needed.runs())
    assert [line.split(";")[1] for line in benchmarks] == [
        " each at most 33.1 hours on 8 GPUs (265 GPU-hours) and 68 GB of disk",
        " each at most 26.9 hours on 8 GPUs (215 GPU-hours) and 77 GB of disk",
        " each at most 20.2 hours on 8 GPUs (162 GPU-hours) and 67 GB of disk",
    ]
    assert every.startswith("all: 12 trainings, at most 2,567 GPU-hours and ") and every.endswith("examples")


def test_a_small_scale_says_what_its_runs_took(manifest: Manifest) -> None:
    needed = planned(manifest, ["Table 4"], "small", Machine())
    (line,) = forecast(needed, needed.runs())
    assert line.startswith(
        "countdown: 12 trainings, grpo, round_length, segcost, segcost_no_buffer with seed 10,"
    )
    assert line.endswith("; each took about 3.4 minutes, two beside each other on two cores (0.3 hours)")
