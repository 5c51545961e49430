"""Questions that a model has rated: 1 twice keeps a question, and words decide where it cannot be read."""

from __future__ import annotations

import logging
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.ratings import RATING_COLUMNS, by_ratings
from skillpress.environments.notebook_qa.tasks import dropped, make_tasks, questions_to_judge
from skillpress.environments.section import SplitSizes

FACT, OPINION, MOVING = "Who wrote Emma?", "Who is the best singer?", "Who is the mayor of Ghent?"
QUESTIONS = pl.DataFrame(
    {"dataset": ["a", "a", "a", "b"], "id": ["1", "2", "3", "1"],
     "question": [FACT, OPINION, MOVING, "Why?"], "reason": [None, None, None, "open_ended"]},
    schema_overrides={"reason": pl.String},
)  # fmt: skip
Pair = tuple[int | None, int | None]


def ratings(file: Path, **rated: Pair) -> Path:
    """A file of (stability, objectivity) by question, each written as ``a1=(1, 0)``."""
    rows = [(name[0], name[1:], *pair) for name, pair in rated.items()]
    pl.DataFrame(rows, schema=RATING_COLUMNS, orient="row").write_parquet(file)
    return file


def reasons(file: Path, **rated: Pair) -> list[str | None]:
    found = by_ratings(QUESTIONS, ratings(file, **rated))
    assert found.drop("reason").equals(QUESTIONS.drop("reason"))
    return found["reason"].to_list()


@pytest.mark.parametrize(("stability", "objectivity"), list(product((-1, 0, 1), repeat=2)))
def test_a_question_is_kept_if_and_only_if_both_ratings_are_1(
    stability: int, objectivity: int, tmp_path: Path
) -> None:
    pair = (stability, objectivity)
    found = reasons(tmp_path / "r.parquet", a1=pair, a2=pair, a3=pair)
    expected = "not_objective" if objectivity < 1 else "not_stable" if stability < 1 else None
    assert found == [expected] * 3 + ["open_ended"], "words that look bad do not matter beside a rating"


@pytest.mark.parametrize("pair", [(None, None), (1, None), (None, 1)])
def test_without_a_readable_rating_regular_expressions_decide_and_a_warning_says_so(
    pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = reasons(tmp_path / "r.parquet", a1=pair, a2=pair, a3=pair)
    assert found == [None, "opinion", "moving", "open_ended"]
    assert "3 of 3 questions lack a readable rating; regular expressions decide" in caplog.text


def test_one_rating_below_1_is_enough_and_needs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = reasons(tmp_path / "r.parquet", a1=(None, 0), a2=(-1, None), a3=(1, 1))
    assert found[:3] == ["not_objective", "not_stable", None] and not caplog.text


def test_a_question_that_nobody_has_rated_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"has no ratings of 2 questions that the rules keep, such as a/2"):
        reasons(tmp_path / "r.parquet", a1=(1, 1))


def test_another_file_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "r.parquet"
    file.write_text("no")
    with pytest.raises(TaskError, match=r"environment\.objectivity: .* is not a readable Parquet file"):
        by_ratings(QUESTIONS, file)
    QUESTIONS.write_parquet(file)
    with pytest.raises(TaskError, match=r"column stability is missing; it must be Int8"):
        by_ratings(QUESTIONS, file)
    with pytest.raises(TaskError, match=r"a/1 is rated \[4, 1\]; a rating must be 1, 0 or -1"):
        reasons(file, a1=(4, 1), a2=(1, 1), a3=(1, 1))


def test_training_tasks_are_those_rated_1_twice_and_the_report_counts_the_others(
    parameters: NotebookQaParameters, tmp_path: Path
) -> None:
    judged = questions_to_judge(parameters)
    assert set(judged["id"]) == {"q0", "q1", "q2"}, "training questions alone"
    file = tmp_path / "r.parquet"
    rated = judged.select("dataset", "id", stability=pl.lit(1, pl.Int8), objectivity=pl.lit(1, pl.Int8))
    rated.with_columns(stability=(pl.col("id") != "q1").cast(pl.Int8)).write_parquet(file)
    section = parameters.model_copy(update={"objectivity": str(file)})
    tasks = list(make_tasks(section, SplitSizes(2, 1, 2), 0))
    assert {task.task_id for task in tasks if task.split == "train"} == {"hotpotqa/q0", "hotpotqa/q2"}
    assert dropped(section)["hotpotqa"]["not_stable"] == 1
    assert file.name in section.inputs(), "other ratings make other tasks"


def test_a_model_is_asked_about_questions_whose_words_look_like_opinion_or_change(
    parameters: NotebookQaParameters, tmp_path: Path
) -> None:
    """The words of a title may look so, and the model knows better."""
    rows = pl.read_parquet(parameters.folder / "questions.parquet")
    (tmp_path / "paragraphs.parquet").write_bytes((parameters.folder / "paragraphs.parquet").read_bytes())
    film = pl.col("id") == "q0"
    asked = pl.when(film).then(pl.lit("Who made the film I know what you did last summer?"))
    rows.with_columns(question=asked.otherwise("question")).write_parquet(tmp_path / "questions.parquet")
    section = parameters.model_copy(update={"data": str(tmp_path)})
    assert dropped(section)["hotpotqa"]["moving"] == 1
    judged = questions_to_judge(section)
    assert set(judged["id"]) == {"q0", "q1", "q2"}
    file = tmp_path / "r.parquet"
    judged.select(
        "dataset", "id", stability=pl.lit(1, pl.Int8), objectivity=pl.lit(1, pl.Int8)
    ).write_parquet(file)
    assert "moving" not in dropped(section.model_copy(update={"objectivity": str(file)}))["hotpotqa"]
