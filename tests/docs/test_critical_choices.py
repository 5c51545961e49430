"""Whether a segmentation cost can choose reuse on a benchmark, by the four conditions."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from docs.critical.choices import FILE, OVERLAYS, MeasuredChoice, conditions, read_choices
from docs.critical.measure_choices import SEEDS, missing, wins_of
from docs.critical.page import choices
from skillpress.core.errors import StorageError
from skillpress.core.sequence_files import write_sequences
from skillpress.core.trajectory import SkillSequence

HOLDS = MeasuredChoice(
    tasks=128, won_twice=100, differ=80, deviation=1.0, of_length=0.1, of_others=0.5, per_segment=0.5
)


def varied(**values: float) -> list[MeasuredChoice]:
    """Three seeds that hardly differ, with these values instead."""
    changed = HOLDS.model_copy(update=values)
    return [
        changed.model_copy(
            update={"of_others": changed.of_others + 0.01 * seed, "of_length": changed.of_length}
        )
        for seed in range(3)
    ]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "yes"),
        ({"differ": 40}, "no: 1"),
        ({"deviation": 0.1}, "no: 2"),
        ({"of_length": 0.9}, "no: 3"),
        ({"of_length": -0.9}, "yes"),
        ({"of_others": -0.5}, "no: 4"),
        ({"differ": 10, "of_others": -0.5}, "no: 1, 4"),
        ({"of_others": -0.01}, "cannot be told"),
    ],
)
def test_a_condition_that_fails_is_named(values: dict[str, float], verdict: str) -> None:
    assert conditions(varied(**values)).verdict == verdict


def test_one_seed_has_no_interval_and_tells_nothing() -> None:
    assert conditions([HOLDS]).verdict == "cannot be told"


def test_wins_that_never_differ_leave_no_choice() -> None:
    alike = HOLDS.model_copy(update={"differ": 0, "deviation": 0.0, "of_length": None, "of_others": None})
    assert conditions([alike] * 3).verdict == "no: 1"


def test_the_table_says_what_its_figures_are_divided_by() -> None:
    rows = list(choices({"countdown": {"20": HOLDS, "21": HOLDS}}))
    assert rows[-1].startswith("| `countdown` | 2 | 200 of 256 | 80.0 | 0.50 |")
    assert list(choices({})) == ["No start policy is measured yet."]


def test_what_is_measured_is_not_measured_again() -> None:
    found = {"equal": {str(SEEDS[0]): HOLDS}}
    left = list(missing(found))
    assert len(left) == len(SEEDS) * len(OVERLAYS) - 1 and (SEEDS[0], "equal") not in left


def test_wins_are_those_of_every_task_lost_ones_included(tmp_path: Path) -> None:
    played = [("a", 0, True, ("x",)), ("a", 1, True, ("x", "y")), ("b", 0, False, ("y",))]
    write_sequences(tmp_path / "sequences.parquet", [SkillSequence(*row) for row in played])
    assert pl.read_parquet(tmp_path / "sequences.parquet").height == 3
    assert wins_of(tmp_path / "sequences.parquet") == {"a": [("x",), ("x", "y")], "b": []}


def test_every_overlay_is_there(repository: Path) -> None:
    for overlays in OVERLAYS.values():
        assert all((repository / "params" / f"{overlay}.yaml").is_file() for overlay in overlays)


def test_a_wrong_file_is_refused_with_its_field(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"countdown": {"20": {"tasks": "many"}}}')
    with pytest.raises(StorageError, match=r"choices\.json: countdown\.20\.tasks"):
        read_choices(tmp_path)
