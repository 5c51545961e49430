"""Corpora, dictionaries and shapings of our own train, and go on bit for bit after an interruption."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from skillpress.experiment.params import read_yaml
from tests.support.experiment.killed_training import same_weights
from tests.support.experiment.small_training import StoppedError, prepared, train_small

ROOT = Path(__file__).parents[3]
SMALL = {
    "processes": 1,
    "training": {"steps": 3, "learning_rate": 0.01},
    "environment": {"max_steps": 8, "max_numbers": 3},
}


folder = prepared(SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [("skills_decayed", "skills_per_class", "centred", "bits"), ("skills_each_task_once",)],
    ids="+".join,
)
def test_methods_of_our_own_train_and_go_on_bit_for_bit(folder: Path, names: tuple[str, ...]) -> None:
    overlays = [SMALL, *(read_yaml(ROOT / "params" / f"{name}.yaml") for name in names)]
    whole, stopped = (f"{names[0]}-{name}" for name in ("whole", "stopped"))
    curve = train_small(folder, whole, *overlays)
    assert all(math.isfinite(value) for row in curve for value in row.values())
    assert any("dictionary/segments" in row for row in curve), "dictionaries were fitted"
    with pytest.raises(StoppedError):
        train_small(folder, stopped, *overlays, stop_after=2)
    train_small(folder, stopped, *overlays)
    assert same_weights(folder, whole, stopped)
    histories = [folder / f"dictionaries-{name}.json" for name in (whole, stopped)]
    assert histories[0].read_bytes() == histories[1].read_bytes()
