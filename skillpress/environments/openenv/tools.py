"""Tools that an OpenEnv server offers by MCP: how they are listed, called, and their results shown.

The list is MCP's ``tools/list`` on the episode's own connection, which takes no step. A call is a step, so it
has a reward and may end the episode. Such servers often describe the task in the metadata of the reset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from skillpress.environments.openenv.connection import SHOWN, ForeignProtocolError, Kind
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.environments.openenv.reading import as_text, seen, shortened
from skillpress.environments.text.words import encodable

LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
"""The request for the tools."""
FORM = '{"name": "...", "arguments": {...}}'
"""How an agent writes a call."""


def call(action: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The call in the server's form; None if the object is not a call."""
    name, arguments = action.get("name"), action.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return {"type": "call_tool", "tool_name": name, "arguments": arguments}


def error_of(observation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Why the server could not carry out the call; None if it did."""
    error = observation.get("error")
    return error if isinstance(error, dict) and "tool_name" in observation else None


def shown_by_tools(parameters: OpenEnvParameters, kind: Kind, observation: Mapping[str, Any]) -> str:
    """The list of tools as lines of JSON, a call's result or error, or an observation with its metadata.

    Raises:
        ForeignProtocolError: the server lists no tools, or a reset lacks the fields that the section names.
    """
    if kind == "mcp":
        return encodable(_list(parameters, observation))
    if error := error_of(observation):
        text = f"{error.get('error_type')}: {error.get('message')}"
    elif "tool_name" in observation and "result" in observation:
        text = _result(observation["result"])
    else:  # the fields are a reset's; the last answer of an episode often has others
        metadata = observation.get("metadata")
        every = {**(metadata if isinstance(metadata, dict) else {}), **observation}
        return seen(parameters, every, named=kind == "reset")
    return shortened(encodable(text), parameters.observation_characters)


def _list(parameters: OpenEnvParameters, result: Mapping[str, Any]) -> str:
    try:
        tools = [
            {
                "name": tool["name"],
                "description": tool.get("description") or "",
                "parameters": tool.get("inputSchema") or tool.get("input_schema") or {},
            }
            for tool in result["tools"]
        ]
    except (KeyError, TypeError, AttributeError):
        tools = []
    if not tools:
        raise ForeignProtocolError(
            f"environment.tools: {parameters.url} has no tools; its answer is {as_text(dict(result))[:SHOWN]}"
        )
    return "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)


def _result(result: Any) -> str:
    """The texts of MCP's content blocks, ``[image]`` for one without a text; anything else as JSON."""
    blocks = result.get("content") if isinstance(result, dict) else None
    if not isinstance(blocks, list):
        return as_text(result)
    return "\n".join(as_text(block.get("text", f"[{block.get('type')}]")) for block in blocks)
