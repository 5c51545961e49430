"""ReuseRL's manifest names every printed figure, and a manifest that cannot be right is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.core.yaml_files import parse_yaml
from skillpress.evaluation.paper import layout
from skillpress.evaluation.paper.manifest import PLACE, ManifestError, read_manifest


@pytest.fixture
def values(repository: Path) -> dict[str, Any]:
    text = (repository / PLACE).read_text(encoding="utf-8")
    found: dict[str, Any] = parse_yaml(text, PLACE)
    return found


def read(values: dict[str, Any], folder: Path):
    file = folder / "tables.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return read_manifest(file)


def test_every_table_and_figure_of_the_paper_has_an_entry(repository: Path) -> None:
    manifest = read_manifest(repository / PLACE)
    assert set(manifest.tables) == {*(f"Table {number}" for number in range(1, 12)), "F.1", "Figure 1"}


def test_every_printed_figure_is_a_row_of_the_manifest(repository: Path) -> None:
    """The reading refuses rows that are not printed; here no printed row is missing."""
    tables = read_manifest(repository / PLACE).tables
    named = {
        (int(name.removeprefix("Table ")), environment, key)
        for name, entry in tables.items()
        for environment, keys in entry.rows.items()
        for key in keys
    }
    assert named == set(layout._paper_figures())


def test_the_methods_are_the_rows_that_the_tables_have(repository: Path) -> None:
    manifest = read_manifest(repository / PLACE)
    assert set(manifest.methods) == set(layout.METHODS) - layout.UNTRAINED


@pytest.mark.parametrize("name", ["Table 4", "table 4", "4", " 4 "])
def test_a_table_is_found_by_the_names_that_people_write(repository: Path, name: str) -> None:
    assert read_manifest(repository / PLACE).named(name) == "Table 4"


def test_an_unknown_table_or_scale_is_answered_with_those_that_there_are(repository: Path) -> None:
    manifest = read_manifest(repository / PLACE)
    wrong = "'Table 12' is not a table of the manifest; its tables are Table 1, "
    with pytest.raises(ManifestError, match=wrong):
        manifest.named("Table 12")
    with pytest.raises(
        ManifestError, match="--scale: no 'big' in the manifest; there are paper, small, smoke"
    ):
        manifest.scale("big")


def test_a_key_may_differ_by_itself_or_with_its_section(repository: Path) -> None:
    manifest = read_manifest(repository / PLACE)
    assert manifest.free("seed") and manifest.free("engine.cache_gib")
    assert not manifest.free("training.learning_rate") and not manifest.free("training")


def without_a_row(values: dict[str, Any]) -> str:
    values["tables"]["Table 4"]["rows"]["countdown"].pop()
    return r"Table 4.rows.countdown: is closing_add, .*; printed_figures.csv has .*closing_divide"


def without_a_benchmark(values: dict[str, Any]) -> str:
    del values["scales"]["small"]["benchmarks"]["alfworld"]
    return "scales.small.benchmarks: lacks alfworld"


def with_two_sources(values: dict[str, Any]) -> str:
    values["tables"]["Table 4"]["made"] = {"run": ["a.module"], "writes": "a.json"}
    return "tables.Table 4: Value error, must have exactly one of rows, mapping and made"


def with_an_unknown_method(values: dict[str, Any]) -> str:
    values["tables"]["Table 10"]["methods"] = ["segment"]
    return "tables.Table 10.methods: no 'segment' in methods"


def with_another_name(values: dict[str, Any]) -> str:
    values["tables"]["Fourth table"] = values["tables"].pop("Table 4")
    return "tables.Fourth table: has rows of runs; name it as the paper does"


@pytest.mark.parametrize(
    "spoil",
    [without_a_row, without_a_benchmark, with_two_sources, with_an_unknown_method, with_another_name],
)
def test_a_manifest_that_cannot_be_right_is_refused_with_its_entry(spoil, values, tmp_path: Path) -> None:
    said = spoil(values)
    with pytest.raises(ManifestError, match=said):
        read(values, tmp_path)
