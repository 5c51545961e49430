"""A small training whose reference scores a share of the sequences, end to end in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from skillpress.models.policy import load_policy
from tests.support.experiment.small_training import Curve, prepared, train_small

SMALL: dict[str, Any] = {
    "training": {"steps": 2, "learning_rate": 0.01, "minibatches": 2, "checkpoint_every": 9},
    "algorithm": {"kl_coefficient": 0.05},
    "environment": {"max_steps": 4, "max_numbers": 3},
}


folder = prepared(SMALL, demonstrations=2000)


def trained(folder: Path, name: str, share: float) -> Curve:
    return train_small(folder, name, SMALL, {"algorithm": {"kl_share": share}})


def test_it_stays_near_the_start_as_with_the_whole_term_and_repeats_bit_for_bit(folder: Path) -> None:
    whole, half, again = (trained(folder, *of) for of in (("whole", 1.0), ("half", 0.5), ("again", 0.5)))
    assert whole[0]["success"] == half[0]["success"] > 0, "the first step plays the same episodes"
    assert all(0 < row["reference_kl"] < 1 for row in whole + half)
    assert half[0]["reference_kl"] != whole[0]["reference_kl"]
    first, second = (load_policy(folder / name).model.state_dict() for name in ("half", "again"))
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())
    timed = ("seconds", "time_share", "second")
    for row, same in zip(half, again, strict=True):
        assert {name: value for name, value in row.items() if not any(word in name for word in timed)} == {
            name: value for name, value in same.items() if not any(word in name for word in timed)
        }
