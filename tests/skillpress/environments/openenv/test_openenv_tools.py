"""Tools of MCP on an OpenEnv server: the prompt lists them, an action calls one, and its result is seen."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.openenv.connection import ForeignProtocolError
from skillpress.environments.openenv.environment import OpenEnv
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.openenv.tools import call, shown_by_tools
from tests.support.programs import PROGRAMS, ROOT

CLIENT = ROOT / ".venv-openenv"


def section(url: str = "http://127.0.0.1:8000", **changes: Any) -> OpenEnvParameters:
    values = {"name": "openenv", "max_steps": 8, "url": url, "opening": "Open it.", "won_at": 1.0}
    return OpenEnvParameters.model_validate(values | {"tools": True} | changes)


def called(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server made with OpenEnv's package, which prints the port that it listens on."""
    if not (CLIENT / ".installed").exists():
        pytest.skip("needs OpenEnv's package: make openenv")
    command = [CLIENT / "bin" / "python", PROGRAMS / "openenv_tools_program.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.terminate()


def test_an_episode_of_calls_on_a_server_of_the_package(url: str) -> None:
    parameters = section(url, fields={"text": ["question"]})
    environment = OpenEnv(parameters)
    task = Task("t", "openenv", 7, {"url": url, "reset": {"seed": 7}})
    first, info = environment.reset(task)
    assert first == "Open safe 7.", "a field of the reset's metadata"
    prompt = parameters.rendering("text", 2).prompt(AgentState(task, first, info))
    listed = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"name"')]
    assert [tool["name"] for tool in listed] == ["compare", "open_safe"]
    assert listed[0]["description"].startswith("Say whether") and listed[0]["parameters"]["required"] == [
        "digit"
    ]
    assert environment.step(called("compare", digit=3))[:2] == ("higher", False)
    for mistake in (called("fly"), called("compare", digit="x")):
        text, over, _, info = environment.step(mistake)
        assert (info.invalid, over) == ("refused", False) and re.match("tool_not_found|execution_error", text)
    assert environment.step("compare 3")[3].invalid == "no_json"
    text, over, _, info = environment.step(called("open_safe", digit=7))
    assert (over, info.won, info.measures) == (True, True, {"reward": 1.0})
    assert json.loads(text) == {"digit": 7}, "the metadata of an answer without a result"
    environment.reset(task)
    assert environment.step(called("open_safe", digit=3))[3].lost == "done"
    environment.close()


def test_a_reset_without_a_field_that_the_section_names_is_an_error(url: str) -> None:
    environment = OpenEnv(section(url, fields={"text": ["goal"]}))
    with pytest.raises(ForeignProtocolError, match=r"fields.text: .* has no 'goal'"):
        environment.reset(Task("t", "openenv", 7, {"url": url, "reset": {"seed": 7}}))
    environment.close()


@pytest.mark.parametrize(
    ("result", "seen"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "00"}]}, "a\n[image]"),
        ({"content": "words"}, '{"content": "words"}'),
        ("words", "words"),
        (None, ""),
    ],
)
def test_a_result_is_seen_as_its_texts(result: Any, seen: str) -> None:
    assert shown_by_tools(section(), "step", {"tool_name": "look", "result": result, "error": None}) == seen


@pytest.mark.parametrize("result", [{}, {"tools": []}, {"tools": None}, {"tools": [{"title": "look"}]}])
def test_a_server_that_lists_no_tools_is_named(result: Any) -> None:
    with pytest.raises(ForeignProtocolError, match=r"environment.tools: http://127.0.0.1:8000 has no tools"):
        shown_by_tools(section(), "mcp", result)


def test_an_object_that_is_no_call_is_not_sent() -> None:
    assert call({"name": "look"}) == {"type": "call_tool", "tool_name": "look", "arguments": {}}
    assert call({"tool_name": "look"}) is None and call({"name": "look", "arguments": "north"}) is None


def test_skills_read_a_call_as_its_tool_and_its_values() -> None:
    projection = section(skills={"rules": [["look * north", "North"]], "verbs": ["look"]}).make_projection()
    actions = [
        called("look", at="far", to="north"),
        called("look"),
        '{"name": "look", "arguments": 3}',
        "fly",
    ]
    assert [projection.skill(action) for action in actions] == ["North", "look", "look", None]


def test_a_results_fields_cannot_be_named() -> None:
    with pytest.raises(ValidationError, match=r"fields.admissible, action and invalid must be empty"):
        section(fields={"invalid": "error"})
