"""Questions that a model found unsuitable."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from skillpress.core.errors import TaskError
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.questions import VERDICT_COLUMNS, without_subjective
from skillpress.environments.notebook_qa.tasks import dropped, make_tasks, questions_to_judge
from skillpress.environments.section import SplitSizes

QUESTIONS = pl.DataFrame(
    {"dataset": ["a", "a", "b", "b"], "id": ["1", "2", "1", "2"], "reason": [None, None, "moving", None]},
    schema_overrides={"reason": pl.String},
)


def verdicts(file: Path, **objective: bool | None) -> Path:
    """A file of verdicts, each question written as ``a1=True``."""
    rows = [(name[0], name[1:], verdict) for name, verdict in objective.items()]
    pl.DataFrame(rows, schema=VERDICT_COLUMNS, orient="row").write_parquet(file)
    return file


def test_what_is_unfit_is_dropped_and_nothing_that_has_no_readable_verdict(tmp_path: Path) -> None:
    file = verdicts(tmp_path / "v.parquet", b2=None, a1=True, a2=False)
    found = without_subjective(QUESTIONS, file)
    assert found["reason"].to_list() == [None, "not_objective", "moving", None]
    assert found.drop("reason").equals(QUESTIONS.drop("reason"))


def test_a_question_that_nobody_has_judged_is_an_error(tmp_path: Path) -> None:
    file = verdicts(tmp_path / "v.parquet", a1=True, a2=False)
    with pytest.raises(TaskError, match=r"says nothing of 1 questions that the rules keep, such as b/2"):
        without_subjective(QUESTIONS, file)


def test_another_file_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "v.parquet").write_text("no")
    with pytest.raises(TaskError, match=r"environment\.objectivity: .* is not a readable Parquet file"):
        without_subjective(QUESTIONS, tmp_path / "v.parquet")
    QUESTIONS.write_parquet(tmp_path / "v.parquet")
    with pytest.raises(TaskError, match=r"column objective is missing; it must be Boolean"):
        without_subjective(QUESTIONS, tmp_path / "v.parquet")


def test_training_tasks_are_those_found_fit_and_the_report_counts_the_others(
    parameters: NotebookQaParameters, tmp_path: Path
) -> None:
    judged = questions_to_judge(parameters)
    assert set(judged["id"]) == {"q0", "q1", "q2"}, "training questions alone"
    file = tmp_path / "v.parquet"
    judged.select("dataset", "id", objective=pl.col("id") != "q1").write_parquet(file)
    section = parameters.model_copy(update={"objectivity": str(file)})
    tasks = list(make_tasks(section, SplitSizes(2, 1, 2), 0))
    assert {task.task_id for task in tasks if task.split == "train"} == {"hotpotqa/q0", "hotpotqa/q2"}
    assert dropped(section)["hotpotqa"]["not_objective"] == 1
    assert file.name in section.inputs(), "another verdict makes other tasks"
