"""The library and its history: its state after any step, and its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.core.trajectory import Task
from skillpress.skills.library.library import (
    GENERAL,
    Skill,
    SkillLibrary,
    Version,
    read_library,
    task_class,
    write_library,
)

LOOK = Skill("look, then take", "cool", uses=3, phrase=("Look", "Take"), why="x", failures=("train/2/a/0",))
GO = Skill("go — anywhere", GENERAL)
LIBRARY = SkillLibrary(
    (
        Version(step=2, failures=("train/2/a/0", "train/2/b/1"), added=(LOOK,)),
        Version(step=4, failures=(), added=()),
        Version(step=6, failures=("train/6/a/0",), added=(GO,)),
    )
)


def test_the_library_after_a_step_is_all_that_was_added_until_then() -> None:
    assert [len(LIBRARY.at(step).skills) for step in range(8)] == [0, 0, 1, 1, 1, 1, 2, 2]
    assert LIBRARY.skills == (LOOK, GO) and LIBRARY.at(5).versions == LIBRARY.versions[:2]


def test_what_it_has_for_every_task_it_has_for_each_class() -> None:
    here = Skill(GO.text, "heat")
    there = Skill(LOOK.text, "heat")
    assert LIBRARY.lacks([LOOK, here, there]) == [there]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (Version(step=6, failures=(), added=()), "each must be of a later step"),
        (Version(step=7, failures=(), added=(LOOK,)), "twice"),
    ],
)
def test_it_only_grows(version: Version, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LIBRARY.evolved(version)


def test_a_file_gives_the_library_back_with_its_history_and_the_same_bytes(tmp_path: Path) -> None:
    for library in (LIBRARY, SkillLibrary()):
        write_library(tmp_path / "library.json", library)
        written = (tmp_path / "library.json").read_bytes()
        assert read_library(tmp_path / "library.json") == library
        write_library(tmp_path / "library.json", read_library(tmp_path / "library.json"))
        assert (tmp_path / "library.json").read_bytes() == written


def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "library.json"
    write_library(file, LIBRARY)
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"versions": [{"step": 1}]}))
    with pytest.raises(StorageError, match="damaged library"):
        read_library(file)
    file.write_text(json.dumps(content | {"schema": "skillpress.library/0"}))
    with pytest.raises(StorageError, match=r"schema is 'skillpress\.library/0'"):
        read_library(file)


@pytest.mark.parametrize("stratum", ["look_at_obj", "train/look_at_obj", "ood/x/look_at_obj"])
def test_a_test_task_is_of_the_class_of_the_training_tasks_like_it(stratum: str) -> None:
    assert task_class(Task("t", "e", 0, {}, stratum=stratum)) == "look_at_obj"
