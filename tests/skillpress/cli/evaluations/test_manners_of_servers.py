"""16 concurrent requests to well- and ill-behaved servers: episodes, steps that say why, or one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.cli.evaluations.chat import Chat
from skillpress.cli.evaluations.parameters import evaluation_params, tasks_of
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.trajectory import Task, Trajectory
from skillpress.rollouts.chat.server import ChatError, ChatServer
from skillpress.rollouts.collection.requests import requests
from tests.support.rollouts.chat_server import chat_server
from tests.support.rollouts.manners import SAME
from tests.support.rollouts.odd_manners import LINES, STEPS

OPTIONS = {
    "tasks": {"test": 16},
    "evaluation": {"votes": 1, "temperature": 0.4, "top_p": 0.9, "top_k": 20},
    "environment": {"max_steps": 3},
    "policy": {"parser": "tagged"},
    "sampling": {"slots": 16, "max_new_tokens": 512},
}
PARAMS = evaluation_params("countdown", "http://host/v1", options=OPTIONS)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return tasks_of(PARAMS, "test")


def play(tasks: list[Task], folder: Path, manner, deadline: float = 60.0) -> list[Trajectory]:
    wanted = list(requests(tasks, 1, 0, "test", "run-0"))
    with chat_server(manner=manner) as (url, _):
        server = ChatServer(url, "toy", deadline_seconds=deadline)
        Chat(server).play(PARAMS, wanted, ResumeStore(folder, "k"), folder / "out.parquet", lambda more: None)
    return read_rollouts(folder / "out.parquet")


@pytest.fixture(scope="module")
def well_played(tasks: list[Task], tmp_path_factory: pytest.TempPathFactory) -> list[Trajectory]:
    return play(tasks, tmp_path_factory.mktemp("good"), SAME["good"])


@pytest.mark.parametrize("name", SAME)
def test_what_is_no_answer_changes_no_episode(
    name: str, tasks: list[Task], well_played: list[Trajectory], tmp_path: Path
) -> None:
    deadline = 6.0 if name == "drops of a byte" else 60.0
    assert play(tasks, tmp_path, SAME[name], deadline) == well_played


def test_episodes_that_are_all_finished_are_written_again_without_a_server(
    tasks: list[Task], tmp_path: Path
) -> None:
    play(tasks[:2], tmp_path, SAME["good"])
    written, finished = (tmp_path / "out.parquet").read_bytes(), []
    gone, wanted = (
        Chat(ChatServer("http://127.0.0.1:1/v1", "toy")),
        list(requests(tasks[:2], 1, 0, "test", "run-0")),
    )
    gone.play(PARAMS, wanted, ResumeStore(tmp_path, "k"), tmp_path / "again.parquet", finished.append)
    assert (tmp_path / "again.parquet").read_bytes() == written and finished == [2]


@pytest.mark.parametrize("name", STEPS)
def test_an_answer_without_an_action_is_a_step_that_says_why(
    name: str, tasks: list[Task], tmp_path: Path
) -> None:
    wanted = STEPS[name]
    for episode in play(tasks[:2], tmp_path, wanted.manner):
        assert [step.invalid for step in episode.steps] == [wanted.invalid] * 3
        assert {(step.thought, step.action) for step in episode.steps} == {(wanted.thought, "")}


@pytest.mark.parametrize("name", LINES)
def test_a_server_that_cannot_be_used_ends_in_one_line(name: str, tasks: list[Task], tmp_path: Path) -> None:
    line = LINES[name]
    with pytest.raises(ChatError, match=line.says) as ended:
        play(tasks, tmp_path, line.manner, line.deadline)
    assert str(ended.value).isprintable() and str(ended.value).startswith("http://127.0.0.1")
