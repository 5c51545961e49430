"""Which programs are learned from and which are held out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError, TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.mutations import repair
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import Program, find_data
from skillpress.environments.code_repair.tasks import check_tasks, make_tasks, program_of, split_of
from skillpress.environments.section import SplitSizes


@pytest.fixture(scope="module")
def section(code_repair_data: Path) -> CodeRepairParameters:
    return CodeRepairParameters(
        name="code_repair",
        max_steps=24,
        data=str(code_repair_data),
        test_seconds=0.5,
        episode_seconds=60.0,
        measure_edits=False,
    )


@pytest.fixture(scope="module")
def tasks(section: CodeRepairParameters) -> list[Task]:
    return list(make_tasks(section, SplitSizes(24, 4, 12), seed=0))


def test_a_programs_split_is_its_own(programs: dict[str, Program]) -> None:
    counts = Counter((program.source, split_of(program)) for program in programs.values())
    assert counts == {
        ("quixbugs", "test"): 40,
        ("humanevalfix", "test"): 59,
        ("humanevalfix", "train"): 84,
        ("humanevalfix", "validation"): 21,
    }


def test_splits_share_no_program(tasks: list[Task], programs: dict[str, Program]) -> None:
    check_tasks(tasks)
    assert Counter(task.split for task in tasks) == {"train": 24, "validation": 4, "test": 12}
    assert all(split_of(programs[task.spec["program"]]) == task.split for task in tasks)


def test_what_is_learned_from_can_be_repaired_by_a_listed_change(
    tasks: list[Task], programs: dict[str, Program]
) -> None:
    for task in tasks:
        program = program_of(task, programs)
        if task.split != "test":
            assert repair(program.faulty, program.correct), task
        else:
            assert task.spec["change"] is None, "a bug of the data set as it stands there"


def test_a_program_that_a_table_wins_is_in_no_task(section: CodeRepairParameters) -> None:
    validation = list(make_tasks(section, SplitSizes(0, 20, 0), seed=0))
    assert not {task.spec["program"].partition("/")[2] for task in validation} & {"40", "50", "95", "125"}


def test_a_task_holds_no_program(tasks: list[Task]) -> None:
    assert all(task.spec.keys() == {"program", "change"} for task in tasks)


def test_tasks_follow_from_the_seed(section: CodeRepairParameters) -> None:
    sizes = SplitSizes(0, 0, 6)
    first, again, other = (list(make_tasks(section, sizes, seed)) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"program": "quixbugs/gcdd", "change": None}, "names no program"),
        ({"program": "quixbugs/gcd", "change": 999}, "spec.change is 999"),
    ],
)
def test_a_foreign_task_is_refused(spec: dict[str, object], said: str, programs: dict[str, Program]) -> None:
    with pytest.raises(TaskError, match=said):
        program_of(Task("t", "code_repair", 0, spec), programs)


def test_a_program_in_two_splits_is_refused() -> None:
    tasks = [
        Task(f"t{split}", "code_repair", 0, {"program": "quixbugs/gcd", "change": number}, split)
        for number, split in enumerate(("train", "test"))
    ]
    with pytest.raises(TaskError, match="quixbugs/gcd is in train and in test"):
        check_tasks(tasks)


def test_data_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKILLPRESS_CODE_REPAIR", raising=False)
    with pytest.raises(
        StorageError, match=r"environment\.data: is empty, and SKILLPRESS_CODE_REPAIR is not set"
    ):
        find_data("")
    with pytest.raises(StorageError, match=r"holds no quixbugs_python.tar.xz"):
        find_data(str(tmp_path))
