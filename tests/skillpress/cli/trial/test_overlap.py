"""A trial leaves out what its skills were written from: ids, texts and repositories, without the logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.command import main
from skillpress.cli.trial.overlap import SkillSource, known_tasks, source_of
from skillpress.core.errors import StorageError
from skillpress.core.trajectory import Task
from skillpress.logs.fields import Wanted
from skillpress.reports.skill_files.evidence import SkillEvidence
from skillpress.skills.library.files import EVIDENCE_FILE, read_skill_folders
from tests.support.rollouts.chat_server import chat_server
from tests.support.skills.folders import skill_folder
from tests.support.skills.scripted_sessions import record_of, sessions, write_sessions
from tests.support.skills.trials import reads_skills, world

TEXT = "Repair the parser so that nested brackets are read, and add a test for the empty document."


def task(name: str, **spec: Any) -> Task:
    return Task(name, "program", 0, {"id": name, **spec})


def known(source: SkillSource, *tasks: Task) -> list[str]:
    return [*known_tasks(source, tasks)]


def hashed(tasks: set[str], *messages: str) -> SkillSource:
    """What the hashes of these tasks and first messages say."""
    return SkillSource("", (SkillEvidence.of(tasks, messages),))


@pytest.mark.parametrize(
    "wrapped", [f"You are an agent. {TEXT} Begin.", f"Solve this\n\n{TEXT}", f"<t>{TEXT}</t>"]
)
def test_ids_and_texts_are_known_by_their_hashes(wrapped: str) -> None:
    source = hashed({"django__django-11099", "7"}, wrapped)
    assert known(source, task("7"), task("8"), task("77"), task(" 7\n")) == ["7", " 7\n"]
    assert known(source, task("a", instruction=f"  {TEXT}\n"), task("b", instruction=TEXT[:60])) == ["a"]
    assert known(source, task("c", instruction="Repair the parser."), task("d", hidden=TEXT)) == []


def test_a_text_is_known_if_half_of_its_sentences_are() -> None:
    other = "Nothing else of this repository may be changed by you today."
    third = "The tests that fail now are listed in the file failing.txt."
    source = hashed(set(), TEXT)
    assert known(source, task("a", text=f"{TEXT} {other}")) == ["a"]
    assert known(source, task("b", text=f"{TEXT} {other} {third}")) == []


def test_repositories_of_ids_and_messages_are_known_by_their_hashes() -> None:
    source = hashed({"django__django-11099"}, "Clone https://github.com/Psf/requests.git, then look at a/b.")
    tasks = [task("e", repo="django/django"), task("f", repo="django/djang"), task("g", repo="a/c")]
    tasks += [
        task("h", repository="https://github.com/psf/requests"),
        task("i", repo="github.com/other/thing"),
    ]
    assert known(source, *tasks) == ["e", "h"]


def test_what_a_skill_itself_names_is_known() -> None:
    source = SkillSource(f"used for thing-001 and in psf/requests. {TEXT.lower()}")
    tasks = [task("thing-001"), task("thing-0012"), task("x", repo="psf/requests"), task("y", prompt=TEXT)]
    assert known(source, *tasks) == ["thing-001", "x", "y"]


def test_a_text_that_most_tasks_share_tells_none_of_them_apart() -> None:
    source = hashed(set(), f"{TEXT} Find a.")
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


def test_logs_say_what_skills_without_hashes_were_written_from(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    skills = read_skill_folders(skill_folder(tmp_path / "skills", "find"), "--skills")
    assert source_of(skills, [], Wanted(), 0.1).unchecked == ("find",)
    source = source_of(skills, [log], Wanted(task="task_id"), 0.1)
    assert source.unchecked == () and known(source, task("thing-7"), task("t", text=TEXT)) == ["thing-7", "t"]
    (tmp_path / "skills" / "find" / EVIDENCE_FILE).write_text('{"schema": "skillpress.evidence/1"}')
    with pytest.raises(StorageError, match="salt must be a text, the rest lists of hashes"):
        source_of(skills, [], Wanted(), 0.1)


def test_a_trial_of_written_skills_leaves_their_tasks_out_without_the_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        {**record_of(it), "task_id": f"thing-{number // 20:03}"}
        for number, it in enumerate(sessions(60, noise=0.0))
    ]
    log = write_sessions(tmp_path / "log.jsonl", records)
    assert (
        main(["skills", str(log), "--write", str(tmp_path / "skills"), "--output", str(tmp_path / "page")])
        == 0
    )
    log.unlink()
    skill_folder(tmp_path / "skills", "by-hand")
    with chat_server(manner=reads_skills("patch", 0.2)) as (url, _):
        given = ["--skills", str(tmp_path / "skills"), "--model", url, *world(tmp_path, 4)]
        assert main(["trial", *given]) == 0
    record = json.loads((tmp_path / "out" / "trial.json").read_text())
    assert record["excluded"] == dict.fromkeys(["thing-001", "thing-002"], "its id is a task of the logs")
    assert record["asked"]["left_out"] == ["thing-001", "thing-002"] and record["success"]["tasks"] == 2
    said = capsys.readouterr().out
    assert "left out: 2 tasks that the skills were written from (thing-001: its id is a task" in said
    assert "overlap could not be checked: neither .evidence.json nor --logs say what by-hand comes" in said
