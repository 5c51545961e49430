"""The server from a client's side: the protocol, one session per connection, and limits that hold."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from typing import Any

import httpx
import pytest
from gymnasium.spaces import Text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from skillpress.core.errors import UserError
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.integrations.serving import ServingLimits, listen, server_of
from tests.support.integrations.served import TASKS, Served, served

WINS = ("op(+, 2, 1)", "op(+, 3, 3)")
"""Make 6 of 1, 2 and 3."""


class Gate:
    """Waits at ``wait`` until it is opened, fails at ``break``, and cannot start the task ``broken``."""

    action_space = observation_space = Text(max_length=16)
    opened = threading.Event()

    def reset(self, task: Task) -> tuple[str, Info]:
        if task.task_id == "broken":
            raise ConnectionError("no such room")
        return task.task_id, Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        if action == "wait":
            self.opened.wait(60)
        if action == "break":
            raise ConnectionError("the room fell down")
        return action, False, False, Info(action=action)


@pytest.fixture(scope="module")
def door() -> Iterator[Served]:
    with served() as found:
        yield found


def opened(server: Served) -> ClientConnection:
    return connect(socket_url(server), proxy=None, close_timeout=2)


def socket_url(server: Served) -> str:
    return server.url.replace("http", "ws") + "/ws"


def asked(connection: ClientConnection, kind: str, **data: Any) -> tuple[str, dict[str, Any]]:
    """(type, data) of the answer."""
    connection.send(json.dumps({"type": kind, "data": data}))
    return heard(connection)


def heard(connection: ClientConnection) -> tuple[str, dict[str, Any]]:
    found = json.loads(connection.recv(60))
    return found["type"], found["data"]


def code_of(answer: tuple[str, dict[str, Any]]) -> str:
    kind, data = answer
    assert kind == "error", data
    return data["code"]


def test_an_episode_is_played_and_the_door_rewards_its_success(door: Served) -> None:
    with closing(opened(door)) as connection:
        kind, first = asked(connection, "reset", seed=0, episode_id="mine")
        assert kind == "observation" and first["reward"] is None and not first["done"]
        assert first["observation"]["text"] == "Target: 6. Numbers: 1 2 3"
        assert "op(+, 2, 1)" in first["observation"]["admissible"]
        _, refused = asked(connection, "step", message="op(+, 9, 9)")
        assert refused["reward"] == pytest.approx(-0.01)
        assert refused["observation"]["invalid"] == "no_such_number"
        for action in WINS:
            _, last = asked(connection, "step", message=action, metadata={})
        assert last["done"] and last["reward"] == 10.0 and last["observation"]["won"]
        assert last["metadata"]["task_id"] == "6"
        kind, state = asked(connection, "state")
        assert kind == "state" and state == {
            "episode_id": "mine", "step_count": 3, "environment": "countdown", "task_id": "6", "done": True,
            "total_reward": pytest.approx(9.99),
        }  # fmt: skip
        assert code_of(asked(connection, "step", message="reset")) == "EXECUTION_ERROR", "it is over"
        assert asked(connection, "reset", seed=1)[0] == "observation", "the next one begins"


def test_steps_that_run_out_are_done_and_truncated(door: Served) -> None:
    with closing(opened(door)) as connection:
        asked(connection, "reset", seed=0)
        answers = [asked(connection, "step", message="rollback")[1] for _ in range(8)]
    assert [answer["done"] for answer in answers] == [False] * 7 + [True]
    assert answers[-1]["observation"]["truncated"] and not answers[-1]["observation"]["lost"]


def test_a_seed_chooses_a_task_in_a_circle_and_a_name_chooses_it_too(door: Served) -> None:
    with closing(opened(door)) as connection:

        def task(**arguments: Any) -> str:
            return asked(connection, "reset", **arguments)[1]["metadata"]["task_id"]

        names = [each.task_id for each in TASKS]
        assert [task(seed=number) for number in range(5)] == [*names, names[0]]
        assert task(seed=10**30) == names[10**30 % 4]
        assert task(task_id="54") == "54"
        turn = [task() for _ in range(8)]
        assert sorted(turn) == sorted(2 * names), "without either they come in turn"


def test_connections_have_sessions_of_their_own(door: Served) -> None:
    with closing(opened(door)) as one, closing(opened(door)) as other:
        asked(one, "reset", seed=0)
        assert code_of(asked(other, "step", message=WINS[0])) == "EXECUTION_ERROR"
        asked(other, "reset", seed=1)
        assert asked(one, "step", message=WINS[0])[1]["observation"]["text"] == "Numbers: 3 3"
        assert asked(other, "step", message="op(+, 2, 1)")[1]["observation"]["text"] == "Numbers: 3 28 80"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("{", "INVALID_JSON", "Invalid JSON"),
        ("[" * 50_000, "INVALID_JSON", ""),
        ('"reset"', "VALIDATION_ERROR", "a message is an object"),
        ('{"type": "restart"}', "UNKNOWN_TYPE", "there are reset, step, state, close"),
        ('{"data": {}}', "UNKNOWN_TYPE", "None"),
        ('{"type": ["step"]}', "UNKNOWN_TYPE", "step"),
        ('{"type": "reset", "data": [1]}', "VALIDATION_ERROR", "must be an object"),
        ('{"type": "reset", "data": {"sead": 1}}', "VALIDATION_ERROR", "unknown key 'sead'; allowed: seed"),
        ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR", "seed"),
        ('{"type": "reset", "data": {"seed": true}}', "VALIDATION_ERROR", "seed"),
        ('{"type": "reset", "data": {"task_id": "nine"}}', "VALIDATION_ERROR", "no task 'nine'; one is '6'"),
        ('{"type": "reset", "data": {"task_id": "6", "seed": 1}}', "VALIDATION_ERROR", "give one"),
        ('{"type": "step", "data": {"message": 7}}', "VALIDATION_ERROR", "message"),
        ('{"type": "step", "data": {"text": "a"}}', "VALIDATION_ERROR", "message"),
        ('{"type": "step", "data": {"message": "\\ud800"}}', "INVALID_JSON", "surrogates"),
        ('{"type": "step"}', "VALIDATION_ERROR", "message"),
    ],
)  # fmt: skip
def test_a_message_that_is_none_is_refused_and_the_session_goes_on(
    door: Served, text: str, code: str, said: str
) -> None:
    with closing(opened(door)) as connection:
        asked(connection, "reset", seed=0)
        connection.send(text)
        kind, data = heard(connection)
        assert (kind, data["code"]) == ("error", code) and said in data["message"]
        assert len(data["message"]) < 600
        assert asked(connection, "step", message=WINS[0])[0] == "observation"


def test_what_is_told_over_http(door: Served) -> None:
    with httpx.Client(base_url=door.url, trust_env=False) as http:
        assert http.get("/health").json() == {"status": "healthy"}
        assert http.get("/metadata").json() == {"name": "toy", "description": "A toy.", "version": "1"}
        schema = http.get("/schema").json()
        assert list(schema) == ["action", "observation", "reset_observation", "state"]
        assert schema["action"]["required"] == ["message"]
        assert http.get("/openapi.json").json()["info"]["version"] == "1"
        assert http.post("/mcp", json={"method": "tools/list", "id": 1}).json()["result"] == {"tools": []}
        for body, code in (("{", -32700), ("{}", -32600), ('{"method": "tools/call"}', -32601)):
            assert http.post("/mcp", content=body).json()["error"]["code"] == code
        assert http.post("/mcp", content="x" * 70_000).status_code == 413
        assert http.get("/reset").status_code == 404


@pytest.mark.parametrize(
    ("host", "origin"),
    [(None, "http://127.0.0.1"), (None, "null"), ("evil.example:8000", None),
     ("evil.example:8000", "http://evil.example:8000")],
)  # fmt: skip
def test_a_web_page_is_turned_away_also_under_a_name_that_it_gave_to_this_machine(
    door: Served, host: str | None, origin: str | None
) -> None:
    headers = {name: value for name, value in (("Host", host), ("Origin", origin)) if value}
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "c2l4dGVlbiBieXRlcy4uLg==",
    }
    for path, further in (("/ws", handshake), ("/health", {}), ("/metadata", {})):
        refused = httpx.get(door.url + path, headers=headers | further, trust_env=False)
        assert refused.status_code == 403, path


def test_half_a_question_is_cut_off_in_time_and_no_error_of_the_server() -> None:
    with served(limits=ServingLimits(request_seconds=0.3)) as door:
        port = int(door.url.rpartition(":")[2])
        for half in (b"GET /ws HTTP/1.1\r\n", b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(half.replace(b"Host: x", b"Host: localhost"))
                assert connection.recv(1) == b"", "the server has hung up"
        with closing(opened(door)) as connection:
            assert asked(connection, "reset", seed=0)[0] == "observation"


def test_who_comes_when_all_sessions_are_taken_is_told_so_and_may_come_again() -> None:
    with served(limits=ServingLimits(sessions=2)) as door:
        first, second = opened(door), opened(door)
        asked(first, "reset", seed=0)
        asked(second, "reset", seed=0)
        with closing(opened(door)) as third:
            kind, data = heard(third)
            assert (kind, data["code"]) == ("error", "CAPACITY_REACHED")
            assert (data["active_sessions"], data["max_sessions"]) == (2, 2)
            assert "one that says nothing for 1800 seconds ends" in data["message"]
            with pytest.raises(ConnectionClosed):
                third.recv(60)
        first.close()
        assert comes_in(door), "a session that ended leaves its place"
        second.close()


def comes_in(door: Served) -> bool:
    """Whether a session is free within a minute."""
    for _ in range(600):
        with closing(opened(door)) as connection:
            try:
                if asked(connection, "reset", seed=0)[0] == "observation":
                    return True
            except ConnectionClosed:
                pass
        time.sleep(0.1)
    return False


def test_a_session_that_says_nothing_ends_and_leaves_its_place() -> None:
    with served(limits=ServingLimits(sessions=1, idle_seconds=0.2)) as door:
        with closing(opened(door)) as connection:
            kind, data = heard(connection)
            assert (kind, data["code"]) == ("error", "SESSION_ERROR") and "0.2 seconds" in data["message"]
            with pytest.raises(ConnectionClosed):
                connection.recv(60)
        assert comes_in(door)


def test_a_client_that_neither_speaks_nor_reads_leaves_its_place_too() -> None:
    """It answers no ping and no farewell, and its connection stays open."""
    asks = (
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2l4dGVlbiBieXRlcy4uLg==\r\n\r\n"
    )
    with served(limits=ServingLimits(sessions=2, idle_seconds=0.2)) as door, ExitStack() as stack:
        for _ in range(8):
            address = ("127.0.0.1", int(door.url.rpartition(":")[2]))
            connection = stack.enter_context(socket.create_connection(address, timeout=60))
            connection.sendall(asks.encode())
            assert connection.recv(12) == b"HTTP/1.1 101"
        assert comes_in(door)


def test_a_message_that_is_too_large_ends_its_session_alone() -> None:
    with served(limits=ServingLimits(message_bytes=1000)) as door, closing(opened(door)) as other:
        asked(other, "reset", seed=0)
        with closing(opened(door)) as connection, pytest.raises(ConnectionClosed) as closed:
            asked(connection, "step", message="x" * 1001)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
        assert asked(other, "step", message=WINS[0])[0] == "observation"


def test_who_is_faster_than_the_pace_waits_and_loses_nothing() -> None:
    with served(limits=ServingLimits(messages_per_second=50.0)) as door, closing(opened(door)) as connection:
        began = time.monotonic()
        for _ in range(100):
            connection.send('{"type": "state"}')
        answers = [heard(connection)[0] for _ in range(100)]
        assert answers == ["state"] * 100
        assert time.monotonic() - began >= (100 - 50) / 50 - 0.1, "a second's worth came at once"


def test_an_environment_that_breaks_is_an_error_of_its_session_alone() -> None:
    tasks = [Task(name, "gate", 0, {}) for name in ("hall", "broken")]
    with served(Gate, tasks) as door, closing(opened(door)) as one, closing(opened(door)) as other:
        asked(one, "reset", seed=0)
        asked(other, "reset", seed=0)
        kind, data = asked(one, "step", message="break")
        assert (kind, data["code"]) == ("error", "EXECUTION_ERROR") and "the room fell down" in data[
            "message"
        ]
        assert code_of(asked(one, "step", message="look")) == "EXECUTION_ERROR", "its episode is over"
        kind, data = asked(one, "reset", seed=1)
        assert (kind, data["code"]) == ("error", "EXECUTION_ERROR") and "no such room" in data["message"]
        assert asked(one, "reset", seed=0)[1]["observation"]["text"] == "hall", "and may begin again"
        assert asked(other, "step", message="look")[1]["observation"]["text"] == "look"


def test_a_slow_step_holds_nobody_up() -> None:
    Gate.opened.clear()
    with (
        served(Gate, [Task("hall", "gate", 0, {})]) as door,
        closing(opened(door)) as slow,
        closing(opened(door)) as other,
    ):
        asked(slow, "reset")
        asked(other, "reset")
        slow.send('{"type": "step", "data": {"message": "wait"}}')
        assert asked(other, "step", message="look")[1]["observation"]["text"] == "look"
        Gate.opened.set()
        assert heard(slow)[1]["observation"]["text"] == "wait"


def test_who_leaves_in_the_middle_of_a_step_keeps_a_place_until_it_has_ended() -> None:
    Gate.opened.clear()
    with served(Gate, [Task("hall", "gate", 0, {})], ServingLimits(sessions=1)) as door:
        with closing(opened(door)) as slow:
            asked(slow, "reset")
            slow.send('{"type": "step", "data": {"message": "wait"}}')
        with closing(opened(door)) as early:
            assert code_of(heard(early)) == "CAPACITY_REACHED"
        Gate.opened.set()
        assert comes_in(door)


def test_a_step_past_its_deadline_is_an_error_and_the_session_goes_on() -> None:
    Gate.opened.clear()
    with (
        served(Gate, [Task("hall", "gate", 0, {})], seconds=0.3) as door,
        closing(opened(door)) as connection,
    ):
        asked(connection, "reset")
        kind, data = asked(connection, "step", message="wait")
        assert kind == "error" and "has not ended within 0.3 seconds" in data["message"]
        assert asked(connection, "reset")[0] == "observation"
        Gate.opened.set()


def test_it_says_that_it_answers_once_it_does_and_nothing_if_its_start_fails() -> None:
    said: list[int] = []

    def ask() -> None:
        said.append(httpx.get(url, trust_env=False).status_code)
        server.should_exit = True

    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    @asynccontextmanager
    async def breaks(app: Starlette) -> AsyncIterator[None]:
        raise OSError("no room")
        yield

    with listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        app = Starlette(routes=[Route("/", hello)])
        server = server_of(app, ServingLimits(), ready=lambda: threading.Thread(target=ask).start())
        server.run(sockets=[listening])
        assert said == [200]
    with listen("127.0.0.1", 0) as listening, pytest.raises(SystemExit):
        broken = Starlette(lifespan=breaks)
        server_of(broken, ServingLimits(), "on", lambda: said.append(0)).run(sockets=[listening])
    assert said == [200]


def test_a_port_in_use_is_a_users_mistake() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(UserError, match=r"--port \d+: cannot listen there"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(UserError, match="cannot listen"):
        listen("127.0.0.1", 70_000)
