"""``skillpress trial``: one interleaved plan, one look, and a record that names what it rests on."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.command import main
from tests.support.rollouts.chat_server import Heard, chat_server
from tests.support.skills.folders import skill_folder
from tests.support.skills.trials import reads_skills, world

TASKS = 8


def skills_in(folder: Path) -> Path:
    return skill_folder(skill_folder(folder / "skills", "close-doors"), "find-things", "The word is plover.")


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return skills_in(tmp_path)


def tried(folder: Path, *more: str, tasks: int = TASKS) -> tuple[dict[str, Any], Heard]:
    """Run a trial; returns its record and the requests that the model received."""
    with chat_server(manner=reads_skills("plover", 0.2)) as (url, heard):
        arguments = [
            "trial",
            "--skills",
            str(folder / "skills"),
            "--model",
            url,
            *world(folder, tasks),
            *more,
        ]
        assert main(arguments) == 0
    return json.loads((folder / "out" / "trial.json").read_text()), heard


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "out" / "episodes.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A trial with two rollouts of each task."""
    folder = tmp_path_factory.mktemp("trial")
    skills_in(folder)
    return folder, tried(folder, "--rollouts", "2")[0]


def test_a_skill_that_helps_is_found_with_its_cost(played: tuple[Path, dict[str, Any]]) -> None:
    record = played[1]
    assert record["verdict"] == "the skills help" and record["success"]["second"] == 1.0
    assert record["lines"][0] == record["headline"]
    assert " points (" in record["headline"] and " 0 more often without, exact p = 0.0" in record["headline"]
    calls, tokens = record["costs"]["calls"], record["costs"]["tokens"]
    assert (calls["first"], calls["second"]) == (1.0, 2.0), "reading is a call"
    assert (tokens["first"], tokens["second"]) == (13.0, 26.0)
    assert record["costs"]["seconds"]["second"] > 0
    assert record["opened"] == {"close-doors": 1.0, "find-things": 1.0}


def test_each_episode_says_what_it_got_and_what_it_opened(played: tuple[Path, dict[str, Any]]) -> None:
    folder, record = played
    digests = record["asked"]["skills"]
    for row in rows(folder):
        got = {name: f"{name}={digest}" for name, digest in digests.items() if row["arm"] == "with"}
        assert row["skills"] == " ".join(got.values()) and row["opened"] == " ".join(got)


def test_the_arms_of_a_task_follow_each_other_and_each_comes_first_as_often(
    played: tuple[Path, dict[str, Any]],
) -> None:
    found = rows(played[0])
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert all((a["task"], a["rollout"]) == (b["task"], b["rollout"]) for a, b in pairs)
    assert all({a["arm"], b["arm"]} == {"with", "without"} for a, b in pairs)
    assert sum(a["arm"] == "with" for a, _ in pairs) == TASKS
    order = [a["task"] for a, _ in pairs]
    assert sorted(order[:TASKS]) == sorted(order[TASKS:]) and order[:TASKS] != sorted(order[:TASKS])


def test_an_agent_that_reads_no_files_is_told_the_skills(tmp_path: Path, skills: Path) -> None:
    with chat_server(answer=lambda prompt: "<think>x</think><action>none</action>") as (url, heard):
        arguments = ["--environment", "countdown", "--tasks", "2", "--output", str(tmp_path / "out")]
        arguments += ["--set", "environment.max_steps=3"]
        assert main(["trial", "--skills", str(skills), "--model", url, *arguments, "--accept-unread"]) == 0
    prompts = [body["messages"][0]["content"] for body in heard.bodies]
    told = [prompt.startswith("Skills learned in earlier tasks:\n- close-doors: Use") for prompt in prompts]
    assert sum(told) == len(told) / 2 and all("plover" in prompt for prompt in prompts if "learned" in prompt)
    record = json.loads((tmp_path / "out" / "trial.json").read_text())
    assert record["verdict"] == "no difference shown", "the same seed gives both arms the same draws"
    assert record["opened"] == {} and {row["opened"] for row in rows(tmp_path)} == {""}


def test_a_plan_is_said_and_nothing_is_played(tmp_path: Path, skills: Path, capsys: Any) -> None:
    with chat_server() as (url, heard):
        arguments = [
            "trial",
            "--skills",
            str(skills),
            "--model",
            url,
            *world(tmp_path, 5),
            "--plan",
            "--each",
        ]
        assert main(arguments) == 0
    assert heard.bodies == [] and not (tmp_path / "out").exists()
    said = capsys.readouterr().out
    assert (
        "price: 20 episodes (5 tasks x 1 rollouts x 4 arms), at most 80 calls of at most 64 response" in said
    )
    assert "power: 5 tasks can show nothing, whatever their outcomes; 6 are the fewest" in said


def test_the_same_command_says_the_verdict_again_and_another_trial_is_refused(
    played: tuple[Path, dict[str, Any]], capsys: Any
) -> None:
    folder, record = played
    again, heard = tried(folder, "--rollouts", "2")
    assert again == record and heard.bodies == [] and record["headline"] in capsys.readouterr().out
    with chat_server() as (url, _):
        arguments = ["--skills", str(folder / "skills"), "--model", url, *world(folder, TASKS)]
        assert main(["trial", *arguments]) == 2
    assert "rollouts is 2 and not 1; name another folder" in capsys.readouterr().err


def test_a_single_skill_has_no_others_to_leave_in(tmp_path: Path, capsys: Any) -> None:
    skills = skill_folder(tmp_path / "skills", "find-things")
    assert main(["trial", "--skills", str(skills), "--model", "m", "--each", *world(tmp_path, 6)]) == 2
    assert "--each: needs several skills, not find-things alone" in capsys.readouterr().err
