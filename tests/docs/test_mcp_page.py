"""The example of docs/mcp.md, run from the page unchanged except for the port."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from skillpress.cli.serve import PORT, _parser
from skillpress.integrations.serving.episodes import SeenStep
from skillpress.integrations.serving.mcp_server import KINDS
from tests.support.integrations.served_tools import served_tools

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()


def test_the_client_plays_an_episode(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert f"127.0.0.1:{PORT}/mcp" in code
    with served_tools() as url:
        exec(
            compile(code.replace(f"http://127.0.0.1:{PORT}/mcp", url), "docs/mcp.md", "exec"),
            {"__name__": "example"},
        )
    assert re.fullmatch(r"(won|lost|truncated) -?\d+\.\d+\n", capsys.readouterr().out)


def test_the_harness_starts_a_command_that_exists() -> None:
    (text,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (server,) = json.loads(text)["mcpServers"].values()
    command, *arguments = [server["command"], *server["args"]]
    assert (command, arguments[0]) == ("skillpress", "serve")
    assert _parser().parse_args(arguments[1:]).mcp == "stdio"


def test_the_page_names_every_tool_argument_and_field() -> None:
    for name, kind in KINDS.items():
        assert f"| `{name}` |" in PAGE
        assert all(f"`{argument}`" in PAGE for argument in kind.arguments.model_fields)
    assert all(f"`{field}`" in PAGE for field in SeenStep.model_fields)
