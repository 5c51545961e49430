"""How hard a question is."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.difficulty import DIFFICULTIES, difficulty, hops


def classed(wins: int, rollouts: int) -> str:
    frame = pl.DataFrame({"task_id": ["t"], "wins": [wins], "rollouts": [rollouts]})
    return str(difficulty(frame)["difficulty"].item())


def test_the_classes_of_eight_rollouts() -> None:
    assert [classed(wins, 8) for wins in range(9)] == [
        "unsolved", "hard", "medium", "medium", "medium", "medium", "medium", "easy", "mastered",
    ]  # fmt: skip


def test_one_rollout_tells_won_from_lost_alone() -> None:
    assert (classed(0, 1), classed(1, 1)) == ("unsolved", "mastered")


@given(st.integers(1, 200).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k))))
def test_losses_are_classed_as_the_mirror_of_wins(played: tuple[int, int]) -> None:
    wins, rollouts = played
    place = DIFFICULTIES.index(classed(wins, rollouts))
    assert DIFFICULTIES.index(classed(rollouts - wins, rollouts)) == len(DIFFICULTIES) - 1 - place
    assert classed(3 * wins, 3 * rollouts) == classed(wins, rollouts)


@given(st.integers(1, 50))
def test_more_wins_are_never_harder(rollouts: int) -> None:
    frame = pl.DataFrame({"wins": range(rollouts + 1)}).with_columns(
        task_id=pl.col("wins").cast(pl.String), rollouts=rollouts
    )
    found = difficulty(frame)
    assert found["difficulty"].is_sorted() and found["pass_rate"].is_sorted()
    assert set(DIFFICULTIES) >= set(found["difficulty"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"wins": 3, "rollouts": 2}, "task t has 3 wins of 2 rollouts"),
        ({"wins": -1, "rollouts": 2}, "-1 wins"),
        ({"wins": 0, "rollouts": 0}, "0 wins of 0"),
        ({"wins": None, "rollouts": 2}, "None wins"),
        ({"wins": 1}, "column rollouts is missing"),
    ],
)
def test_wins_that_cannot_be_are_refused(row: dict[str, int | None], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        difficulty(pl.DataFrame([{"task_id": "t", **row}]))


def test_a_task_that_stands_twice_is_refused() -> None:
    with pytest.raises(TaskError, match="task t occurs 2 times"):
        difficulty(pl.DataFrame({"task_id": ["t", "t"], "wins": [0, 1], "rollouts": [1, 1]}))


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
