"""Scatter between trainings is separated from the episodes' chance: by hand, and with a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.imitation_seeds import compare, scatter, summary, variance_test
from benchmarks.lag import changed
from skillpress.experiment.params import load_params


def run(won: list[list[int]], loss: float = 0.1) -> dict[str, Any]:
    return {"won": won, "loss": loss, "steps": 10.0}


def test_scatter_dice_and_the_luck_of_training_by_hand() -> None:
    """Shares (1, 1/2) and (1/2, 0): means 75 and 25, V = 1250; E = 1/4 a seed / (2 - 1) / 2^2 = 625 in
    points; T = 1250 - 625. Chi-square with one degree: 5.0239 above, 0.00098207 below."""
    found = scatter([run([[1, 1], [1, 0]], 0.1), run([[0, 1], [0, 0]], 0.3)])
    assert found["pass_at_1"] == [75.0, 25.0] and found["mean"] == 50.0
    assert found["deviation"] == pytest.approx(1250**0.5)
    assert found["deviation_of_dice"] == pytest.approx(25.0)
    assert found["deviation_of_training"] == pytest.approx(25.0)
    interval = [(1250 / 5.023886) ** 0.5, (1250 / 0.000982069) ** 0.5]
    assert found["deviation_interval"] == pytest.approx(interval, rel=1e-4)
    assert found["loss_deviation"] == pytest.approx(0.02**0.5)


def test_policies_that_are_the_same_scatter_as_their_dice_say() -> None:
    """Over many sets of 5 trainings without any luck, V and E agree on average."""
    random = np.random.default_rng(0)
    chances = random.beta(2, 1, size=30)
    differences, dice = [], []
    for _ in range(2000):
        won = (random.random((5, 30, 4)) < chances[None, :, None]).astype(int)
        found = scatter([run(each.tolist()) for each in won])
        differences.append(found["deviation"] ** 2 - found["deviation_of_dice"] ** 2)
        dice.append(found["deviation_of_dice"] ** 2)
    error = np.std(differences) / 2000**0.5
    assert abs(np.mean(differences)) < 4 * error < 0.1 * np.mean(dice)


@pytest.mark.parametrize(
    ("ratio", "p"), [(6.388233, 0.1), (9.604530, 0.05), (1 / 9.604530, 0.05), (1.0, 1.0)]
)
def test_two_deviations_are_compared_by_the_tables_of_f(ratio: float, p: float) -> None:
    """F(4, 4) is exceeded by 6.388 once in twenty, by 9.605 once in forty."""
    one, other = ({"seeds": 5, "loss_deviation": size} for size in (ratio**0.5, 1.0))
    assert variance_test(one, other, "loss_deviation") == pytest.approx(p, rel=1e-4)


def test_a_setting_is_tested_on_the_first_one() -> None:
    """Means 75 and 25, then 50 and 25: variances 1250 and 312.5; above F(1, 1) = 4 lie 1 - 2/pi atan 2."""
    first = [run([[1, 1], [1, 0]]), run([[0, 1], [0, 0]], 0.3)]
    other = [run([[1, 0], [1, 0]]), run([[0, 0], [1, 0]], 0.2)]
    rows = summary({name: [{**each, "cpu_seconds": 3.0} for each in runs] for name, runs in
                    (("first", first), ("other", other))})  # fmt: skip
    assert rows["first"]["p_of_deviation"] == pytest.approx(1.0)
    assert rows["other"]["p_of_deviation"] == pytest.approx(2 * (1 - 2 / np.pi * np.arctan(2)))
    assert rows["other"]["cpu_seconds"] == 3.0


@pytest.mark.thorough
def test_seeds_share_demonstrations_and_what_is_finished_is_kept(repository: Path, tmp_path: Path) -> None:
    """Two equal settings give equal results, seed by seed, and seeds differ."""
    params = changed(
        load_params(repository / "params.yaml", repository / "params" / "smoke.yaml"),
        tasks={"train": 16, "validation": 8},
        environment={"max_numbers": 3, "max_steps": 8},
        imitation={"demonstrations": 60, "batch_size": 32, "epochs": 2},
    )
    settings: dict[str, dict[str, float]] = {
        "one": {},
        "same": {"detour_rate": 0.1},
        "other demonstrations": {"detour_rate": 0.9},
    }
    runs = compare(params, settings, [1, 2], tmp_path, 2, 1)

    def made(name: str) -> list[dict[str, Any]]:
        return [{key: each[key] for key in ("curve", "loss", "won", "steps")} for each in runs[name]]

    assert made("one") == made("same")
    assert made("one")[0]["curve"] != made("other demonstrations")[0]["curve"]
    assert runs["one"][0]["curve"] != runs["one"][1]["curve"]
    assert np.array(runs["one"][0]["won"]).shape == (8, 2)
    assert compare(params, settings, [1, 2], tmp_path, 2, 1) == runs
