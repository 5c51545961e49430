"""Question 6 on made-up probes with a known truth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from studies.statistics.compression import gaps, partial_correlation, predict


def made_up(effect: float, runs: int = 12, steps: int = 8) -> pl.DataFrame:
    """Rows of gaps: the length drives both, the measure moves the gap by ``effect``, and every run has its
    own level, which would mislead a test without a random effect."""
    draw = np.random.default_rng(3)
    rows = []
    for run in range(runs):
        level = draw.normal()
        for step in range(steps):
            length, own = draw.normal(), draw.normal()
            bits = length + own
            gap = 2 * length + effect * own + level + 0.3 * draw.normal()
            measures = {"description_length": bits, "certificate": draw.normal(), "segments_per_skill": 1.0}
            of_row = {"run": str(run), "seed": run // 2, "step": step}
            rows.append({**of_row, "gap": gap, "steps": length, "corpus": 100.0, **measures})
    return pl.DataFrame(rows)


def test_an_effect_is_found_and_one_that_the_length_makes_is_not() -> None:
    true = predict("b", "description_length", made_up(0.5))
    assert true.low is not None and true.low > 0
    assert true.partial is not None and true.partial > 0.2
    false = predict("b", "description_length", made_up(0.0))
    assert false.low is not None and false.high is not None
    assert false.low < 0 < false.high
    assert np.corrcoef(made_up(0.0)["gap"], made_up(0.0)["description_length"])[0, 1] > 0.4


def test_a_measure_that_does_not_vary_or_few_rows_give_nothing() -> None:
    assert predict("b", "segments_per_skill", made_up(0.5)).slope is None
    assert predict("b", "certificate", made_up(0.5).head(8)).slope is None


def test_the_partial_correlation_is_that_of_the_textbook_formula() -> None:
    draw = np.random.default_rng(0).normal(size=(3, 50))
    x, y, z = draw[0] + draw[2], draw[1] - draw[2], draw[2]
    xy, xz, yz = (np.corrcoef(*pair)[0, 1] for pair in ((x, y), (x, z), (y, z)))
    wanted = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    assert partial_correlation(x, y, z) == pytest.approx(wanted)


def test_what_both_halves_of_the_gap_and_the_measure_share_is_held_constant() -> None:
    """The number of successes moves both the gap and the measure; nothing else connects them."""
    draw = np.random.default_rng(1)
    successes = draw.normal(size=96)
    rows = made_up(0.0).with_columns(
        corpus=successes,
        gap=pl.Series(successes + 0.5 * draw.normal(size=96)),
        certificate=pl.Series(0.5 * draw.normal(size=96) - successes),
    )
    assert np.corrcoef(rows["gap"], rows["certificate"])[0, 1] < -0.7
    found = predict("b", "certificate", rows)
    assert found.partial == pytest.approx(0, abs=0.2)


def test_a_correlation_between_seeds_is_not_one_within_seeds() -> None:
    draw = np.random.default_rng(2)
    rows = made_up(0.0)
    level = rows["seed"].to_numpy().astype(float)
    rows = rows.with_columns(
        gap=pl.Series(level + draw.normal(size=96)), certificate=pl.Series(level + draw.normal(size=96))
    )
    found = predict("b", "certificate", rows)
    assert found.partial is not None and found.partial > 0.6
    assert found.within_seeds == pytest.approx(0, abs=0.2)


def test_the_gap_is_training_less_unseen_success_of_the_same_step() -> None:
    common = {
        "steps": 4.0,
        "corpus": 9.0,
        "description_length": 1.0,
        "certificate": 2.0,
        "segments_per_skill": 0.5,
    }
    rows = [
        {"run": "a", "seed": 1, "step": 0, "split": "train", "success": 0.75, **common},
        {"run": "a", "seed": 1, "step": 0, "split": "unseen", "success": 0.25, **common},
        {"run": "a", "seed": 1, "step": 10, "split": "train", "success": 0.9, **common},
    ]
    assert gaps(pl.DataFrame(rows))["gap"].to_list() == [0.5]
