"""docs/methods.md on groups that are all won: its calculation, and the study's figures from the record."""

from __future__ import annotations

from math import comb, sqrt
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from skillpress.pipeline.study.store import read_record

SIZE = 8


@pytest.fixture(scope="module")
def section(repository: Path) -> str:
    page = (repository / "docs" / "methods.md").read_text(encoding="utf-8")
    return page.split("## Groups that are all won")[1].split("\n## ")[0]


def row_of(section: str, begin: str) -> list[float]:
    (row,) = [line for line in section.splitlines() if line.startswith(begin)]
    return [float(cell) for cell in row.strip("| ").split(" | ")[1:]]


def advantages(failures: int) -> float:
    """The sum of |A| of a group in which so many of eight have less, by any amount."""
    scores = np.array([0.0] * failures + [1.0] * (SIZE - failures))
    return float(np.abs((scores - scores.mean()) / scores.std(ddof=1)).sum())


def test_the_table_is_calculated_from_the_binomial_distribution(section: str) -> None:
    for success, groups, part in zip(
        row_of(section, "| success $p$"), row_of(section, "| groups that"), row_of(section, "| their part"),
        strict=True,
    ):  # fmt: skip
        mixed = sum(
            comb(SIZE, lost) * (1 - success) ** lost * success ** (SIZE - lost) * advantages(lost)
            for lost in range(1, SIZE)
        )
        all_won = success**SIZE
        assert groups == pytest.approx(100 * all_won, abs=0.051)
        assert part == pytest.approx(
            100 * all_won * advantages(1) / (all_won * advantages(1) + mixed), abs=0.051
        )


def test_the_default_experiments_figures_are_those_of_its_parameters(section: str) -> None:
    """One segment costs 10 / 30, and a failure 10; each less an eighth of it."""
    assert f"$-\\frac{{7}}{{8}} c$, {7 / 8 / 3:.2f} in the default" in " ".join(section.split())
    assert f"a failure gives $-{7 / 8 * 10}$" in section
    assert f"{-7 / 8 * sqrt(8):.3f}" in section and f"{sqrt(8) / 8:.3f}" in section


def test_the_studys_figures_come_from_its_record(repository: Path, section: str) -> None:
    runs = read_record(repository / "studies" / "study").runs

    def parts(method: str) -> list[float]:
        mine = [run.curve for run in runs if (run.benchmark, run.method) == ("countdown", method)]
        found = [
            mean(value for value in curve["advantage_of_all_won"] if value is not None) for curve in mine
        ]
        return [round(100 * value) for value in (min(found), mean(found), max(found))]

    said = " ".join(section.split())
    low, middle, high = parts("segcost_std")
    assert f"{middle}% of $" in said and f"({low} to {high}% by seed, 8 seeds" in said
    low, middle, high = parts("segcost")
    assert f"{middle}% without it ({low} to {high}%)" in said
