"""What is measured of the start policies of each benchmark, and what is still to be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.evaluation.analysis.choice import Choice
from studies.critical.choices import FILE, OVERLAYS, read_choices
from studies.critical.measure_choices import SEEDS, missing
from studies.critical.page import choices

HOLDS = Choice(
    tasks=128, won_twice=100, differ=80, deviation=1.0, of_length=0.1, of_others=0.5, per_segment=0.05
)


def test_the_table_says_what_its_figures_are_divided_by() -> None:
    rows = list(choices({"countdown": {"20": HOLDS, "21": HOLDS}}))
    shares = "80.0% (80.0% to 80.0%; 200 tasks) | 5.0% (5.0% to 5.0%; 200 tasks)"
    assert rows[2].startswith(f"| `countdown` | 2 | 200 of 256 | {shares} |")
    assert rows[-1].startswith("Not measured yet: `equal`, `shorter`") and "`countdown`" not in rows[-1]
    assert list(choices({})) == ["No start policy is measured yet."]


def test_what_is_measured_is_not_measured_again() -> None:
    found = {"equal": {str(SEEDS[0]): HOLDS}}
    left = list(missing(found))
    assert left[: len(SEEDS) - 1] == [("equal", seed) for seed in SEEDS[1:]]
    assert len(left) == len(SEEDS) * len(OVERLAYS) - 1


def test_every_overlay_is_there(repository: Path) -> None:
    for overlays in OVERLAYS.values():
        assert all((repository / "params" / f"{overlay}.yaml").is_file() for overlay in overlays)


def test_a_wrong_file_is_refused_with_its_field(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"countdown": {"20": {"tasks": "many"}}}')
    with pytest.raises(StorageError, match=r"choices\.json: countdown\.20\.tasks"):
        read_choices(tmp_path)
