"""A trial is refused on what its skills were written from: ids, texts and repositories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.trial.overlap import SkillSource, known_tasks, source_of
from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task
from skillpress.logs.fields import Wanted
from skillpress.reports.skill_files.reading import hash_of_logs
from skillpress.skills.library.files import read_skill_folders
from tests.support.skills.folders import skill_folder

TEXT = "Repair the parser so that nested brackets are read, and add a test for the empty document."


def task(name: str, **spec: Any) -> Task:
    return Task(name, "program", 0, {"id": name, **spec})


def known(source: SkillSource, *tasks: Task) -> list[str]:
    return [*known_tasks(source, tasks)]


def test_ids_texts_and_repositories_of_logs_are_known() -> None:
    source = SkillSource("", frozenset({"django__django-11099", "7"}), (f"You are an agent. {TEXT} Begin.",))
    assert known(source, task("7"), task("8"), task("77")) == ["7"]
    assert known(source, task("a", instruction=f"  {TEXT}\n"), task("b", instruction=TEXT[:60])) == ["a", "b"]
    assert known(source, task("c", instruction="Repair the parser."), task("d", hidden=TEXT)) == []
    repositories = [task("e", repo="django/django"), task("f", repo="django/djang"), task("g", repo="a/b")]
    assert known(source, *repositories) == ["e"]
    assert known(source, task("h", repository="https://github.com/django/django.git")) == ["h"]


def test_what_a_skill_itself_names_is_known() -> None:
    source = SkillSource(f"Used for thing-001 and in psf/requests. {TEXT}")
    tasks = [task("thing-001"), task("thing-0012"), task("x", repo="psf/requests"), task("y", prompt=TEXT)]
    assert known(source, *tasks) == ["thing-001", "x", "y"]


def test_a_text_that_most_tasks_share_tells_none_of_them_apart() -> None:
    source = SkillSource("", messages=(f"{TEXT} Find a.",))
    assert known(source, *(task(name, system=TEXT, n=name) for name in "abcd")) == []


def log_of(folder: Path) -> Path:
    """A log of one session in the form of chat completions."""
    file = folder / "log.jsonl"
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a"},
    ]
    file.write_text(json.dumps({"messages": messages, "task_id": "thing-7"}) + "\n")
    return file


def test_skills_with_evidence_need_the_logs_that_it_names(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    evidence = f"## Evidence\n\n- **Logs:** 1 file, hash {hash_of_logs([log])} (SHA-256)."
    skills = read_skill_folders(skill_folder(tmp_path / "skills", "find", evidence), "--skills")
    with pytest.raises(ParamsError, match="--logs: is missing; find were written from logs with the hash"):
        source_of(skills, [], Wanted(), 0.1, allowed=False)
    assert source_of(skills, [], Wanted(), 0.1, allowed=True).unmatched == ("find",)
    source = source_of(skills, [log], Wanted(task="task_id"), 0.1, allowed=False)
    assert source.unmatched == () and known(source, task("thing-7"), task("t", text=TEXT)) == ["thing-7", "t"]
    log.write_text(log.read_text() * 2)
    with pytest.raises(ParamsError, match="--logs: have the hash"):
        source_of(skills, [log], Wanted(), 0.1, allowed=False)
