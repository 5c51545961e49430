"""The report's sources: the committed benchmark, and the results of an evaluation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.pipeline.finished.report import BENCHMARK
from skillpress.pipeline.finished.results import comparisons, scaling
from skillpress.pipeline.finished.run import checkpoint
from skillpress.training.loop.keeping.selected_checkpoint import SelectedCheckpoint


def test_the_committed_benchmark_reaches_a_million_sequences_and_says_where_it_was_measured(
    repository: Path,
) -> None:
    found = scaling(repository / BENCHMARK)
    assert found is not None
    assert found.table["sequences"].to_list() == [10**3, 10**4, 10**5, 10**6]
    assert found.date.startswith("20") and found.machine


def test_without_a_benchmark_there_is_no_curve_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert scaling(tmp_path / "nowhere.json") is None
    path = tmp_path / "dictionary.json"
    path.write_text(json.dumps({"scaling": []}))
    with pytest.raises(StorageError, match=r"dictionary\.json: not the benchmark's result"):
        scaling(path)


def test_which_checkpoint_was_evaluated_is_read_and_what_an_older_version_wrote_is_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "evaluation.json"
    values = {"policies": {}, "comparisons": {}, "checkpoint": asdict(SelectedCheckpoint("best", 40, 0.5))}
    file.write_text(json.dumps(values))
    assert checkpoint(tmp_path) == SelectedCheckpoint("best", 40, 0.5)
    file.write_text(json.dumps({**values, "checkpoint": "last"}))
    with pytest.raises(StorageError, match=r"evaluation\.json: checkpoint is 'last'.*run again"):
        checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"comparisons": {"trained against start": {"tasks": 3}}},
            r"comparisons\.trained against start\.tests",
        ),
        ({"comparisons": {"trained against start": 3}}, r"comparisons\.trained against start"),
        ({"comparisons": []}, "not what the stage evaluate_policy writes"),
        ({"policies": None}, "not what the stage evaluate_policy writes"),
    ],
)
def test_an_evaluation_of_another_form_is_refused_with_its_file_and_place(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    values = {"policies": {}, "comparisons": {}, "checkpoint": asdict(SelectedCheckpoint("best", 40, 0.5))}
    (tmp_path / "evaluation.json").write_text(json.dumps({**values, **changed}))
    with pytest.raises(StorageError, match=rf"evaluation\.json: {said}.*run (it )?again"):
        comparisons(tmp_path)
