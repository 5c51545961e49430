"""``skillpress skills --write --teacher URL``: a model may word a skill, and nothing more."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.cli.command import main
from tests.support.rollouts.chat_server import Trouble, chat_server
from tests.support.skills.scripted_sessions import record_of, sessions, write_sessions

COMPUTED = {"grep-sed-patch-pytest", "hatch-towncrier-twine", "pip-uv-diff"}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """``written(answer, ...)``: the text of each SKILL.md by folder, with a server that answers so."""
    log = write_sessions(tmp_path / "log.jsonl", [record_of(it) for it in sessions(60, noise=0.1)])

    def run(
        answer: Callable[[str], str], *more: str, trouble: Trouble = lambda number: None, folder: str = "s"
    ) -> dict[str, str]:
        paths = ["--write", str(tmp_path / folder), "--output", str(tmp_path / "page")]
        with chat_server(trouble, answer=answer) as (url, _):
            assert main(["skills", str(log), *paths, "--teacher", url, *more]) == 0
        return {path.parent.name: path.read_text() for path in (tmp_path / folder).glob("*/SKILL.md")}

    return run


def said(tmp_path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((tmp_path / "page" / "teacher.json").read_text())
    return found


def worded(question: str) -> str:
    """Names each skill after its first step, with a thought before it."""
    first = re.search(r"\\n1\. (\w+)", question)
    assert first is not None
    described = f"Description: Use {first[1]} first; ask a@b.example."
    return f"<think>Name: wrong</think>\nName: the-{first[1]}-way\n{described}"


def front(text: str) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_the_teacher_words_name_and_description_and_the_rest_stays_computed(
    written: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    found = written(worded)
    assert set(found) == {"the-grep-way", "the-hatch-way", "the-pip-way"}
    computed = written(lambda question: "I cannot.", folder="computed")
    assert set(computed) == COMPUTED
    fix, plain = found["the-grep-way"], computed["grep-sed-patch-pytest"]
    assert front(fix) == {"name": "the-grep-way", "description": "Use grep first; ask <email>."}
    assert "the model toy worded name and description" in fix and "without a model" in plain
    assert (
        fix.split("---\n", 2)[2].partition("- **Made by:**")[0]
        == plain.split("---\n", 2)[2].partition("- **Made by:**")[0]
    )


def test_what_the_teacher_said_is_recorded_and_an_unchanged_skill_is_not_asked_about_again(
    written: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    first = written(worded)
    rows = said(tmp_path)
    assert {row["skill"] for row in rows} == COMPUTED and {row["name"] for row in rows} == set(first)
    assert all(row["said"].startswith("<think>") and row["refused"] == "" for row in rows)
    assert written(worded) == first and said(tmp_path) == []


@pytest.mark.parametrize("name", ["Wrong Name", "a" * 65, "../escape", "jane@b.example", ""])
def test_a_name_against_the_rules_is_not_taken_and_the_description_is(
    name: str, written: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    found = written(lambda question: f"Name: {name}\nDescription: Mends tests.", "--max", "1")
    (text,) = found.values()
    assert front(text) == {"name": "grep-sed-patch-pytest", "description": "Mends tests."}
    assert "must be 1 to 64 of a-z" in said(tmp_path)[0]["refused"]


def test_two_skills_never_have_one_name(written: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    found = written(lambda question: "Name: same\nDescription: Mends tests.")
    assert len(found) == 3 and "same" in found and len(COMPUTED & set(found)) == 2
    assert [row["refused"] for row in said(tmp_path)][1:] == ["name 'same': is another skill's"] * 2


def test_a_slow_or_failing_teacher_costs_its_deadline_once_and_computed_words_stay(
    written: Callable[..., dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    found = written(worded, "--deadline", "1", trouble=lambda number: 5.0)
    assert set(found) == COMPUTED and time.monotonic() - begun < 9
    assert "computed words stay" in capsys.readouterr().err and [row["said"] for row in said(tmp_path)] == [
        ""
    ]
    failing = written(worded, "--deadline", "1", trouble=lambda number: (500, {}, {}), folder="failing")
    assert set(failing) == COMPUTED and "without a model" in failing["pip-uv-diff"]


def test_a_teacher_that_is_not_there_costs_nothing_and_a_wrong_address_is_an_error(tmp_path: Path) -> None:
    log = write_sessions(tmp_path / "log.jsonl", [record_of(it) for it in sessions(60, noise=0.1)])
    asked = ["skills", str(log), "--write", str(tmp_path / "s"), "--output", str(tmp_path / "page")]
    assert main([*asked, "--teacher", "http://127.0.0.1:9/v1"]) == 0
    assert (tmp_path / "s" / "pip-uv-diff" / "SKILL.md").exists() and said(tmp_path) == []
    assert main([*asked, "--teacher", "file:///etc/passwd"]) != 0
