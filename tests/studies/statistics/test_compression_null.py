"""Question 6 if no policy differs from another: the results of its analyses by chance alone."""

from __future__ import annotations

from math import atanh, sqrt, tanh
from pathlib import Path

from skillpress.experiment.params import load_params
from studies.statistics.compression import HELD, gaps, predict
from studies.statistics.compression_null import given_the_length_alone, null_probes


def interval(correlation: float, rows: int, held: int) -> tuple[float, float]:
    """Fisher's 95% interval of a partial correlation of independent rows."""
    center, half = atanh(correlation), 1.96 / sqrt(rows - 3 - held)
    return tanh(center - half), tanh(center + half)


def test_with_the_number_of_successes_held_constant_chance_alone_correlates_nothing_with_the_gap(
    repository: Path,
) -> None:
    """Training successes are both the first half of the gap and the sample behind the certificate."""
    rows = gaps(null_probes("alike", 0, load_params(repository / "params.yaml").skills))
    _, high = interval(given_the_length_alone(rows), rows.height, 1)
    assert high < 0, "the confounder is there"
    found = predict("null", "certificate", rows)
    assert found.partial is not None and found.low is not None and found.high is not None
    low, high = interval(found.partial, rows.height, len(HELD))
    assert low < 0 < high
    assert found.low < 0 < found.high
