"""Where the repository's own studies are: outside of the library and of the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.pipeline.finished.runs import places
from tests.support.import_graph import ImportGraph

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["skillpress", "tasks", "flows", "docs", "benchmarks"])
def test_nothing_else_imports_a_study(folder: str) -> None:
    graph = ImportGraph(ROOT)
    importing = {
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / folder).rglob("*.py"))
        if any(each.module.partition(".")[0] == "studies" for each in graph.imports(file))
    }
    assert not importing


def test_docs_has_no_record_of_a_study() -> None:
    assert not sorted((ROOT / "docs").rglob("*.parquet"))
    assert {path.parent.name for path in (ROOT / "studies").glob("*/runs.json")} == {
        "study", "critical", "cooking_again", "language_model",
    }  # fmt: skip


@pytest.mark.parametrize("folder", ["studies/mine", "docs/mine"])
def test_records_of_a_lab_are_found_in_the_new_and_in_the_old_place(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "runs.json").write_text(json.dumps({}))
    assert places(tmp_path) == [tmp_path / folder]
