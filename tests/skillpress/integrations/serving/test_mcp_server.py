"""Our environments as tools, as the official package's own client sees them: over HTTP and over streams."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import sleep
from typing import Any, TextIO

import httpx
import pytest
from gymnasium.spaces import Text
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from skillpress.core.errors import UserError
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.integrations.serving import (
    Episodes,
    Metadata,
    ServingLimits,
)
from skillpress.integrations.serving.mcp_server import tools_of
from tests.support.integrations.served_tools import served_tools

WINS = ("op(+, 2, 1)", "op(+, 3, 3)")
"""Make 6 of 1, 2 and 3."""


@pytest.fixture(scope="module")
def door() -> Iterator[str]:
    with served_tools() as url:
        yield url


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool returns as data; a refusal's text."""
    found = await client.call_tool(tool, arguments)
    (content,) = found.content
    return content.text if found.is_error else found.structured_content  # type: ignore[union-attr]


def run(url: str, play: Callable[[Client], Awaitable[Any]], mode: Any = "auto") -> Any:
    """Play with a client of an address."""

    async def connected() -> Any:
        async with Client(url, mode=mode) as client:
            return await play(client)

    return asyncio.run(connected())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_episode_is_played_and_its_end_says_the_outcome(door: str, mode: str) -> None:
    async def play(client: Client) -> Any:
        first = await called(client, "start", task="6")
        refused = await called(client, "act", episode=first["episode"], action="op(+, 9, 9)")
        last = [await called(client, "act", episode=first["episode"], action=action) for action in WINS][-1]
        return first, refused, last, await called(client, "act", episode=first["episode"], action=WINS[0])

    first, refused, last, late = run(door, play, mode)
    assert (first["task"], first["observation"]) == ("6", "Target: 6. Numbers: 1 2 3")
    assert WINS[0] in first["admissible"] and not first["done"] and first["outcome"] is None
    assert refused["invalid"] == "no_such_number" and refused["reward"] == pytest.approx(-0.01)
    assert (last["done"], last["outcome"], last["reward"]) == (True, "won", 10.0)
    assert last["total_reward"] == pytest.approx(9.99)
    assert "no episode" in late and "`start` begins one" in late


def test_the_tools_are_described_for_a_model(door: str) -> None:
    async def play(client: Client) -> Any:
        return client.instructions, (await client.list_tools()).tools

    instructions, tools = run(door, play)
    assert instructions.startswith("A toy. Call `start`")
    assert {tool.name: tool.input_schema.get("required") for tool in tools} == {
        "start": None, "act": ["episode", "action"], "leave": ["episode"],
    }  # fmt: skip
    assert all(tool.description for tool in tools)


def test_episodes_of_one_caller_and_of_several_are_apart(door: str) -> None:
    async def play(client: Client) -> Any:
        async with Client(door) as other:
            one, two = await called(client, "start", seed=0), await called(other, "start", seed=1)
            three = await called(client, "start", seed=2)
            seen = [
                (await called(caller, "act", episode=name["episode"], action="op(+, 2, 1)"))["observation"]
                for caller, name in ((client, one), (other, two), (client, three))
            ]
            await called(other, "leave", episode=two["episode"])
            left = await called(other, "act", episode=two["episode"], action="rollback")
        return seen, left

    seen, left = run(door, play)
    assert seen == ["Numbers: 3 3", "Numbers: 3 28 80", "Numbers: 3 5"] and "no episode" in left


