"""A sandbox whose interpreter sends arbitrary messages ends its own episode and affects no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.environment import LIMITS, RepairEpisode
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.programs import Program
from skillpress.environments.sandboxed import SandboxedEnvironment
from skillpress.rollouts.sandbox import Sandbox

TASK = Task("ours/largest", "code_repair", 0, {"program": "ours/largest"})
BASH = json.dumps({"tool": "bash", "command": "echo said; false"})
VIEW = json.dumps({"tool": "edit", "command": "view", "path": "largest.py"})
WRITE = json.dumps(
    {"tool": "edit", "command": "insert", "path": "largest.py", "insert_line": 0, "new_str": "# new"}
)
SPOIL = """
import gc, json, struct
wire = next(one for one in gc.get_objects() if type(one).__name__ == "Wire")
lies, number = {lies!r}, [0]
def send(message):
    lie = lies[number[0] % len(lies)]
    number[0] += 1
    if isinstance(lie, dict):
        body = json.dumps({{**message, **lie}}).encode()
        wire._socket.sendall(struct.pack(">I", len(body)) + body)
    else:
        wire._socket.sendall(lie)
wire.send = send
"""
"""From now on the interpreter's messages have additional fields, or are other bytes."""

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(" "),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(["done", "result", "error", "call", "args", "kwargs", "piece", "isolation", "other"])
lies = st.dictionaries(fields, values, max_size=3) | st.binary(max_size=40)


class Spoilt:
    """Sandboxes that send false messages after their start, as code in them can make them do."""

    def __init__(self) -> None:
        self.lies: list[dict[str, Any] | bytes] = []

    def __call__(self) -> Sandbox:
        sandbox = Sandbox.start(LIMITS)
        if self.lies:
            sandbox.execute(SPOIL.format(lies=self.lies))
        return sandbox


@pytest.fixture
def spoilt() -> Spoilt:
    return Spoilt()


@pytest.fixture
def lying(program: Program, judge: Judge, spoilt: Spoilt) -> SandboxedEnvironment:
    """Its sandboxes send false messages; one that sends nothing is lost after two seconds."""
    return SandboxedEnvironment(
        lambda task, sandbox: RepairEpisode(program, judge, sandbox, max_steps=4, measure_edits=False),
        spoilt,
        seconds=2.0,
        attempts=1,
    )


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(lies=st.lists(lies, min_size=1, max_size=3))
def test_whatever_a_sandbox_says_its_episode_ends_or_goes_on(
    lies: list[dict[str, Any] | bytes], lying: SandboxedEnvironment, spoilt: Spoilt
) -> None:
    spoilt.lies = lies
    lying.reset(TASK)
    for action in (BASH, VIEW, WRITE):
        observation, over, _, info = lying.step(action)
        assert isinstance(observation, str) and not info.won
        if over:
            assert info.lost in ("sandbox", "time")
            break
    lying.close()


@pytest.mark.parametrize("error", ["", " ", "\n", "\x1c"])
def test_a_blank_error_ends_no_run(error: str, lying: SandboxedEnvironment, spoilt: Spoilt) -> None:
    """It answers the writing of a file, the ninth message of this sandbox."""
    spoilt.lies = [{}] * 8 + [{"error": error}]
    lying.reset(TASK)
    for action in (BASH, VIEW, WRITE):
        observation = lying.step(action)[0]
    assert "largest.py cannot be written" in observation and "are lost" in observation
    lying.close()
