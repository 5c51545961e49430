"""Which questions become which tasks, and why the others do not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from skillpress.core.errors import TaskError, UserError
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.tasks import check_tasks, dropped, make_tasks
from skillpress.environments.section import SplitSizes

ALL = SplitSizes(3, 1, 2)


def made(
    parameters: NotebookQaParameters, sizes: SplitSizes = ALL, seed: int = 0, **change: object
) -> list[Task]:
    return list(make_tasks(parameters.model_copy(update=change), sizes, seed))


def with_rows(world: Path, folder: Path, rows: list[dict[str, object]]) -> Path:
    """A data folder with additional questions."""
    folder.mkdir(exist_ok=True)
    pl.concat(
        [pl.read_parquet(world / "questions.parquet"), pl.DataFrame(rows)], how="diagonal"
    ).write_parquet(folder / "questions.parquet")
    (folder / "paragraphs.parquet").write_bytes((world / "paragraphs.parquet").read_bytes())
    return folder


def question(number: int, text: str, **change: object) -> dict[str, object]:
    return {
        "id": f"x{number}",
        "dataset": "hotpotqa",
        "split": "train",
        "question": text,
        "answers": ["Ghent"],
        "supporting_titles": ["Paper Comet", "Lea Moor"],
        "kind": "bridge",
        **change,
    }


def test_the_questions_own_split_says_what_it_serves_for(parameters: NotebookQaParameters) -> None:
    tasks = made(parameters)
    check_tasks(tasks)
    assert {task.task_id: task.split for task in tasks} == {
        "hotpotqa/q0": "train", "hotpotqa/q1": "train", "hotpotqa/q2": "train",
        "hotpotqa/q3": "validation", "hotpotqa/q4": "test", "hotpotqa/q5": "test",
    }  # fmt: skip
    assert {task.stratum for task in tasks} == {"hotpotqa/2 hops"}
    assert made(parameters) == tasks != made(parameters, seed=1)


def test_training_questions_fall_to_rules_and_the_report_says_to_which(
    parameters: NotebookQaParameters, world: Path, tmp_path: Path
) -> None:
    folder = with_rows(world, tmp_path / "more", [
        question(0, "Where was the director of the film Paper Comet born?"),  # a test question asks it
        question(1, "Who is the current mayor of Ghent?"),
        question(2, "In which town was Lea Moor born?", supporting_titles=["Lea Moor"]),
        question(3, "Which town does a Chinese proverb praise?", supporting_titles=["Nowhere", "No one"]),
    ])  # fmt: skip
    section = parameters.model_copy(update={"data": str(folder), "hops": [2], "reachable": True})
    assert dropped(section) == {
        "hotpotqa": {"kept": 6, "in_evaluation": 1, "moving": 1, "other_hops": 1, "out_of_reach": 1}
    }
    assert {task.task_id for task in make_tasks(section, ALL, 0)} >= {"hotpotqa/q0", "hotpotqa/q5"}


def test_test_tasks_are_chosen_by_nobody(
    parameters: NotebookQaParameters, world: Path, tmp_path: Path
) -> None:
    folder = with_rows(world, tmp_path / "more", [
        question(0, "Who is the current mayor of Ghent?", split="test"),
        question(1, "Who is the current Mayor of Ghent", split="test"),
        question(2, "Which is it?", split="dev", dataset="musique", kind="3hop1"),
    ])  # fmt: skip
    tasks = made(
        parameters, SplitSizes(3, 1, 4), data=str(folder), reachable=True, test_on=["hotpotqa", "musique"]
    )
    test = {task.task_id for task in tasks if task.split == "test"}
    assert test == {"hotpotqa/q4", "hotpotqa/q5", "hotpotqa/x0", "musique/x2"}, "a repetition is left out"
    assert {task.stratum for task in tasks} == {"hotpotqa/2 hops", "musique/3 hops"}


def test_easy_and_hard_questions_divide_those_for_training_and_leave_the_others(
    parameters: NotebookQaParameters, world: Path, tmp_path: Path
) -> None:
    folder = with_rows(world, tmp_path / "more", [
        question(0, "In which town was Lea Moor born?", supporting_titles=["Lea Moor"]),
        question(1, "Where is Ghent?", dataset="nq_open", supporting_titles=[]),
        question(2, "Who was born in Ghent?", dataset="elsewhere", supporting_titles=[]),
    ])  # fmt: skip
    data = {"data": str(folder), "train_on": ["hotpotqa", "nq_open", "elsewhere"]}
    found = {
        name: made(parameters, SplitSizes(count, 1, 2), **data, difficulty=name)
        for name, count in (("all", 6), ("easy", 2), ("hard", 3))
    }
    train = {name: {task.task_id for task in found[name] if task.split == "train"} for name in found}
    assert train["easy"] == {"hotpotqa/x0", "nq_open/x1"}, "one fact"
    assert train["hard"] == {"hotpotqa/q0", "hotpotqa/q1", "hotpotqa/q2"}, "two facts"
    assert train["all"] - train["easy"] - train["hard"] == {"elsewhere/x2"}, "an unknown number of facts"
    others = [[task for task in tasks if task.split != "train"] for tasks in found.values()]
    assert others[0] == others[1] == others[2] and len(others[0]) == 3
    section = parameters.model_copy(update={**data, "difficulty": "easy"})
    assert {name: counts.get("other_difficulty", 0) for name, counts in dropped(section).items()} == {
        "hotpotqa": 3, "nq_open": 0, "elsewhere": 1
    }  # fmt: skip


def test_a_question_in_two_splits_is_refused(parameters: NotebookQaParameters) -> None:
    first, *_, last = made(parameters)
    twin = Task(
        "other", "notebook_qa", 0, {**first.spec, "question": first.spec["question"].upper()}, last.split
    )
    with pytest.raises(TaskError, match="splits overlap: question where was director of film"):
        check_tasks([first, twin])


def test_too_few_questions_are_an_error_that_names_the_key(parameters: NotebookQaParameters) -> None:
    with pytest.raises(TaskError, match=r"tasks.validation: is 2; only 1 questions are left of .*train_on"):
        made(parameters, SplitSizes(3, 2, 2))


def test_missing_data_are_an_error_that_says_what_to_do(
    parameters: NotebookQaParameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QA_DATA", raising=False)
    with pytest.raises(UserError, match=r"environment.data: is empty and QA_DATA is not set"):
        made(parameters, data="")
    monkeypatch.setenv("QA_DATA", str(tmp_path))
    with pytest.raises(UserError, match=f"{tmp_path} lacks questions.parquet"):
        made(parameters, data="")


def test_a_lacking_column_is_named(parameters: NotebookQaParameters, world: Path, tmp_path: Path) -> None:
    folder = with_rows(world, tmp_path / "less", [])
    pl.read_parquet(world / "questions.parquet").drop("kind").write_parquet(folder / "questions.parquet")
    with pytest.raises(TaskError, match=r"questions.parquet: column kind is missing; it must be String"):
        made(parameters, data=str(folder))


def test_data_with_other_contents_are_other_inputs(
    parameters: NotebookQaParameters, world: Path, tmp_path: Path
) -> None:
    folder = with_rows(world, tmp_path / "more", [question(0, "Who?")])
    before = parameters.inputs()
    after = parameters.model_copy(update={"data": str(folder)}).inputs()
    assert {name for name in before if before[name] != after[name]} == {"questions.parquet"}


def test_the_shared_questions_make_tasks(parameters: NotebookQaParameters, qa_data: Path) -> None:
    tasks = made(
        parameters, SplitSizes(1400, 100, 300), data=str(qa_data), train_on=["hotpotqa", "triviaqa"],
        test_on=["hotpotqa", "musique"],
    )  # fmt: skip
    check_tasks(tasks)
    counted = Counter((task.split, task.spec["dataset"]) for task in tasks)
    assert counted["train", "triviaqa"] > 2 * counted["train", "hotpotqa"] * 0.9
    assert counted["validation", "hotpotqa"] == 100
    assert 140 <= counted["test", "hotpotqa"] <= 150, "in proportion to 185 and 200"
