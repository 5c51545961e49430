"""What the report reads that no stage made: the benchmark that is committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.storage import StorageError
from tasks.report import BENCHMARK
from tasks.results import scaling


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
