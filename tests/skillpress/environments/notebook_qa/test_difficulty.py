"""How hard a question is."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from skillpress.environments.notebook_qa.tasks import hops


def test_hops_are_said_by_the_kind_the_gold_titles_or_the_data_set() -> None:
    rows = [
        ("musique", "3hop1", ["a", "b"], 3),
        ("hotpotqa", "bridge", ["a", "b"], 2),
        ("2wikimultihopqa", "bridge_comparison", ["a", "b", "c", "d"], 4),
        ("bamboogle", None, [], 2),
        ("nq_open", None, None, 1),
        ("another", None, [], None),
    ]
    frame = pl.DataFrame(rows, schema=["dataset", "kind", "supporting_titles", "expected"], orient="row")
    assert frame.select(hops())["hops"].to_list() == frame["expected"].to_list()


def test_every_shared_question_has_its_hops(qa_data: Path) -> None:
    questions = pl.read_parquet(qa_data / "questions.parquet")
    counted = questions.group_by("dataset", hops()).len().sort("dataset", "hops")
    assert counted["hops"].null_count() == 0
    found = {(name, count) for name, count, _ in counted.iter_rows() if name in ("hotpotqa", "musique")}
    assert found == {("hotpotqa", 2), ("musique", 2), ("musique", 3), ("musique", 4)}