def test_steps_that_run_out_are_truncated(door: str) -> None:
    async def play(client: Client) -> Any:
        first = await called(client, "start", task="6")
        return [await called(client, "act", episode=first["episode"], action="rollback") for _ in range(8)]

    found = run(door, play)
    assert [each["done"] for each in found] == [False] * 7 + [True]
    assert (found[-1]["outcome"], found[-1]["admissible"]) == ("truncated", [])


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("start", {"task": "nine"}, "no task 'nine'; one is '6'"),
        ("start", {"sead": 1}, "unknown key 'sead'; allowed: task, seed"),
        ("start", {"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ("act", {"episode": "x"}, "action: Field required"),
        ("act", {"episode": "x", "action": "y"}, "no episode 'x' is running"),
        ("restart", {}, "no tool 'restart'; there are start, act, leave"),
    ],
)
def test_a_wrong_call_is_an_error_that_the_model_can_read(
    door: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    assert said in run(door, lambda client: called(client, tool, **arguments))


class Gate:
    """Fails at ``break``."""

    action_space = observation_space = Text(max_length=16)

    def reset(self, task: Task) -> tuple[str, Info]:
        return task.task_id, Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        if action == "break":
            raise ConnectionError("the room fell down")
        return action, False, False, Info(action=action)


def test_places_are_limited_and_free_again_after_a_failure_or_a_farewell() -> None:
    async def play(client: Client) -> Any:
        one, two = await called(client, "start"), await called(client, "start")
        full = await called(client, "start")
        broken = await called(client, "act", episode=one["episode"], action="break")
        three = await called(client, "start")
        await called(client, "leave", episode=two["episode"])
        return full, broken, [three, await called(client, "start")]

    with served_tools(Gate, ServingLimits(sessions=2, idle_seconds=50)) as url:
        full, broken, started = run(url, play)
    assert "all 2 places are in use" in full and "one that is silent for 50 seconds ends" in full
    assert "the room fell down" in broken and all(isinstance(each, dict) for each in started)


def test_an_episode_whose_caller_is_silent_ends_also_if_nobody_needs_its_place() -> None:
    closed: list[str] = []

    class Watched(Gate):
        def close(self) -> None:
            closed.append("closed")

    async def play(client: Client) -> Any:
        silent, kept = await called(client, "start"), await called(client, "start")
        for _ in range(30):
            await asyncio.sleep(0.1)
            last = await called(client, "act", episode=kept["episode"], action="x")
        return last, await called(client, "act", episode=silent["episode"], action="x"), list(closed)

    with served_tools(Watched, ServingLimits(sessions=64, idle_seconds=2)) as url:
        kept, silent, released = run(url, play)
    assert released == ["closed"], "such as a sandbox, while the server and the other episode go on"
    assert kept["observation"] == "x", "it was never silent for two seconds"
    assert "no episode" in silent and "one that is silent for 2 seconds ends" in silent


def test_an_episode_is_not_silent_while_its_environment_is_at_work() -> None:
    class Slow(Gate):
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            sleep(3 if action == "long" else 0)
            return super().step(action)

    async def play(client: Client) -> Any:
        first = await called(client, "start")
        actions = ("long", "x")
        return [await called(client, "act", episode=first["episode"], action=each) for each in actions]

    with served_tools(Slow, ServingLimits(idle_seconds=2)) as url:
        assert [each["observation"] for each in run(url, play)] == ["long", "x"]


def test_sessions_that_clients_never_close_are_bounded_in_number_and_in_silence() -> None:
    """The client of 2025 opens a stream to listen, which must not count as speech."""

    async def opened(url: str, stack: AsyncExitStack) -> Client:
        return await stack.enter_async_context(Client(url, mode="legacy"))

    async def refused(url: str) -> str:
        with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True) as found:
            async with Client(url, mode="legacy"):
                pass
        return str(found.value.exceptions if isinstance(found.value, BaseExceptionGroup) else found.value)

    async def play(url: str) -> Any:
        async with AsyncExitStack() as stack:
            silent = [await opened(url, stack) for _ in range(2)]
            full = await refused(url)
            modern = await called(await stack.enter_async_context(Client(url)), "start")
            for _ in range(100):
                try:
                    later = await called(await opened(url, stack), "start")
                    break
                except (MCPError, BaseExceptionGroup):
                    await asyncio.sleep(0.1)
            with pytest.raises(MCPError) as late:
                await silent[0].call_tool("start", {})
            return full, modern, later, str(late.value)

    with served_tools(limits=ServingLimits(sessions=2, idle_seconds=3)) as url:
        full, modern, later, late = asyncio.run(play(url))
    assert "all 2 sessions are taken; one that says nothing for 3 seconds ends, so try again later" in full
    assert isinstance(modern, dict), "the protocol of 2026 has no sessions"
    assert isinstance(later, dict), "their places are free again"
    assert "this session has ended" in late and "3 seconds" in late


def test_a_web_page_is_turned_away(door: str) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        assert httpx.post(door, headers=headers, json={}, trust_env=False).status_code == 403


def test_tools_are_listed_before_the_environment_is_ready_and_say_what_prevents_it() -> None:
    async def play() -> Any:
        prepared: Future[Episodes] = Future()
        async with Client(tools_of(prepared, Metadata("toy", "A toy.", "1"))) as client:
            tools = (await client.list_tools()).tools
            waiting = asyncio.create_task(called(client, "start"))
            await asyncio.sleep(0.1)
            waited = not waiting.done()
            prepared.set_exception(UserError("environment.data: holds no games"))
            return tools, waited, await waiting

    tools, waited, said = asyncio.run(play())
    assert len(tools) == 3 and waited and said == "environment.data: holds no games"


@asynccontextmanager
async def started_process(*options: str, errors: TextIO = sys.stderr) -> AsyncIterator[Client]:
    command = [
        *["-m", "skillpress.cli.command", "serve", "--environment", "countdown", "--mcp", "stdio"],
        *options,
    ]
    path = ":".join(filter(None, sys.path))
    process = StdioServerParameters(command=sys.executable, args=command, env={"PYTHONPATH": path})
    async with Client(stdio_client(process, errors)) as client:
        yield client


def test_a_process_that_the_harness_starts_serves_over_its_streams_and_says_so_beside_them(
    tmp_path: Path,
) -> None:
    async def play(errors: TextIO) -> Any:
        async with started_process("--set", "tasks.train=4", "--split", "train", errors=errors) as client:
            first = await called(client, "start")
            return first, await called(client, "act", episode=first["episode"], action=first["admissible"][0])

    said = tmp_path / "said"
    with said.open("w") as errors:
        first, second = asyncio.run(play(errors))
    assert "ready: the standard streams serve countdown (4 train tasks, 64 sessions)" in said.read_text()
    assert first["observation"].startswith("Target: ") and second["invalid"] is None
