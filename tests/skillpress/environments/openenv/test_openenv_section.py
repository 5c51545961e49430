"""The section of a foreign server: what it refuses, its tasks, what is shown, and how skills are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skillpress.core.errors import ParamsError, TaskError, UserError
from skillpress.core.interface import AgentState, Info, Turn
from skillpress.core.trajectory import Task
from skillpress.environments.openenv.connection import ForeignProtocolError
from skillpress.environments.openenv.environment import OpenEnvState
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.openenv.reading import LEFT_OUT, admissible, seen, shortened, told
from skillpress.environments.openenv.skills import words_of
from skillpress.environments.section import SplitSizes
from skillpress.environments.text.words import encodable

URL = "http://127.0.0.1:8000"


def section(**changes: Any) -> OpenEnvParameters:
    values = {"name": "openenv", "max_steps": 8, "url": URL, "opening": "Guess the word.", "won_at": 1.0}
    return OpenEnvParameters.model_validate(values | changes)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://host", "http://", "http://me:secret@host", "http://host/?a=1"]
)
def test_an_address_that_is_none_or_holds_a_password_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match=r"address|password"):
        section(url=url)


@pytest.mark.parametrize(
    ("url", "socket"),
    [
        ("http://host:8000", "ws://host:8000/ws"),
        ("https://host/env/", "wss://host/env/ws"),
        ("wss://host", "wss://host/ws"),
    ],
)
def test_the_websocket_stands_below_the_address(url: str, socket: str) -> None:
    assert section(url=url).socket_url == socket


def test_seeds_are_tasks_and_more_training_never_touches_the_test_tasks() -> None:
    few = list(section(first_seed=5).make_tasks(SplitSizes(2, 1, 3), seed=0))
    many = list(section(first_seed=5).make_tasks(SplitSizes(9, 1, 3), seed=1))
    assert [task.spec["reset"]["seed"] for task in few] == [5, 6, 7, 8, 9, 10]
    assert [task.split for task in few] == ["test"] * 3 + ["validation"] + ["train"] * 2
    assert many[:6] == few
    assert few[0] == Task("seed-5", "openenv", 5, {"url": URL, "reset": {"seed": 5}}, "test")
    section().check_tasks(many)


def test_lines_of_a_file_are_tasks(tmp_path: Path) -> None:
    file = tmp_path / "resets.jsonl"
    file.write_text('{"level": "hard", "seed": 3}\n\n{"level": "easy"}\n')
    tasks = list(section(resets=str(file)).make_tasks(SplitSizes(1, 0, 1), seed=0))
    assert [(task.task_id, task.spec["reset"]) for task in tasks] == [
        ("line-1", {"level": "hard", "seed": 3}), ("line-3", {"level": "easy"})
    ]  # fmt: skip
    section().check_tasks(tasks)
    before = section(resets=str(file)).inputs()
    with pytest.raises(TaskError, match="fewer than the 3 tasks asked for"):
        list(section(resets=str(file)).make_tasks(SplitSizes(1, 1, 1), seed=0))
    file.write_text('{"level": "easy"}\n{"level":   "easy"}\n')
    with pytest.raises(TaskError, match=r"1 tasks repeat a reset|splits overlap"):
        section().check_tasks(list(section(resets=str(file)).make_tasks(SplitSizes(1, 0, 1), seed=0)))
    assert section(resets=str(file)).inputs() != before, "what is in it decides the episodes"
    assert section().inputs() == {}


@pytest.mark.parametrize(("line", "said"), [("{", "resets.jsonl:1: not JSON"), ("[1]", "must be an object")])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "resets.jsonl").write_text(line)
    with pytest.raises(TaskError, match=said):
        list(section(resets=str(tmp_path / "resets.jsonl")).make_tasks(SplitSizes(1, 0, 0), seed=0))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = section(resets=str(tmp_path / "none.jsonl"))
    with pytest.raises(UserError, match=r"environment.resets: .*none.jsonl cannot be read"):
        missing.inputs()
    with pytest.raises(UserError, match=r"environment.resets: .*none.jsonl cannot be read"):
        list(missing.make_tasks(SplitSizes(1, 0, 0), seed=0))


def test_one_field_is_shown_alone_several_with_their_names_none_as_json() -> None:
    found = {"prompt": "Guess.", "left": [1, 2], "metadata": {"a": 1}, "score": None}
    assert seen(section(fields={"text": ["prompt"]}), found) == "Guess."
    assert seen(section(fields={"text": ["left", "score"]}), found) == "left: [1, 2]\nscore: "
    assert json.loads(seen(section(), found)) == {"prompt": "Guess.", "left": [1, 2], "score": None}


def test_what_is_admissible_is_told_by_a_field_or_listed_by_the_section() -> None:
    assert admissible(section(fields={"admissible": "legal"}), {"legal": [3, "up"]}) == ("3", "up")
    assert admissible(section(fields={"admissible": "legal"}), {"legal": None}) == ()
    assert admissible(section(actions=["up", "down"]), {}) == ("up", "down")
    with pytest.raises(ForeignProtocolError, match="'legal' is str, not a list"):
        admissible(section(fields={"admissible": "legal"}), {"legal": "up"})
    assert section().explorer_actions(Info()) == ("",)
    assert section().explorer_actions(Info(admissible=("up",))) == ("up",)


def test_a_field_that_is_named_must_be_there() -> None:
    assert told({"why": None}, "why", "invalid") is None and told({}, "", "invalid") is None
    with pytest.raises(ForeignProtocolError, match=r"fields.invalid: .* has no 'why'; it has 'text'"):
        told({"text": ""}, "why", "invalid")


@given(text=st.text(alphabet=st.characters(), max_size=40), most=st.integers(10, 50))
def test_a_shown_text_can_be_stored_and_is_no_longer_than_it_may_be(text: str, most: int) -> None:
    encodable(text).encode()
    found = shortened(text, most)
    assert len(found) <= most
    assert found == text if len(text) <= most else LEFT_OUT in found


def test_a_text_that_is_no_unicode_can_be_stored() -> None:
    assert encodable("caf\ud800") == "caf?"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("go north", "go north"),
        ('{"tool_name": "search", "query": "a b", "k": 2}', "search a b 2"),
        ('{"query": "a", "tool_name": "search"}', "search a"),
        ('{"query": "a"}', '{"query": "a"}'),
        ('{"tool_name": 3}', '{"tool_name": 3}'),
        ("{", "{"),
        ("[1]", "[1]"),
    ],
)
def test_a_json_action_reads_as_its_tool_and_its_values(action: str, words: str) -> None:
    assert words_of(action, "tool_name") == words


def test_skills_follow_the_sections_rules_over_those_words() -> None:
    stated = {"rules": [["search * now", "Hurry"]], "verbs": ["search", "read"]}
    projection = section(skills=stated).make_projection()
    assert projection.alphabet == ("Hurry", "search", "read")
    said = ['{"tool_name": "search", "q": "it now"}', '{"tool_name": "Read"}', "search x", "fly"]
    assert [projection.skill(action) for action in said] == ["Hurry", "read", "search", None]
    assert section().make_projection().alphabet == ()


def test_the_prompt_shows_the_beginning_again_and_lists_actions_only_where_there_is_a_list() -> None:
    rendering = section().rendering("text", 2)
    task = Task("seed-0", "openenv", 0, {"url": URL, "reset": {"seed": 0}})
    first = AgentState(task, "Five letters.", Info(state=OpenEnvState("Five letters.", 0)))
    assert rendering.prompt(first).startswith("Guess the word.\nThis is step 1. You see: Five letters.\n")
    turns = tuple(Turn(f"seen {n}", "", f"done {n}") for n in range(3))
    info = Info(admissible=("crane",), state=OpenEnvState("Five letters.", 3))
    later = rendering.prompt(AgentState(task, "_R___", info, turns, notes="no E"))
    assert "At the beginning you saw: Five letters." in later and "no E" in later
    assert "seen 1" in later and "seen 0" not in later and "['crane']" in later
    assert "crane" in rendering.continuation(AgentState(task, "_R___", info))
    assert rendering.response("crane", info) == "<think>I take the next step.</think><action>crane</action>"


def test_nobody_demonstrates() -> None:
    assert not section().has_oracle
    with pytest.raises(ParamsError, match=r"openenv.*has no make_oracle"):
        section().make_oracle()


def test_a_proxy_that_cannot_be_used_is_refused_before_any_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(UserError, match=r"^ALL_PROXY: .*python-socks is missing"):
        section(url="http://games.example.com").make_shared(1)
    section(url="http://localhost:8000").make_shared(1).close()
