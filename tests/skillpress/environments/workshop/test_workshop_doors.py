"""The workshop through other people's doors: the example of its page on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.build.markdown import blocks
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.environment import Workshop
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.support.integrations.served import served

PAGE = Path(__file__).parents[4] / "docs" / "environments.md"


@pytest.mark.heavy
def test_the_pages_example_plays_on_a_server(
    parameters: WorkshopParameters, task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = (block.code for block in blocks(PAGE.read_text()) if "websockets" in block.code)
    with served(make=lambda: Workshop(parameters), tasks=[task]) as door:
        at = example.replace("127.0.0.1:8000", door.url.removeprefix("http://"))
        exec(compile(at, str(PAGE), "exec"), {"__name__": "example"})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Order for the piece red oak star: saw, paint. You are in the hall")
    assert second == "not_finished"
