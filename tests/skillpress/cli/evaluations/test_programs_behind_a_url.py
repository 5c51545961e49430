"""``skillpress evaluate --environment program --model URL``: the endpoint forwards, and records what comes
back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.command import main
from skillpress.cli.evaluations.chat import Chat
from skillpress.cli.evaluations.parameters import evaluation_params, tasks_of
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.rollouts.chat.server import ChatError, ChatServer
from skillpress.rollouts.collection.requests import requests
from tests.support.rollouts import asking
from tests.support.rollouts.chat_server import Heard, Manner, chat_server
from tests.support.rollouts.manners import AT_ONCE, SAME, error, events, message
from tests.support.rollouts.odd_manners import LINES

OPTIONS: dict[str, Any] = {
    "environment": {
        "name": "program",
        "run": f"{asking.HERE}:look_around",
        "verify": f"{asking.HERE}:told",
        "max_calls": 6,
        "seconds": 60,
        "isolation": "none",
    },
    "tasks": {"test": 4},
    "policy": {"model": "http://host/v1", "rendering": "requests"},
    "imitation": {"demonstrations": 0},
    "evaluation": {"votes": 1, "temperature": 0.4, "top_p": 0.9, "top_k": 20},
    "sampling": {"slots": AT_ONCE, "max_new_tokens": 512},
}
CALL = {"id": "c-9", "type": "function", "function": {"name": "look", "arguments": '{"at": "the shelf"}'}}


def good_manner(number: int, body: dict[str, Any], good: dict[str, Any]) -> dict[str, Any]:
    """Calls the tool once, and is done when its result is there."""
    if body["messages"][-1]["role"] == "tool":
        return message(good, content="found it", reasoning_content="It is there.")
    return message(good, "tool_calls", content=None, tool_calls=[CALL])


def after(manner: Manner) -> Manner:
    """The behaviour of a server whose good answers are those of ``good_manner``."""
    return lambda number, body, good: manner(number, body, good_manner(number, body, good))


def own(tasks_file: Path) -> dict[str, Any]:
    """The section of the environment with these tasks and the rules beside them."""
    rules = str(tasks_file.with_name("rules.yaml"))
    return {**OPTIONS["environment"], "tasks": str(tasks_file), "rules": rules}


def written(folder: Path) -> Path:
    (folder / "rules.yaml").write_text('rules: [["look *", Look]]')
    file = folder / "tasks.jsonl"
    file.write_text("".join(json.dumps({"id": f"thing-{number}"}) + "\n" for number in range(17)))
    return file


@pytest.fixture
def tasks_file(tmp_path: Path) -> Path:
    return written(tmp_path)


def actions(episodes: list[Trajectory]) -> list[str]:
    assert all(episode.won for episode in episodes)
    return [step.action for episode in episodes for step in episode.steps]


def play(
    tasks_file: Path, manner: Manner, deadline: float = 60.0, key: str = "", number: int = 4
) -> tuple[list[Trajectory], Heard]:
    changed = {
        **OPTIONS,
        "environment": own(tasks_file),
        "tasks": {"test": number},
    }
    params = evaluation_params("program", "http://host/v1", options=changed)
    wanted = list(requests(tasks_of(params, "test"), 1, 0, "test", "run-0"))
    folder = tasks_file.parent
    with chat_server(manner=manner) as (url, heard):
        player = Chat(ChatServer(url, "toy", key_variable=key, deadline_seconds=deadline))
        player.check(params)
        store = ResumeStore(folder, "k")
        player.play(params, wanted, store, folder / "out.parquet", lambda more: None)
    return read_rollouts(folder / "out.parquet"), heard


def test_calls_text_thought_and_usage_of_the_server_are_recorded(tasks_file: Path) -> None:
    episodes, heard = play(tasks_file, good_manner)
    assert len(episodes) == 4 and all(episode.won for episode in episodes)
    for episode in episodes:
        first, last = episode.steps
        assert json.loads(first.action) == {
            "content": "", "calls": [{"tool": "look", "arguments": {"at": "the shelf"}}],
        }  # fmt: skip
        assert (first.skills, first.invalid, first.prompt_ids, first.response_ids) == (
            ("Look",),
            None,
            (),
            (),
        )
        assert first.observation.startswith("seen with")
        assert (json.loads(last.action), last.thought) == ({"content": "found it"}, "It is there.")
        printed = json.loads(last.observation)
        assert printed["used"] == {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    assert len(heard.bodies) == 8


def test_the_server_gets_the_conversation_and_the_evaluations_sampling(tasks_file: Path) -> None:
    _, heard = play(tasks_file, good_manner)
    last = next(body for body in heard.bodies if len(body["messages"]) == 3)
    user, assistant, tool = last["messages"]
    (call,) = assistant["tool_calls"]
    assert user["content"].startswith("find thing-") and call["function"]["name"] == "look"
    assert json.loads(call["function"]["arguments"]) == {"at": "the shelf"}
    assert tool["tool_call_id"] == call["id"] and tool["content"].startswith("seen with")
    assert [each["function"]["name"] for each in last["tools"]] == ["look"]
    said = {name: last[name] for name in ("temperature", "top_p", "top_k", "max_tokens", "stop")}
    assert said == {"temperature": 0.4, "top_p": 0.9, "top_k": 20, "max_tokens": 40, "stop": ["END"]}
    assert len({body["seed"] for body in heard.bodies}) == 8, "every request has a seed of its own"


OF_EVERY_KIND = (
    "an upstream failure in a 200",
    "choices empty",
    "too many requests",
    "temperature is fixed",
    "max_tokens has a newer name",
    "usage null",
)
"""Behaviours of servers of each kind; tests of games try all of them with the same client."""


@pytest.fixture(scope="module")
def well_played(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return actions(play(written(tmp_path_factory.mktemp("good")), good_manner, number=AT_ONCE)[0])


@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_what_is_no_answer_changes_no_episode(name: str, tasks_file: Path, well_played: list[str]) -> None:
    assert actions(play(tasks_file, after(SAME[name]), number=AT_ONCE)[0]) == well_played


@pytest.mark.parametrize("name", ["a wrong key", "no credit", "a wrong value", "a redirect", "always a page"])
def test_a_server_that_cannot_be_used_ends_in_one_line(name: str, tasks_file: Path) -> None:
    with pytest.raises(ChatError, match=LINES[name].says):
        play(tasks_file, LINES[name].manner, LINES[name].deadline)


def test_a_server_without_tools_ends_in_one_line_before_any_episode(tasks_file: Path) -> None:
    said = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    with pytest.raises(ChatError, match=r"refused with HTTP 400: .*--enable-auto-tool-choice"):
        play(tasks_file, lambda number, body, good: error(400, said))


def test_a_conversation_that_only_this_server_refuses_is_the_programs_to_hear(tasks_file: Path) -> None:
    def strict(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return error(400, "messages with role tool are out of order")
        return good_manner(number, body, good)

    episodes, _ = play(tasks_file, strict)
    assert [episode.outcome for episode in episodes] == ["not_served"] * 4
    refused = episodes[0].steps[-1]
    assert refused.invalid == "not_served" and "role tool are out of order" in refused.observation


def test_a_prompt_beyond_the_servers_context_is_refused_in_the_vendors_form(tasks_file: Path) -> None:
    episodes, _ = play(tasks_file, lambda number, body, good: error(400, code="context_length_exceeded"))
    assert {episode.outcome for episode in episodes} == {"prompt_too_long"}
    assert "context_length_exceeded" in episodes[0].steps[-1].observation


def test_a_response_that_was_cut_off_is_said_to_the_program_and_in_the_record(tasks_file: Path) -> None:
    episodes, _ = play(tasks_file, lambda number, body, good: message(good, "length", content="half a"))
    assert [step.invalid for step in episodes[0].steps] == ["cut_off"]
    assert json.loads(episodes[0].steps[0].observation)["finish"] == "length"


def test_a_refusal_is_said_to_the_program_and_in_the_record(tasks_file: Path) -> None:
    declined = {"content": None, "refusal": "I will not."}
    episodes, _ = play(tasks_file, lambda number, body, good: message(good, **declined))
    assert [step.invalid for step in episodes[0].steps] == ["refused"]
    ended = json.loads(episodes[0].steps[0].observation)
    assert (ended["finish"], ended["text"]) == ("content_filter", "I will not.")


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        ('{"at": ', '{"at": '),
        ('{"at": NaN}', '{"at": NaN}'),
        ('{"at": "\\ud800"}', '{"at": "\\ud800"}'),
        ({"at": 2**64}, '{"at": 18446744073709551616}'),
        ([1], [1]),
    ],
)
def test_arguments_that_are_no_object_or_beyond_json_reach_the_program_and_the_step_says_so(
    arguments: Any, raw: Any, tasks_file: Path
) -> None:
    bad = {"id": "c", "function": {"name": "look", "arguments": arguments}}

    def careless(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        calling = message(good, "tool_calls", content=None, tool_calls=[bad])
        return calling if len(body["messages"]) == 1 else good_manner(number, body, good)

    episodes, _ = play(tasks_file, careless, number=1)
    first, last = episodes[0].steps
    assert (first.invalid, last.invalid) == ("broken_call", None)
    assert json.loads(first.action)["calls"] == [{"tool": "look", "arguments": {"raw": raw}}]


def test_calls_in_a_stream_that_was_not_requested_are_put_together(tasks_file: Path) -> None:
    def streaming(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return good_manner(number, body, good)
        pieces = [
            {"index": 0, "id": "c", "function": {"name": "look", "arguments": ""}},
            {"index": 0, "function": {"arguments": '{"at": "the '}},
            {"index": 0, "function": {"arguments": 'shelf"}'}},
            {"index": 1, "id": "d", "function": {"name": "look"}},
        ]
        deltas = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
        return events(*deltas, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]")

    episodes, _ = play(tasks_file, streaming)
    assert json.loads(episodes[0].steps[0].action)["calls"] == [
        {"tool": "look", "arguments": {"at": "the shelf"}},
        {"tool": "look", "arguments": {}},
    ]
    assert [step.invalid for step in episodes[0].steps] == [None, None]


def test_a_server_without_stop_is_asked_without_it_and_the_text_still_ends_there(tasks_file: Path) -> None:
    def without(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        refusal = error(400, "Unsupported parameter: 'stop' is not supported with this model.", param="stop")
        return refusal if "stop" in body else message(good, content="found it" + "END of it")

    episodes, heard = play(tasks_file, without)
    assert all(episode.won for episode in episodes)
    assert "stop" not in heard.bodies[-1]


def test_neither_programs_nor_records_see_the_servers_key(
    tasks_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_KEY", "sk-very-secret")

    def indiscreet(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool" and "thing-1" in body["messages"][0]["content"]:
            return error(400, "the key sk-very-secret may not do this")
        return good_manner(number, body, good)

    episodes, heard = play(tasks_file, indiscreet, key="A_SECRET_KEY")
    assert set(heard.keys[1:]) == {"Bearer sk-very-secret"}
    observations = [step.observation for episode in episodes for step in episode.steps]
    assert not any("sk-very-secret" in observation for observation in observations)
    assert any("the key *** may not do this" in observation for observation in observations)
    assert any('"secret": ""' in observation for observation in observations)


def test_the_command_evaluates_a_program_with_a_model_behind_a_url(
    tasks_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "mine.yaml"
    values = {name: OPTIONS[name] for name in ("policy", "imitation", "sampling")}
    values["environment"] = own(tasks_file)
    values["tasks"] = {"train": 1, "validation": 0, "test": 3}
    overlay.write_text(json.dumps(values))
    folder = tmp_path / "found"
    command = ["evaluate", "--environment", "program", "--params", str(overlay), "--votes", "3"]
    with chat_server(manner=after(SAME["loading"])) as (url, _):
        assert main([*command, "--model", url, "--output", str(folder)]) == 0
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["cost"] == {"requests": 18, "prompt_tokens": 180, "response_tokens": 54, "uncounted": 0}
    assert found["endings"]["answers"] == 18 and "program" in json.dumps(found["parameters"])
    assert (folder / "page.html").exists() and "18 requests at the server" in capsys.readouterr().out
