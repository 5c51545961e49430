"""The workshop on an OpenEnv server."""

from __future__ import annotations

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.workshop.environment import Workshop
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.support.integrations.served import served

CLIENT = """
import json
from websockets.sync.client import connect

with connect("ws://127.0.0.1:8000/ws", proxy=None) as socket:
    socket.send(json.dumps({"type": "reset", "data": {"seed": 7}}))
    print(json.loads(socket.recv())["data"]["observation"]["text"])
    socket.send(json.dumps({"type": "step", "data": {"message": "deliver piece"}}))
    print(json.loads(socket.recv())["data"]["observation"]["invalid"])
"""


@pytest.mark.heavy
def test_a_client_plays_on_a_server(
    parameters: WorkshopParameters, task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(make=lambda: Workshop(parameters), tasks=[task]) as door:
        at = CLIENT.replace("127.0.0.1:8000", door.url.removeprefix("http://"))
        exec(compile(at, "client", "exec"), {"__name__": "example"})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Order for the piece red oak star: saw, paint. You are in the hall")
    assert second == "not_finished"
