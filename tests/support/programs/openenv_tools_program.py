"""An OpenEnv server whose only actions are tools of MCP, made with the package's own base class.

It prints the free port of loopback that it listens on.
"""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State


class Safe(MCPEnvironment):
    """A safe opens with the digit of its seed; ``open_safe`` is rewarded and ends the episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        tools = FastMCP("safe")
        self._digit, self._state = 0, State(episode_id="safe", step_count=0)

        @tools.tool
        def compare(digit: int) -> str:
            """Say whether the safe's digit is higher, lower or this one."""
            return "this one" if digit == self._digit else "higher" if digit < self._digit else "lower"

        @tools.tool
        def open_safe(digit: int) -> dict[str, Any]:
            """Try a digit: there is one try."""
            return {"open": digit == self._digit}

        super().__init__(tools)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> Observation:
        self._digit, self._state = (seed or 0) % 10, State(episode_id=episode_id or "safe", step_count=0)
        return Observation(done=False, reward=0.0, metadata={"question": f"Open safe {seed}."})

    async def step_async(self, action: Action, timeout_s: float | None = None, **more: Any) -> Observation:
        self._state.step_count += 1
        found = await super().step_async(action, timeout_s, **more)
        if isinstance(action, CallToolAction) and action.tool_name == "open_safe":
            won = action.arguments.get("digit") == self._digit
            return Observation(done=True, reward=float(won), metadata={"digit": self._digit})
        return found

    def _step_impl(self, action: Action, timeout_s: float | None = None, **more: Any) -> Observation:
        return Observation(done=False, reward=0.0, metadata={"error": "only tools"})

    @property
    def state(self) -> State:
        return self._state


if __name__ == "__main__":
    app = create_app(Safe, CallToolAction, CallToolObservation, env_name="safe", max_concurrent_envs=4)
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
